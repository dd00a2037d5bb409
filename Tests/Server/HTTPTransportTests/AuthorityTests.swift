import HTTPTransport
import Testing
import Wire

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
            "::1",
            "[]", "[1]", "[127.0.0.1]", "[::1]x", "[::1]:x", "[::1%25lo]", "a%", "a%2", "a%zz", "é", "a\\b",
            "a#b", " localhost", "localhost ",
        ]
    )
    func noHosts(text: String) {
        text.withByteView { #expect(Authority($0) == nil, "\(text)") }
    }
}
