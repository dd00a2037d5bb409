import HTTPTransport
import Testing

/// Every fault ends the offender with the error that RFC 9113 names, and nobody else.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP2FaultTests {
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let errorCode: Int

        init(_ name: String, _ errorCode: Int, _ bytes: [UInt8]) {
            self.testDescription = name
            self.errorCode = errorCode
            self.bytes = bytes
        }
    }

    private typealias Peer = ScriptedPeer

    private static func repeated(_ count: Int, _ make: (Int) -> [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<count { bytes += make(index) }
        return bytes
    }

    /// The floods, and what ends a connection at once by its form.
    static var allFaults: [Fault] {
        Self.floods
            + ConformanceCase.all.filter(\.isImmediateConnectionError).filter { $0.opening.count > 24 }.compactMap {
                rule in
                guard case .connectionError(let codes) = rule.outcome else { return nil }
                return Fault(rule.testDescription, Int(codes[0].number), rule.sent)
            }
    }

    static let floods: [Fault] = [
        Fault(
            "a header block without end",
            11,
            Peer.frame(1, flags: 1, stream: 1, [0x82]) + Self.repeated(1500) { _ in Peer.frame(9, stream: 1) }
        ),
        Fault("a flood of PING", 11, Self.repeated(1500) { _ in Peer.frame(6, [UInt8](repeating: 0, count: 8)) }),
        Fault("a flood of SETTINGS", 11, Self.repeated(1500) { _ in Peer.frame(4) }),
        Fault("a flood of PRIORITY", 11, Self.repeated(1500) { _ in Peer.frame(2, stream: 1, [0, 0, 0, 0, 15]) }),
        Fault("a flood of WINDOW_UPDATE", 11, Self.repeated(1500) { _ in Peer.update(1) }),
        Fault(
            "a flood of WINDOW_UPDATE on a stream",
            11,
            Peer.request("/wait", stream: 1) + Self.repeated(1500) { _ in Peer.update(stream: 1, 1) }
        ),
        Fault(
            "a flood of GOAWAY",
            11,
            Peer.request("/wait", stream: 1)
                + Self.repeated(1500) { _ in Peer.frame(7, [UInt8](repeating: 0, count: 8)) }
        ),
        Fault(
            "a flood of streams that are reset",
            11,
            Self.repeated(1500) { index in
                Peer.request("/wait", stream: index * 2 + 1) + Peer.frame(3, stream: index * 2 + 1, Peer.bytes(8))
            }
        ),
        Fault(
            "a flood of streams that are reset without an error",
            11,
            Self.repeated(1500) { index in
                Peer.request("/wait", stream: index * 2 + 1) + Peer.frame(3, stream: index * 2 + 1, Peer.bytes(0))
            }
        ),
        Fault(
            "a flood of empty DATA",
            11,
            Peer.request("/echo", stream: 1, ended: false) + Self.repeated(1500) { _ in Peer.frame(0, stream: 1) }
        ),
    ]

    /// Streams that we reset count when the frame leaves that says so, and those of one read leave together.
    private static let overflows = Fault(
        "a flood of streams whose windows overflow",
        11,
        Self.repeated(1500) { index in
            Peer.request("/wait", stream: index * 2 + 1) + Peer.update(stream: index * 2 + 1, 0x7FFF_FFFF)
        }
    )

    @Test(
        "A flood ends its connection with GOAWAY and its code",
        arguments: Self.floods + [Self.overflows]
    )
    func flood(_ fault: Fault) throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(fault.bytes)
        #expect(peer.frame(type: 7)?.errorCode == fault.errorCode)
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test("An answer that comes after a fault ended its connection harms nobody")
    func answerAfterFault() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(Peer.request("/wait", stream: 1) + Peer.frame(0, [0x78]))
        await server.log.wait(for: "closed 1")
        let other = try server.peer()
        other.send(Peer.request("/release", stream: 1))
        #expect(other.frame(type: 1, stream: 1)?.status == 200)
        try server.expectServed()
    }

    @Test("A stream over the limit is refused, the others are answered")
    func refusedStream() async throws {
        var limits = TransportLimits()
        limits.streamsPerConnectionMax = 4
        let server = try TestServer(limits)
        let peer = try server.peer()
        let announced = try #require(peer.frame(type: 4)).payload
        #expect(Array(announced[6..<12]) == ScriptedPeer.setting(3, 4))
        for index in 0..<5 { peer.send(ScriptedPeer.request("/wait", stream: index * 2 + 1)) }
        let reset = try #require(peer.frame(type: 3))
        #expect(reset.stream == 9)
        #expect(reset.errorCode == 7)
        let other = try server.peer()
        other.send(ScriptedPeer.request("/release", stream: 1))
        #expect(peer.body(stream: 1) == [UInt8]("released".utf8))
    }

    @Test("A request that is reset half-way leaves the other streams alone")
    func resetInBody() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        peer.send(
            ScriptedPeer.frame(0, stream: 1, [1, 2, 3]) + ScriptedPeer.frame(3, stream: 1, ScriptedPeer.bytes(8))
        )
        peer.send(ScriptedPeer.request("/echo", stream: 3, ended: false))
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: 3, [7]))
        #expect(peer.body(stream: 3) == [7])
    }

    @Test("A header list over the limit is answered 431, and the connection goes on")
    func headerListTooLarge() throws {
        let server = try TestServer()
        let peer = try server.peer()
        let fields = (0..<80).flatMap { ScriptedPeer.field("x-\($0)", String(repeating: "v", count: 100)) }
        peer.send(ScriptedPeer.frame(1, flags: 5, stream: 1, ScriptedPeer.headers("/echo") + fields))
        let answer = try #require(peer.frame(type: 1, stream: 1))
        #expect(answer.status == 431)
        #expect(answer.flags & 1 == 1)
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.body(stream: 3) == [])
    }

    @Test(
        "Fields far over the limit, from a block within it, are reset and not looked at further",
        arguments: [false, true]
    )
    func fieldBomb(inTrailers: Bool) throws {
        let server = try TestServer()
        let peer = try server.peer()
        // An entry of 4,032 bytes, and references to it of one byte each.
        let entry = [0x40, 1, 0x78, 0x7F, 0xA1, 0x1E] + [UInt8](repeating: 0x76, count: 4000)
        let bomb = entry + [UInt8](repeating: 0xBE, count: 10_000)
        if inTrailers {
            peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false) + ScriptedPeer.frame(0, stream: 1, [1]))
            peer.send(ScriptedPeer.frame(1, flags: 5, stream: 1, bomb))
        } else {
            peer.send(ScriptedPeer.frame(1, flags: 5, stream: 1, ScriptedPeer.headers("/echo") + bomb))
        }
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == 11)
        // The table is as it would be, had all of it been looked at.
        peer.send(ScriptedPeer.frame(1, flags: 5, stream: 3, ScriptedPeer.headers("/echo") + [0xBE]))
        #expect(peer.frame(type: 1, stream: 3)?.status == 200)
        try server.expectServed()
    }

    @Test("A request that does not arrive in time is reset, and one whose head does not ends its connection")
    func slowHeader() throws {
        var limits = TransportLimits()
        limits.requestSeconds = 1
        let server = try TestServer(limits)
        let slow = try server.peer()
        slow.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        #expect(slow.frame(type: 3, stream: 1)?.errorCode == 8)
        slow.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(slow.frame(type: 1, stream: 3)?.status == 200)
        let peer = try server.peer()
        // Nothing may come within a block, not even what the server's settings are answered with.
        #expect(peer.frame(type: 4) != nil)
        peer.send(ScriptedPeer.frame(1, flags: 0, stream: 1, [0x82]))
        #expect(peer.frame(type: 7)?.errorCode == 11)
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test("A connection that says nothing is ended")
    func silence() throws {
        var limits = TransportLimits()
        limits.handshakeSeconds = 1
        let server = try TestServer(limits)
        let silent = try ScriptedPeer(server.address)
        let halting = try ScriptedPeer(server.address)
        halting.send("PRI * HT")
        #expect(silent.hasEnded())
        #expect(halting.hasEnded())
        try server.expectServed()
    }

    @Test("A peer that takes nothing costs nobody else's time, and gets its answer when it does")
    func zeroWindow() throws {
        let server = try TestServer()
        let peer = try server.peer(settings: ScriptedPeer.setting(4, 0))
        peer.send(ScriptedPeer.request("/big", stream: 1))
        #expect(peer.frame(type: 1, stream: 1) != nil)
        try server.expectServed()
        peer.send(ScriptedPeer.frame(8, ScriptedPeer.bytes(400_000)))
        peer.send(ScriptedPeer.frame(8, stream: 1, ScriptedPeer.bytes(400_000)))
        #expect(peer.body(stream: 1)?.count == 300_000)
    }

    @Test("A peer that reads nothing from its socket is not served further, the others are")
    func unreadSocket() throws {
        var limits = TransportLimits()
        limits.queuedBytesPerConnectionMax = 67_108_864
        let server = try TestServer(limits)
        let settings = ScriptedPeer.setting(4, 0x7FFF_FFFF)
        let peer = try server.peer(settings: settings)
        peer.send(ScriptedPeer.frame(8, ScriptedPeer.bytes(0x7000_0000)))
        for index in 0..<60 { peer.send(ScriptedPeer.request("/big", stream: index * 2 + 1)) }
        try server.expectServed()
        var count = 0
        while count < 60 * 300_000, let frame = peer.nextFrame() {
            if frame.type == 0 { count += frame.payload.count }
        }
        #expect(count == 60 * 300_000)
    }
}
