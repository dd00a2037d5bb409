import Foundation
import Glibc
import HTTPTransport
import Testing
import WakeGateTestKit

/// Every limit that needs sockets. Below it, nothing happens. Beyond it, the offender is refused, others are served,
/// and the event is counted.
@Suite("The limits of a server", .serialized, .timeLimit(.minutes(15)))
struct ServerBoundTests {
    private typealias Peer = ScriptedPeer

    @Test("At the connection limit operators still get in, up to their reserve")
    func reserved() throws {
        let limits = TransportLimits { $0.connectionsMax = 2 }
        let server = try TestServer(limits, addresses: ["127.0.0.1:0", "127.0.0.1:0"], reserved: 1)
        let peers = [try server.peer(), try server.peer()]
        for peer in peers { TestServer.expectServed(peer) }
        #expect(server.times(.connectionsMax) == 0)
        let waiting = try server.peer()
        #expect(server.isMet(.connectionsMax, while: peers[0]))
        let operators = try (0..<2).map { _ in try Peer(server.server.boundAddresses[1]) }
        for peer in operators { peer.beginHTTP2() }
        TestServer.expectServed(operators[0])
        #expect(!waiting.hasNews && !operators[1].hasNews)
        peers[1].close()
        operators[0].close()
        TestServer.expectServed(waiting)
        TestServer.expectServed(operators[1])
    }

    @Test("Connections are limited per address: one more is ended, and other addresses and socket files are served")
    func perAddress() throws {
        let folder = try TemporaryFolder()
        let server = try TestServer(
            TransportLimits { $0.connectionsPerAddressMax = 2 },
            addresses: ["127.0.0.1:0", "unix:\(folder.path)/s", "127.0.0.1:0"],
            loopCount: 2
        )
        let first = [try server.peer(), try server.peer()]
        for peer in first { TestServer.expectServed(peer) }
        #expect(server.times(.connectionsPerAddressMax) == 0)
        #expect(try server.peer().hasEnded())
        #expect(server.times(.connectionsPerAddressMax) == 1)
        var others = [try Peer(server.address, from: "127.0.0.2")]
        others += try (0..<3).map { _ in try Peer("unix:\(folder.path)/s") }
        // The limit applies to each listener separately.
        others.append(try Peer(server.server.boundAddresses[2]))
        for peer in others { TestServer.expectServed(peer, begins: true) }
        #expect(server.times(.connectionsPerAddressMax) == 1)
        first[0].close()
        // The server notices the end with a delay.
        let deadline = ContinuousClock.now + .seconds(60)
        var again = try server.peer()
        while again.frame(type: .settings) == nil, ContinuousClock.now < deadline { again = try server.peer() }
        TestServer.expectServed(again)
    }

