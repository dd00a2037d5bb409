import HTTPClient
import Testing

@Suite("The scope of IP addresses")
struct IPAddressTests {
    @Test(
        "Every block of the registries is distinguished from the public Internet, to its first and last address",
        arguments: [
            ("0.0.0.0", .unspecified), ("0.255.255.255", .unspecified), ("1.0.0.0", .global),
            ("9.255.255.255", .global), ("10.0.0.0", .private), ("10.255.255.255", .private), ("11.0.0.0", .global),
            ("100.63.255.255", .global), ("100.64.0.0", .shared), ("100.127.255.255", .shared),
            ("100.128.0.0", .global), ("127.0.0.1", .loopback), ("127.255.255.255", .loopback),
            ("169.253.255.255", .global), ("169.254.169.254", .linkLocal), ("169.255.0.0", .global),
            ("172.15.255.255", .global), ("172.16.0.0", .private), ("172.31.255.255", .private),
            ("172.32.0.0", .global), ("192.0.0.8", .reserved), ("192.0.1.0", .global), ("192.0.2.1", .documentation),
            ("192.88.99.1", .reserved), ("192.167.255.255", .global), ("192.168.0.0", .private),
            ("192.168.255.255", .private), ("192.169.0.0", .global), ("198.17.255.255", .global),
            ("198.18.0.0", .benchmarking), ("198.19.255.255", .benchmarking), ("198.20.0.0", .global),
            ("198.51.100.7", .documentation), ("203.0.113.255", .documentation), ("223.255.255.255", .global),
            ("224.0.0.1", .multicast), ("239.255.255.255", .multicast), ("240.0.0.1", .reserved),
            ("255.255.255.254", .reserved), ("255.255.255.255", .broadcast),
        ] as [(String, AddressScope)]
    )
    func four(text: String, scope: AddressScope) throws {
        #expect(try #require(IPAddress(text)).scope == scope)
        // An IPv6 address that embeds it has the same scope.
        #expect(try #require(IPAddress("::ffff:\(text)")).scope == scope)
        #expect(try #require(IPAddress("64:ff9b::\(text)")).scope == scope)
        let bytes = try #require(IPAddress(text)).bytes
        let sixToFour = try #require(IPAddress(bytes: [0x20, 0x02] + bytes + Array(repeating: 0, count: 10)))
        #expect(sixToFour.scope == scope)
    }

    @Test(
        "Blocks of IPv6",
        arguments: [
            ("::", .unspecified), ("::1", .loopback), ("::2", .reserved), ("::10.0.0.1", .reserved),
            ("64:ff9b:1::1", .private), ("100::1", .reserved), ("1fff:ffff::", .reserved), ("2000::", .global),
            ("2001::1", .reserved), ("2001:1ff:ffff::", .reserved), ("2001:200::", .global),
            ("2001:db8::1", .documentation), ("2001:db9::1", .global), ("2606:4700::1111", .global),
            ("3fff:fff::1", .documentation), ("3fff:1000::1", .global), ("4000::1", .reserved),
            ("5f00::1", .reserved), ("fbff::1", .reserved), ("fc00::1", .private), ("fdff::1", .private),
            ("fe00::1", .reserved), ("fe80::1", .linkLocal), ("febf::1", .linkLocal), ("fec0::1", .private),
            ("feff::1", .private), ("ff02::1", .multicast),
        ] as [(String, AddressScope)]
    )
    func six(text: String, scope: AddressScope) throws {
        #expect(try #require(IPAddress(text)).scope == scope)
    }

