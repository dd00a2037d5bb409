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

    static let frameFaults: [Fault] = [
        Fault("a frame over the limit", 6, Peer.frame(0, stream: 1, [UInt8](repeating: 0, count: 16_385))),
        Fault("an index that HPACK does not have", 9, Peer.frame(1, flags: 5, stream: 1, [0xFF, 0xFF, 0x7F])),
        Fault("a connection window over 2^31-1", 3, Peer.frame(8, Peer.bytes(0x7FFF_FFFF))),
        Fault("DATA on an idle stream", 1, Peer.frame(0, stream: 1, [1])),
        Fault("HEADERS on an even stream", 1, Peer.request("/echo", stream: 2)),
        Fault("ENABLE_PUSH that is not 0 or 1", 1, Peer.frame(4, Peer.setting(2, 2))),
        Fault("an initial window over 2^31-1", 3, Peer.frame(4, Peer.setting(4, 0x8000_0000))),
        Fault("a frame size limit below 16384", 1, Peer.frame(4, Peer.setting(5, 100))),
        Fault("SETTINGS of five bytes", 6, Peer.frame(4, [0, 4, 0, 0, 0])),
        Fault("SETTINGS on a stream", 1, Peer.frame(4, stream: 1)),
        Fault("PING of seven bytes", 6, Peer.frame(6, [1, 2, 3, 4, 5, 6, 7])),
        Fault("WINDOW_UPDATE of nothing", 1, Peer.frame(8, [0, 0, 0, 0])),
        Fault("PUSH_PROMISE from a client", 1, Peer.frame(5, flags: 4, stream: 1, [0, 0, 0, 2])),
        Fault("RST_STREAM on an idle stream", 1, Peer.frame(3, stream: 5, Peer.bytes(8))),
        Fault("WINDOW_UPDATE of nothing on a stream", 1, Peer.request("/wait", stream: 1) + Peer.update(stream: 1, 0)),
        Fault("WINDOW_UPDATE on an idle stream", 1, Peer.update(stream: 1, 1)),
        Fault("an answer to SETTINGS that has settings", 6, Peer.frame(4, flags: 1, Peer.setting(4, 1))),
        Fault("RST_STREAM of three bytes", 6, Peer.request("/wait", stream: 1) + Peer.frame(3, stream: 1, [0, 0, 8])),
        Fault("RST_STREAM without a stream", 1, Peer.frame(3, Peer.bytes(8))),
        Fault("PING on a stream", 1, Peer.frame(6, stream: 1, [UInt8](repeating: 0, count: 8))),
        Fault("GOAWAY on a stream", 1, Peer.frame(7, stream: 1, [UInt8](repeating: 0, count: 8))),
        Fault("DATA without a stream", 1, Peer.frame(0, [1])),
        Fault("padding longer than its frame", 1, Peer.frame(1, flags: 0x0D, stream: 1, [200, 0x82])),
        Fault(
            "a second header table size that is over the limit",
            9,
            Peer.frame(1, flags: 5, stream: 1, [0x3F, 0xE2, 0x1F])
        ),
        Fault("CONTINUATION without HEADERS", 1, Peer.frame(9, flags: 4, stream: 1, [0x82])),
    ]

    static var allFaults: [Fault] { Self.frameFaults + Self.sequenceFaults }

    static let sequenceFaults: [Fault] = [
        Fault("HEADERS on an older number", 1, Peer.request("/wait", stream: 5) + Peer.request("/wait", stream: 3)),
        Fault(
            "HEADERS again on a stream that waits",
            5,
            Peer.request("/wait", stream: 1) + Peer.request("/wait", stream: 1)
        ),
        Fault("DATA after the end of a request", 5, Peer.request("/wait", stream: 1) + Peer.frame(0, stream: 1, [1])),
        Fault(
            "a header block without end",
            11,
            Peer.frame(1, flags: 1, stream: 1, [0x82]) + Self.repeated(1500) { _ in Peer.frame(9, stream: 1) }
        ),
        Fault(
            "another frame within a header block",
            1,
            Peer.frame(1, flags: 1, stream: 1, Peer.headers("/echo")) + Peer.frame(6, [UInt8](repeating: 0, count: 8))
        ),
        Fault("a flood of PING", 11, Self.repeated(1500) { _ in Peer.frame(6, [UInt8](repeating: 0, count: 8)) }),
        Fault("a flood of SETTINGS", 11, Self.repeated(1500) { _ in Peer.frame(4) }),
        Fault(
            "a flood of streams that are reset",
            11,
            Self.repeated(1500) { index in
                Peer.request("/wait", stream: index * 2 + 1) + Peer.frame(3, stream: index * 2 + 1, Peer.bytes(8))
            }
        ),
        Fault(
            "a flood of empty DATA",
            11,
            Peer.request("/echo", stream: 1, ended: false) + Self.repeated(1500) { _ in Peer.frame(0, stream: 1) }
        ),
    ]

    @Test(
        "A fault of the connection ends it with GOAWAY and its code",
        arguments: Self.allFaults
    )
    func connectionFault(_ fault: Fault) throws {
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

    @Test("A preface that goes wrong ends the connection")
    func badPreface() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
        #expect(peer.frame(type: 7)?.errorCode == 1)
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    static let streamFaults: [Fault] = [
        Fault(
            "a stream window over 2^31-1",
            3,
            ScriptedPeer.frame(8, stream: 1, ScriptedPeer.bytes(0x7FFF_FFFF))
        ),
        Fault("more DATA than content-length", 1, ScriptedPeer.frame(0, flags: 1, stream: 1, [1, 2, 3, 4])),
    ]

    @Test("A fault of a stream resets it, and the connection goes on", arguments: Self.streamFaults)
    func streamFault(_ fault: Fault) throws {
        let server = try TestServer()
        let peer = try server.peer()
        let block = ScriptedPeer.headers("/echo", isPost: true) + ScriptedPeer.field("content-length", "3")
        peer.send(ScriptedPeer.frame(1, flags: 4, stream: 1, block) + fault.bytes)
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == fault.errorCode)
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.body(stream: 3) == [])
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

    @Test("A request that does not arrive in time is reset")
    func slowHeader() throws {
        var limits = TransportLimits()
        limits.requestSeconds = 1
        let server = try TestServer(limits)
        let peer = try server.peer()
        peer.send(ScriptedPeer.frame(1, flags: 0, stream: 1, [0x82]))
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == 8)
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
        let server = try TestServer()
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
