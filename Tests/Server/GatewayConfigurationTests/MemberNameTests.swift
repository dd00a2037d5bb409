import Gateway
import Testing

@Suite("The name of a gateway among others")
struct MemberNameTests {
    @Test(
        "It is the machine and the port of the edge, or the host that the edge is bound to",
        arguments: [
            ("[::]:2197", "gw1:2197"), ("0.0.0.0:2197", "gw1:2197"), ("127.0.0.1:41234", "gw1:41234"),
            ("[::1]:2197", "gw1:2197"), ("10.0.0.7:2197", "10.0.0.7:2197"), ("[fe80::1]:2197", "[fe80::1]:2197"),
            ("wake.example.com:443", "wake.example.com:443"), ("unix:/run/wakegate.sock", "gw1"),
        ]
    )
    func edge(address: String, name: String) {
        let addresses = BoundAddresses(edge: ListenSetting(address), admin: ListenSetting("127.0.0.1:1"), plain: .off)
        #expect(MemberName.name(of: addresses, machine: "gw1") == name)
    }

    @Test("Without an edge it is the next listener's, and without a machine's name the address")
    func others() {
        let plain = BoundAddresses(edge: .off, admin: ListenSetting("127.0.0.1:1"), plain: ListenSetting("[::1]:2"))
        #expect(MemberName.name(of: plain, machine: "gw1") == "gw1:2")
        #expect(MemberName.name(of: plain, machine: nil) == "[::1]:2")
    }
}