    @Test("IPv4 clients of a dual-stack listener are counted by address; zero means no limit")
    func perAddressOfBoth() throws {
        let server = try TestServer(TransportLimits { $0.connectionsPerAddressMax = 1 }, addresses: ["[::]:0"])
        for source in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
            let peer = try Peer(server.address, from: source)
            TestServer.expectServed(peer, begins: true)
            #expect(try Peer(server.address, from: source).hasEnded())
            peer.close()
        }
        #expect(server.times(.connectionsPerAddressMax) == 3)
        let open = try TestServer(TransportLimits { $0.connectionsPerAddressMax = 0 })
        let peers = try (0..<20).map { _ in try open.peer() }
        for peer in peers { TestServer.expectServed(peer) }
    }

    @Test("An excess silent connection ends the oldest silent one; connections that send requests are served")
    func handshakes() throws {
        let server = try TestServer(TransportLimits { $0.handshakesMax = 2 })
        let served = try server.peer()
        TestServer.expectServed(served)
        let silent = try (0..<2).map { _ in try Peer(server.address) }
        silent[0].send("PRI")
        let third = try Peer(server.address)
        #expect(silent[0].hasEnded())
        #expect(server.times(.handshakesMax) == 1)
        for peer in [third, silent[1]] {
            #expect(!peer.hasNews)
            TestServer.expectServed(peer, begins: true)
        }
        // Connections that have sent a request make room for as many that have not.
        for _ in 0..<10 { try server.expectServed() }
        #expect(server.times(.handshakesMax) == 1)
    }

    @Test("Incomplete TLS handshakes are ended in favor of others")
    func tlsHandshakes() throws {
        let tls = try FaultScene.makeContext()
        let server = try TestServer(TransportLimits { $0.handshakesMax = 20 }, tls: tls)
        // The beginning of a ClientHello that never continues.
        let peers = try (0..<100).map { _ in try Peer(server.address) }
        for peer in peers { peer.send([0x16, 0x03, 0x01, 0x02, 0x00]) }
        for peer in peers.prefix(80) { #expect(peer.hasEnded()) }
        #expect(server.times(.handshakesMax) == 80)
        #expect(peers.suffix(20).allSatisfy { !$0.hasNews })
    }

    @Test("A connection that lets its answers pile up is ended, and its queued bytes are freed")
    func queuedBytes() async throws {
        let server = try TestServer(TransportLimits { $0.queuedBytesPerConnectionMax = 40_000 })
        let peer = try server.peer(settings: Peer.setting(.initialWindowSize, 0))
        for number in [1, 3] {
            peer.send(Peer.request("/fill", stream: number))
            await server.log.wait(for: "filled \(number)")
        }
        try server.expectServed()
        #expect(server.times(.queuedBytesPerConnectionMax) == 0)
        peer.send(Peer.request("/fill", stream: 5))
        await server.log.wait(for: "connection closed")
        #expect(peer.hasEnded())
        #expect(server.times(.queuedBytesPerConnectionMax) == 1)
        try server.expectServed()
    }

    @Test("An answer that is too large at once ends its connection, too, also with HTTP/1.1")
    func queuedAnswer() throws {
        let server = try TestServer(TransportLimits { $0.queuedBytesPerConnectionMax = 19_999 })
        let peer = try server.peer(settings: Peer.setting(.initialWindowSize, 0))
        peer.send(Peer.request("/big", stream: 1))
        #expect(peer.hasEnded())
        let old = try Peer(server.address)
        old.send("GET /fill HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(old.hasEnded())
        #expect(server.times(.queuedBytesPerConnectionMax) == 2)
        try server.expectServed()
    }

    @Test("A turn accepts and reads a limited amount; the rest is left for the next turn, and is counted")
    func turns() throws {
        let server = try TestServer(TransportLimits { $0.readBytesPerTurn = 16_384 })
        let peer = try server.peer()
        TestServer.expectServed(peer)
        #expect(server.times(.acceptsPerTurn) == 0)
        #expect(server.times(.readBytesPerTurn) == 0)
        for index in 1...200 { peer.send(Peer.request("/echo", stream: 2 * index + 1)) }
        for index in 1...200 { #expect(peer.body(stream: 2 * index + 1) == []) }
        peer.send((201...900).flatMap { Peer.request("/echo", stream: 2 * $0 + 1) })
        for index in 201...900 { #expect(peer.body(stream: 2 * index + 1) == []) }
        #expect(server.times(.readBytesPerTurn) > 0)

        let hasty = try TestServer(TransportLimits { $0.acceptsPerTurn = 1 })
        try hasty.expectServed()
        #expect(hasty.times(.acceptsPerTurn) == 1)
    }

    @Test("A connection is not read while too many answers are queued, and is read again when they are sent")
    func outputFrames() throws {
        let limits = TransportLimits {
            $0.outputFramesMax = 4
            $0.queuedBytesPerConnectionMax = 67_108_864
        }
        let server = try TestServer(limits)
        let peer = try server.peer(settings: Peer.setting(.initialWindowSize, 0x7FFF_FFFF))
        peer.send(Peer.update(0x7000_0000))
        for index in 0..<60 { peer.send(Peer.request("/big", stream: index * 2 + 1)) }
        // The first answers may have been written before one had to wait. Those of later requests wait after them.
        let served = try server.peer()
        let deadline = ContinuousClock.now + .seconds(60)
        var number = 0
        while server.times(.outputFramesMax) == 0 {
            number += 1
            try #require(ContinuousClock.now < deadline)
            if number <= 300 { peer.send(Peer.request("/echo", stream: 119 + number * 2)) }
            served.send(Peer.request("/echo", stream: number * 2 - 1))
            #expect(served.body(stream: number * 2 - 1) == [])
        }
        var count = 0
        while count < 60 * 300_000, let frame = peer.nextFrame() {
            if frame.type == .data { count += frame.payload.count }
        }
        #expect(count == 60 * 300_000)
    }

    @Test("Handshakes, PINGs and closing connections have time limits, and exceeding them is counted")
    func seconds() async throws {
        let limits = TransportLimits {
            // Peers that are served need some time, too.
            $0.handshakeSeconds = 3
            $0.pingSeconds = 1
            $0.lingerSeconds = 1
        }
        let server = try TestServer(limits)
        let served = try server.peer()
        TestServer.expectServed(served)
        let silent = try Peer(server.address)
        let halting = try Peer(server.address)
        halting.send("PRI * HT")
        let mute = try Peer(server.address)
        mute.send(Peer.preface)
        #expect(silent.hasEnded())
        #expect(halting.hasEnded())
        #expect(mute.hasEnded())
        // Read at the end: the peer acknowledges the settings that it reads, and is then no longer mute.
        #expect(mute.frame(type: .settings) != nil)
        #expect(server.isMet(.handshakeSeconds, times: 3, while: try server.peer()))
        let unanswering = try server.peer()
        unanswering.send(Peer.request("/stream", stream: 1))
        await server.log.wait(for: "closed 1")
        #expect(server.times(.pingSeconds) == 1)
        let faulty = try server.peer()
        faulty.send(Peer.frame(.ping, [1]))
        #expect(faulty.frame(type: .goAway)?.errorCode == .frameSizeError)
        #expect(server.isMet(.lingerSeconds, while: served))
    }

    @Test("A socket that accepts nothing for too long is closed and counted, and others are served")
    func writeStall() async throws {
        let limits = TransportLimits {
            $0.writeStallSeconds = 1
            $0.queuedBytesPerConnectionMax = 67_108_864
        }
        let server = try TestServer(limits)
        let peer = try server.peer(settings: Peer.setting(.initialWindowSize, 0x7FFF_FFFF))
        peer.send(Peer.update(0x7000_0000))
        for index in 0..<60 { peer.send(Peer.request("/big", stream: index * 2 + 1)) }
        await server.log.wait(for: "connection closed")
        #expect(server.times(.writeStallSeconds) == 1)
        try server.expectServed()
        #expect(peer.hasEnded())
    }
}

@Suite(.serialized, .timeLimit(.minutes(15)))
struct ListenerTests {
    private let folder: TemporaryFolder
    private let address: String

    init() throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        self.address = "unix:\(folder.path)/s"
    }

    @Test("A socket file serves HTTP/2 and HTTP/1.1, and only its owner and group may connect")
    func unixSocket() throws {
        let server = try TestServer(addresses: [self.address])
        #expect(server.address == self.address)
        let mode = try FileManager.default.attributesOfItem(atPath: self.folder.path + "/s")[.posixPermissions] as? Int
        #expect(mode == 0o660)
        try server.expectServed()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200 ") == true)
    }

    @Test("A stale socket file is replaced")
    func staleSocket() throws {
        // A killed process leaves such a socket file, which refuses every connection.
        let left = try self.bind(self.folder.path + "/s")
        close(left)
        #expect(throws: ScriptedPeer.Refused.self) { try ScriptedPeer(self.address) }
        let server = try TestServer(addresses: [self.address])
        try server.expectServed()
    }

    /// Creates a socket that is bound to a file but does not listen, like one left by another program.
    private func bind(_ path: String) throws -> Int32 {
        let (descriptor, result) = unsafe ScriptedPeer.socket(unix: path) { unsafe Glibc.bind($0, $1, $2) }
        try #require(result == 0)
        return descriptor
    }

    @Test("An address can be checked without listening there, and without touching a socket file")
    func probe() throws {
        let server = try TestServer(addresses: ["127.0.0.1:0", self.address])
        for address in server.server.boundAddresses {
            #expect(ListenProbe.fault(try .parse(address))?.code == .addressInUse, "\(address)")
        }
        try server.expectServed()
        #expect(ListenProbe.fault(try .parse("127.0.0.1:0")) == nil)
        #expect(ListenProbe.fault(try .parse("unix:\(self.folder.path)/other")) == nil)
        #expect(ListenProbe.fault(try .parse("192.0.2.1:2197"))?.code == .bind)
        let stale = "\(self.folder.path)/stale"
        close(try self.bind(stale))
        #expect(ListenProbe.fault(try .parse("unix:\(stale)")) == nil)
        #expect(FileManager.default.fileExists(atPath: stale))
    }

    @Test("A socket file is removed with its server")
    func fileGoes() throws {
        do {
            let server = try TestServer(addresses: [self.address])
            try server.expectServed()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder.path) == [])
    }

    @Test("A socket file that replaced the server's own stays")
    func othersFileStays() throws {
        let other: Int32
        do {
            let server = try TestServer(addresses: [self.address])
            try server.expectServed()
            try FileManager.default.removeItem(atPath: self.folder.path + "/s")
            other = try self.bind(self.folder.path + "/s")
        }
        defer { close(other) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder.path) == ["s"])
    }

    @Test("A socket file of an inherited descriptor stays")
    func inheritedFileStays() throws {
        let listener = Listener(
            address: try .parse(self.address),
            tls: nil,
            descriptor: try self.bind(self.folder.path + "/s")
        )
        do {
            let server = try HTTPServer(listeners: [listener], loopCount: 1) { ScriptedHandler($0, EventLog()) }
            try server.start()
            TestServer.expectServed(try ScriptedPeer(self.address), begins: true)
            server.stop()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder.path) == ["s"])
    }

    @Test("A socket file in use is refused, and its server continues")
    func liveSocket() throws {
        let server = try TestServer(addresses: [self.address])
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: [self.address]) }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains(self.folder.path) == true)
        try server.expectServed()
    }

    @Test("A file that is not a socket is not replaced")
    func ordinaryFile() throws {
        try Data("mine".utf8).write(to: URL(fileURLWithPath: self.folder.path + "/s"))
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: [self.address]) }
        #expect(error?.code == .addressInUse)
        #expect(try Data(contentsOf: URL(fileURLWithPath: self.folder.path + "/s")) == Data("mine".utf8))
    }

    @Test("[::] accepts IPv4 and IPv6")
    func dualStack() throws {
        let server = try TestServer(addresses: ["[::]:0"])
        let hasIPv6 = FileManager.default.fileExists(atPath: "/proc/net/if_inet6")
        for host in hasIPv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"] {
            TestServer.expectServed(try ScriptedPeer(server.address, host: host), begins: true)
        }
    }

    @Test("If one address of a list cannot be bound, none of them is")
    func allOrNothing() throws {
        let taken = try TestServer()
        let addresses = [self.address, taken.address]
        let error = #expect(throws: TransportError.self) { try TestServer(addresses: addresses) }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains(taken.address) == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder.path) == [])
    }
}
