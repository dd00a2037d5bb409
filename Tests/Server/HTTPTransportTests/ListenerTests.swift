import Foundation
import Glibc
import HTTPTransport
import Testing

@Suite(.serialized, .timeLimit(.minutes(15)))
struct ListenerTests {
    /// A folder for sockets, removed at the end.
    private final class Folder {
        let path = NSTemporaryDirectory() + "wakegate-" + UUID().uuidString

        init() throws { try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: false) }

        deinit { try? FileManager.default.removeItem(atPath: self.path) }
    }

    @Test("A socket file serves HTTP/2 and HTTP/1.1, and its owner and group alone may connect")
    func unixSocket() throws {
        let folder = try Folder()
        let server = try TestServer(addresses: ["unix:\(folder.path)/s"])
        #expect(server.address == "unix:\(folder.path)/s")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/s")[.posixPermissions] as? Int
        #expect(mode == 0o660)
        try server.expectServed()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200 ") == true)
    }

    @Test("A socket file that nobody listens on any more is replaced")
    func staleSocket() throws {
        let folder = try Folder()
        // As of a process that was killed: a file that is left over like this refuses whoever connects.
        let left = try self.bind(folder.path + "/s")
        close(left)
        #expect(throws: ScriptedPeer.Refused.self) { try ScriptedPeer("unix:\(folder.path)/s") }
        let server = try TestServer(addresses: ["unix:\(folder.path)/s"])
        try server.expectServed()
    }

    /// A socket that is bound to a file and not listened on, as another program leaves it.
    private func bind(_ path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
        let result = unsafe withUnsafeBytes(of: &name) { bytes in
            unsafe Glibc.bind(
                descriptor,
                bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                socklen_t(bytes.count)
            )
        }
        try #require(result == 0)
        return descriptor
    }

    @Test("Whether an address can be listened on is found out without listening there, and leaves a socket file alone")
    func probe() throws {
        let folder = try Folder()
        let path = "\(folder.path)/s"
        let server = try TestServer(addresses: ["127.0.0.1:0", "unix:\(path)"])
        for address in server.server.boundAddresses {
            #expect(ListenProbe.fault(try .parse(address))?.code == .addressInUse, "\(address)")
        }
        try server.expectServed()
        #expect(ListenProbe.fault(try .parse("127.0.0.1:0")) == nil)
        #expect(ListenProbe.fault(try .parse("unix:\(folder.path)/other")) == nil)
        #expect(ListenProbe.fault(try .parse("192.0.2.1:2197"))?.code == .bind)
        let stale = "\(folder.path)/stale"
        close(try self.bind(stale))
        #expect(ListenProbe.fault(try .parse("unix:\(stale)")) == nil)
        #expect(FileManager.default.fileExists(atPath: stale))
    }

    @Test("A socket file goes with its server")
    func fileGoes() throws {
        let folder = try Folder()
        do {
            let server = try TestServer(addresses: ["unix:\(folder.path)/s"])
            try server.expectServed()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test("A socket file that took the place of the server's own stays")
    func othersFileStays() throws {
        let folder = try Folder()
        let other: Int32
        do {
            let server = try TestServer(addresses: ["unix:\(folder.path)/s"])
            try server.expectServed()
            try FileManager.default.removeItem(atPath: folder.path + "/s")
            other = try self.bind(folder.path + "/s")
        }
        defer { close(other) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["s"])
    }

    @Test("A socket file that somebody else opened stays")
    func inheritedFileStays() throws {
        let folder = try Folder()
        let address = "unix:\(folder.path)/s"
        let listener = Listener(address: try .parse(address), tls: nil, descriptor: try self.bind(folder.path + "/s"))
        do {
            let server = try HTTPServer(listeners: [listener], loopCount: 1) { ScriptedHandler($0, EventLog()) }
            try server.start()
            let peer = try ScriptedPeer(address)
            peer.beginHTTP2()
            TestServer.expectServed(peer)
            server.stop()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["s"])
    }

    @Test("A socket file that somebody listens on is refused, and that server goes on")
    func liveSocket() throws {
        let folder = try Folder()
        let server = try TestServer(addresses: ["unix:\(folder.path)/s"])
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: ["unix:\(folder.path)/s"]) }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains(folder.path) == true)
        try server.expectServed()
    }

    @Test("A file that is not a socket is not replaced")
    func ordinaryFile() throws {
        let folder = try Folder()
        try Data("mine".utf8).write(to: URL(fileURLWithPath: folder.path + "/s"))
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: ["unix:\(folder.path)/s"]) }
        #expect(error?.code == .addressInUse)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path + "/s")) == Data("mine".utf8))
    }

    @Test("[::] takes IPv4 and IPv6")
    func dualStack() throws {
        let server = try TestServer(addresses: ["[::]:0"])
        let hasIPv6 = FileManager.default.fileExists(atPath: "/proc/net/if_inet6")
        for host in hasIPv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"] {
            let peer = try ScriptedPeer(server.address, host: host)
            peer.beginHTTP2()
            TestServer.expectServed(peer)
        }
    }

    @Test("Several listeners are served side by side by several loops")
    func severalListeners() throws {
        let folder = try Folder()
        let server = try TestServer(
            addresses: ["127.0.0.1:0", "unix:\(folder.path)/s", "127.0.0.1:0"],
            loopCount: 2
        )
        #expect(Set(server.server.boundAddresses).count == 3)
        for address in server.server.boundAddresses + server.server.boundAddresses {
            let peer = try ScriptedPeer(address)
            peer.beginHTTP2()
            TestServer.expectServed(peer)
        }
    }

    @Test("A list with an address that cannot be had binds none of them")
    func allOrNothing() throws {
        let folder = try Folder()
        let taken = try TestServer()
        let addresses = ["unix:\(folder.path)/s", taken.address]
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: addresses) }
        #expect(error?.code == .addressInUse)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test("A connection over the limit waits until another ends; those that are open go on")
    func connectionsMax() throws {
        var limits = TransportLimits()
        limits.connectionsMax = 2
        let server = try TestServer(limits)
        let (first, second) = (try server.peer(), try server.peer())
        TestServer.expectServed(first)
        TestServer.expectServed(second)
        let third = try server.peer()
        third.send(ScriptedPeer.request("/echo", stream: 1))
        for number in 1...20 {
            for peer in [first, second] {
                peer.send(ScriptedPeer.request("/echo", stream: number * 2 + 1))
                #expect(peer.body(stream: number * 2 + 1) == [])
            }
        }
        #expect(!third.hasNews)
        first.close()
        #expect(third.frame(type: 1, stream: 1)?.status == 200)
        second.send(ScriptedPeer.request("/echo", stream: 101))
        #expect(second.body(stream: 101) == [])
    }
}
