import HTTPTransport
import Testing
import Wire

@Suite
struct ListenAddressTests {
    @Test(
        "An address is written in the form in which it is read",
        arguments: [
            "127.0.0.1:2197", "localhost:0", "[::]:2197", "[::1]:65535", "[fe80::1%eth0]:1", "unix:/run/w.sock",
        ]
    )
    func roundTrip(_ text: String) throws {
        #expect(try ListenAddress.parse(text).description == text)
    }

    @Test(
        "A fault is named, with what to write",
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

@Suite("Hosts of Host and :authority")
struct AuthorityTests {
    @Test(
        "A host is a name or an address, perhaps with a port",
        arguments: [
            ("localhost", "localhost", true), ("LocalHost.:80", "localhost", true), ("localhost:", "localhost", true),
            ("127.0.0.1:9197", "127.0.0.1", true), ("127.255.8.9", "127.255.8.9", true), ("[::1]:80", "::1", true),
            ("[::1]", "::1", true), ("[FE80::A]", "fe80::a", false), ("[::ffff:10.0.0.1]:1", "::ffff:10.0.0.1", false),
            ("a_b.example:65535", "a_b.example", false), ("a%20b", "a%20b", false), ("unix", "unix", false),
            ("unix:9197", "unix", false), ("127.1", "127.1", false), ("127.0.0.01", "127.0.0.01", false),
            ("127.0.0.256", "127.0.0.256", false), ("127.0.0.+1", "127.0.0.+1", false),
            ("127.0.0.1.evil.example", "127.0.0.1.evil.example", false), ("localhost.evil", "localhost.evil", false),
            ("128.0.0.1", "128.0.0.1", false), ("127.0.0", "127.0.0", false), (".", ".", false),
        ]
    )
    func hosts(text: String, name: String, isLoopback: Bool) throws {
        let (found, isOwn) = text.withByteView { view in
            let authority = Authority(view)
            return (authority?.name, authority?.isLoopback)
        }
        #expect(found == name)
        #expect(isOwn == isLoopback)
    }

    @Test(
        "Everything else names no host",
        arguments: [
            "", ":", ":80", "localhost:x", "localhost:-1", "localhost:+1", "localhost:65536", "localhost:80:80",
            "user@localhost", "unix:/x", "local host", "localhost/", "localhost\0", "localhost\0.evil.com", "[::1",
            "::1", "h, i:x",
            "[]", "[1]", "[127.0.0.1]", "[::1]x", "[::1]:x", "[::1%25lo]", "a%", "a%2", "a%zz", "é", "a\\b",
            "a#b", " localhost", "localhost ",
        ]
    )
    func noHosts(text: String) {
        text.withByteView { #expect(Authority($0) == nil, "\(text)") }
    }
}
