import Gateway
import HTTPTransport
import Testing

@Suite("Networks whose machines may reach a gateway that asks nobody")
struct CallerNetworkTests {
    private func client(_ four: UInt32) -> ClientNetwork {
        ClientNetwork(listener: 0, bits: 0xFFFF_FFFF_0000_0000 | UInt64(four))
    }

    private func client(v6: UInt64) -> ClientNetwork { ClientNetwork(listener: 0, bits: v6) }

    @Test("A network has the addresses of its first bits, and no others")
    func contains() throws {
        let docker = try #require(CallerNetwork("172.17.0.0/16"))
        #expect(docker.contains(self.client(0xAC11_0002)) && !docker.contains(self.client(0xAC12_0002)))
        let one = try #require(CallerNetwork("172.17.0.2"))
        #expect(one.contains(self.client(0xAC11_0002)) && !one.contains(self.client(0xAC11_0003)))
        let every = try #require(CallerNetwork("0.0.0.0/0"))
        #expect(every.contains(self.client(0)) && every.contains(self.client(.max)))
        #expect(!every.contains(self.client(v6: 0xFD00_0000_0000_0001)), "IPv6 is another matter")
        let six = try #require(CallerNetwork("fd00:1::/32"))
        #expect(six.contains(self.client(v6: 0xFD00_0001_8000_0000)))
        #expect(!six.contains(self.client(v6: 0xFD00_0002_0000_0000)) && !six.contains(self.client(0xFD00_0001)))
        #expect(try #require(CallerNetwork("::/0")).contains(self.client(v6: 1)))
        #expect(try #require(CallerNetwork("172.17.3.4/16")).contains(self.client(0xAC11_0000)))
    }

    @Test(
        "What is no network is none",
        arguments: [
            "", "a", "10", "10.1", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "fd00::1", "fd00::/65",
            "fe80::%lo/64", "localhost", "300.1.1.1",
        ]
    )
    func none(text: String) { #expect(CallerNetwork(text) == nil) }

    @Test("A caller is named by the address, or by its network of IPv6")
    func text() {
        #expect(self.client(0xAC11_0002).text == "172.17.0.2")
        #expect(self.client(v6: 0xFD00_0001_0000_0000).text == "fd00:1::/64")
        #expect(self.client(0x7F00_0001).isThisMachine && self.client(v6: 1).isThisMachine)
        #expect(!self.client(0x7F00_0002).isThisMachine)
    }
}