    @Test(
        "Every notation of an address is read as the system reads it",
        arguments: [
            ("2130706433", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"),
            ("10.1", "10.0.0.1"), ("[::1]", "::1"), ("::FFFF:127.0.0.1", "::ffff:127.0.0.1"),
            ("fe80::1%eth0", "fe80::1"), ("[2001:DB8:0:0::1]", "2001:db8::1"), ("example.com", nil), ("", nil),
            ("256.1.1.1", nil), ("1.2.3.4.5", nil), ("[1.2.3.4]", nil), (":::", nil),
        ] as [(String, String?)]
    )
    func text(text: String, address: String?) {
        #expect(IPAddress(text)?.description == address)
    }

    @Test("Only 4 or 16 bytes are an address")
    func bytes() {
        for count in 0...20 {
            let address = IPAddress(bytes: Array(repeating: 1, count: count))
            #expect((address == nil) == (count != 4 && count != 16))
        }
    }

    @Test("A reach admits only its own scopes", arguments: AddressScope.allCases)
    func reach(scope: AddressScope) {
        #expect(AddressReach.anywhere.admits(scope))
        #expect(AddressReach.global.admits(scope) == (scope == .global))
        #expect(AddressReach.loopback.admits(scope) == (scope == .loopback))
    }
}

@Suite("URLs as libcurl divides them")
struct HTTPURLTests {
    @Test(
        "The displayed form of a URL contains no secret",
        arguments: [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://u:p@Example.com:443/a?key=1#x", "https://Example.com/a"),
            ("https://example.com:8443/a/b", "https://example.com:8443/a/b"),
            ("http://[::1]:80/", "http://[::1]/"), ("ftp://example.com/", nil), ("example.com", nil),
            ("https://", nil), ("https://a b/", nil), ("https://example.com:99999/", nil),
        ] as [(String, String?)]
    )
    func shown(text: String, shown: String?) {
        #expect(HTTPURL(text)?.shown == shown)
    }

    @Test("Host, port and the parts that may hold secrets are found")
    func parts() throws {
        let url = try #require(HTTPURL("https://u@0x7f.1/p?q#f"))
        #expect(url.address == IPAddress("127.0.0.1"))
        #expect(url.port == 443 && url.hasCredentials && url.hasQuery && url.hasFragment)
        let plain = try #require(HTTPURL("http://name.example/"))
        #expect(plain.address == nil && plain.port == 80)
        #expect(!plain.hasCredentials && !plain.hasQuery && !plain.hasFragment)
        // The connection goes to the address after a user name that looks like a host.
        #expect(HTTPURL("https://example.com@10.0.0.1/")?.address == IPAddress("10.0.0.1"))
    }

    @Test(
        "A host that would be connected to as something else is neither an address nor a DNS name",
        arguments: [
            "１２７.０.０.１", "127。0。0。1", "①②⑦.0.0.1", "１.example", "münchen.example", "%EF%BC%91.example", "127.0.0.1.",
            "256.1.1.1", "1.2.3.4.5", "0x7g.0x1", "a.0x", "a..b", ".", "..", ".a", "a..", "a~b", "a!b",
            String(repeating: "a", count: 64) + ".example", String(repeating: "a.", count: 127) + "aa",
        ]
    )
    func otherHosts(host: String) { #expect(HTTPURL("https://\(host)/")?.hasPlainHost != true) }

    @Test(
        "Valid DNS names and addresses are hosts",
        arguments: [
            "example.com", "EXAMPLE.com.", "xn--mnchen-3ya.example", "a_b.example", "1and1.example", "3com", "a-b.c0x1",
            String(repeating: "a", count: 63) + ".example", "8.8.8.8", "[2606:4700::1111]", "example.com:65535",
        ]
    )
    func hosts(host: String) { #expect(HTTPURL("https://\(host)/")?.hasPlainHost == true) }

    @Test(
        "A URL without a host, with missing or extra slashes, or with an invalid port is none",
        arguments: [
            "https:///x", "https:/x", "https:////x", "https:x", "https:", "https://", "https://:443/", "https://?x",
            "https://example.com:65536/", "https://example.com:x/", "https://a b/", "https://a%20b/", "https://a%00b/",
            "https://a%2fb/", "https://[::1/", "https://[::g]/", " https://example.com/", "//example.com/",
        ]
    )
    func none(text: String) { #expect(HTTPURL(text) == nil) }

    @Test(
        "An address is found in every notation, also after a user",
        arguments: [
            "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "%31%32%37.0.0.1", "0300.0250.0.01", "10.1", "[::1]",
            "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[fe80::1%25eth0]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0",
            "user@127.0.0.1", "example.com@127.0.0.1",
        ]
    )
    func addresses(host: String) throws {
        #expect(try #require(HTTPURL("https://\(host)/")?.address).scope != .global)
    }

    @Test(
        "Only localhost and loopback addresses are this machine",
        arguments: [
            ("http://localhost:2197/", true), ("https://127.0.0.2/v1", true), ("https://[::1]:9/", true),
            ("https://localhost.example.com/", false), ("https://127.example.com/", false),
            ("https://10.0.0.1/", false), ("127.0.0.1", false),
        ]
    )
    func loopback(url: String, isForLoopback: Bool) {
        #expect(HTTPRequest("GET", url).isForLoopback == isForLoopback)
    }
}
