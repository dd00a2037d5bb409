import HTTPTransport
import Testing

@Suite
struct ListenAddressTests {
    @Test(
        "An address is written as it is read",
        arguments: [
            "127.0.0.1:2197", "localhost:0", "[::]:2197", "[::1]:65535", "[fe80::1%eth0]:1", "unix:/run/w.sock",
        ]
    )
    func roundTrip(_ text: String) throws {
        #expect(try ListenAddress.parse(text).description == text)
    }

    @Test(
        "A fault is named, with what to write instead",
        arguments: [
            ("127.0.0.1", "the port is missing"), (":2197", "the host is missing"), ("::1:2197", "needs brackets"),
            ("[::1]", "the port is missing"), ("[::1:2197", "not closed"), ("[host]:1", "brackets are for IPv6"),
            ("h:", "the port is missing"), ("h:65536", "not a number"), ("h:+1", "not a number"),
            ("a b:1", "letters, digits"), ("unix:run/w.sock", "must be absolute"),
            ("unix:/" + String(repeating: "x", count: 107), "choose a shorter one"),
        ]
    )
    func faults(_ text: String, _ what: String) {
        let error = #expect(throws: TransportError.self) { try ListenAddress.parse(text) }
        #expect(error?.code == .address)
        #expect(error?.message.contains(what) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("\"\(text)\"") == true)
    }
}
