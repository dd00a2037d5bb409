import HTTPTransport
import Testing
import Wire

@Suite(.timeLimit(.minutes(15)))
struct HTTP2SessionTests {
    private typealias Peer = ScriptedPeer

    /// A connection with everything that may come in parts: padding, CONTINUATION, trailers, unknown frames, resets.
    private static let conversation: [UInt8] = {
        let block = Peer.headers("/echo", isPost: true) + Peer.field("x-long", String(repeating: "v", count: 40))
        return Peer.preface + Peer.frame(4, Peer.setting(4, 40))
            + Peer.frame(1, flags: 0, stream: 1, Array(block[..<9]))
            + Peer.frame(9, flags: 4, stream: 1, Array(block[9...]))
            + Peer.frame(0, flags: 8, stream: 1, [2, 0x61, 0x62, 0, 0]) + Peer.frame(0, flags: 1, stream: 1, [0x63])
            + Peer.frame(6, [1, 2, 3, 4, 5, 6, 7, 8]) + Peer.frame(0x42, stream: 3, [9])
            + Peer.request("/echo", stream: 3, ended: false)
            + Peer.frame(1, flags: 5, stream: 3, Peer.field("a", "b"))
            + Peer.request("/wait", stream: 5) + Peer.frame(3, stream: 5, Peer.bytes(8))
            + Peer.request("/late", stream: 7) + Peer.update(stream: 7, 5)
            // Padded and with a priority, in two frames, the second of which has nothing.
            + Peer.frame(1, flags: 0x29, stream: 9, [3, 0, 0, 0, 0, 7] + Peer.headers("/more") + [0, 0, 0])
            + Peer.frame(9, flags: 0, stream: 9, []) + Peer.frame(9, flags: 4, stream: 9, [])
    }()

    private static func outcome(ofParts parts: [ArraySlice<UInt8>]) -> (events: [String], output: [UInt8]) {
        let fixture = SessionFixture(hasBegun: false)
        for part in parts { fixture.receive(Array(part)) }
        return (fixture.takeEvents(), fixture.produceBytes())
    }

    @Test("The same bytes in two parts, cut anywhere, or one by one, come to the same")
    func anyParts() {
        let bytes = Self.conversation[...]
        let whole = Self.outcome(ofParts: [bytes])
        let fields = "host=h,x-long=" + String(repeating: "v", count: 40)
        #expect(
            whole.events == [
                "limit 1", "1 POST /echo h \(fields) abc", "limit 3", "3 POST /echo h host=h ",
                "5 GET /wait h host=h ", "closed 5", "7 GET /late h host=h ", "9 GET /more h host=h ",
            ]
        )
        for cut in 1..<bytes.count {
            let parts = Self.outcome(ofParts: [bytes[..<cut], bytes[cut...]])
            #expect(parts == whole, "cut at \(cut)")
        }
        #expect(Self.outcome(ofParts: bytes.indices.map { bytes[$0...$0] }) == whole)
    }

    /// The states of `StreamState.Phase` as a peer brings them about on stream 1.
    enum State: CaseIterable, CustomTestStringConvertible {
        case receiving, waiting, sending, streaming, closed

        var testDescription: String { "\(self)" }

        func makeFixture() -> SessionFixture {
            let fixture = SessionFixture(settings: ScriptedPeer.setting(4, 0))
            fixture.receive(ScriptedPeer.request("/wait", stream: 1, ended: self != .receiving))
            switch self {
            case .receiving, .waiting: ()
            case .sending: #expect(fixture.respond(1, body: "answer"))
            case .streaming: #expect(fixture.session.beginStreaming(1, Response()))
            case .closed: fixture.receive(ScriptedPeer.frame(3, stream: 1, ScriptedPeer.bytes(8)))
            }
            _ = fixture.produce()
            _ = fixture.takeEvents()
            return fixture
        }
    }

    enum Event: CaseIterable, CustomTestStringConvertible {
        case respond, beginStreaming, write, finish, peerResets, connectionEnds

        var testDescription: String { "\(self)" }

        /// What the call answers; empty for those that answer nothing.
        func happen(to fixture: SessionFixture) -> String {
            switch self {
            case .respond: return "\(fixture.respond(1, body: "answer"))"
            case .beginStreaming: return "\(fixture.session.beginStreaming(1, Response()))"
            case .write: return fixture.session.write(1, ByteView("abc")).map { "\($0)" } ?? "nil"
            case .finish: fixture.session.finish(1)
            case .peerResets: fixture.receive(ScriptedPeer.frame(3, stream: 1, ScriptedPeer.bytes(8)))
            case .connectionEnds: fixture.session.end()
            }
            return ""
        }
    }

    /// What an event in a state answers, what the handler then hears, and whether the stream is still open.
    private static func expected(_ state: State, _ event: Event) -> (answer: String, heard: [String], isOpen: Bool) {
        switch (state, event) {
        case (.waiting, .respond), (.waiting, .beginStreaming): ("true", [], true)
        case (.streaming, .write): ("3", [], true)
        case (.waiting, .peerResets), (.waiting, .connectionEnds): ("", ["closed 1"], false)
        case (.streaming, .peerResets), (.streaming, .connectionEnds): ("", ["closed 1"], false)
        case (_, .peerResets), (_, .connectionEnds): ("", [], false)
        case (.closed, .respond), (.closed, .beginStreaming): ("false", [], false)
        case (.closed, .write): ("nil", [], false)
        case (.closed, .finish): ("", [], false)
        case (_, .respond), (_, .beginStreaming): ("false", [], true)
        case (_, .write): ("nil", [], true)
        case (_, .finish): ("", [], true)
        }
    }

    @Test("What may be done to a stream depends on its state", arguments: State.allCases, Event.allCases)
    func table(_ state: State, _ event: Event) {
        let fixture = state.makeFixture()
        let expected = Self.expected(state, event)
        #expect(event.happen(to: fixture) == expected.answer)
        if event != .connectionEnds { _ = fixture.produce() }
        #expect(fixture.takeEvents() == expected.heard)
        #expect(fixture.memory.streams.usedCount == (expected.isOpen ? 1 : 0))
        fixture.session.end()
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("What is asked of a session that has ended comes to nothing")
    func ended() {
        let fixture = State.waiting.makeFixture()
        fixture.session.end()
        #expect(fixture.takeEvents() == ["closed 1"])
        #expect(!fixture.respond(1))
        #expect(!fixture.session.beginStreaming(1, Response()))
        #expect(fixture.session.write(1, ByteView("abc")) == nil)
        fixture.session.finish(1)
        fixture.session.goAway(debugData: ByteView())
        fixture.session.end()
        #expect(fixture.takeEvents() == [])
    }

    @Test("A fault of the connection ends it, and nothing of it is kept", arguments: HTTP2FaultTests.allFaults)
    func connectionFault(_ fault: HTTP2FaultTests.Fault) {
        let fixture = SessionFixture()
        fixture.receive(fault.bytes)
        // A frame of ours for each of theirs is the most that waits, up to their budget.
        #expect(fixture.session.framesPending <= fixture.memory.limits.controlFramesBurst + 2)
        #expect(fixture.memory.streams.usedCount <= fixture.memory.limits.streamsPerConnectionMax)
        #expect(fixture.produce().last { $0.type == 7 }?.errorCode == fault.errorCode)
        #expect(fixture.isOver)
        fixture.receive(ScriptedPeer.request("/echo", stream: 4001))
        #expect(!fixture.takeEvents().contains { $0.hasPrefix("4001") })
        fixture.session.end()
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("A body over its limit is handed over at once, and what follows is not kept")
    func bodyTooLarge() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/echo", stream: 1, ended: false))
        for _ in 0..<4 { fixture.receive(ScriptedPeer.frame(0, stream: 1, [UInt8](repeating: 0, count: 4096))) }
        #expect(fixture.takeEvents() == ["limit 1", "1 POST /echo h host=h too large"])
        #expect(fixture.handler.bodyBytesHeld == 0)
        let frames = fixture.produce().filter { $0.stream == 1 }
        #expect(frames.first?.status == 413)
        #expect(frames.last?.type == 3)
        #expect(frames.last?.errorCode == 0)
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("A client that resets each stream once it has its answer is not taken for a flood")
    func resetsAfterAnswers() {
        var limits = TransportLimits()
        limits.controlFramesBurst = 10
        let fixture = SessionFixture(limits)
        for number in stride(from: 1, to: 101, by: 2) {
            fixture.receive(ScriptedPeer.request("/echo", stream: number))
            _ = fixture.produce()
            fixture.receive(ScriptedPeer.frame(3, stream: number, [0, 0, 0, 8]))
        }
        #expect(!fixture.isOver)
        #expect(fixture.takeEvents().filter { $0.contains("POST /echo") || $0.contains("GET /echo") }.count == 50)
    }

    @Test("Every stream that a loop cannot hold is refused, on whatever connection")
    func streamsPerLoop() {
        var limits = TransportLimits()
        limits.streamsPerLoopMax = 2
        let fixture = SessionFixture(limits)
        for number in [1, 3, 5] { fixture.receive(ScriptedPeer.request("/wait", stream: number)) }
        let resets = fixture.produce().filter { $0.type == 3 }
        #expect(resets.map(\.stream) == [5])
        #expect(resets.first?.errorCode == 7)
        #expect(fixture.respond(1))
        _ = fixture.produce()
        fixture.receive(ScriptedPeer.request("/wait", stream: 7))
        #expect(fixture.takeEvents().last == "7 GET /wait h host=h ")
    }

    @Test("Output stops at its limit and goes on from there")
    func outputLimit() {
        let fixture = SessionFixture(settings: ScriptedPeer.setting(4, 0x7FFF_FFFF))
        fixture.receive(ScriptedPeer.update(0x7000_0000) + ScriptedPeer.request("/wait", stream: 1))
        let body = [UInt8](repeating: 0x61, count: 300_000)
        #expect(body.withByteView { fixture.session.respond(1, Response(), body: $0) })
        var output = ByteBuffer()
        fixture.session.produce(into: &output, bytesMax: 65_536)
        // One frame more than the limit at most.
        #expect(output.count >= 65_536 && output.count < 65_536 + 16_384 + 9)
        #expect(fixture.session.wantsToWrite)
        fixture.session.produce(into: &output, bytesMax: .max)
        let sent = ScriptedPeer.frames(in: output.view.array).filter { $0.type == 0 }
        #expect(sent.reduce(0) { $0 + $1.payload.count } == 300_000)
    }

    @Test("A streaming response is drained below half of its limit, once each time it was above")
    func drained() {
        var limits = TransportLimits()
        limits.streamingBytesSoftMax = 10
        let fixture = SessionFixture(limits, settings: ScriptedPeer.setting(4, 0))
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        #expect(fixture.session.beginStreaming(1, Response()))
        #expect(fixture.session.write(1, ByteView("0123456789")) == 10)
        fixture.receive(ScriptedPeer.update(stream: 1, 10))
        _ = fixture.produce()
        #expect(fixture.takeEvents() == ["1 GET /wait h host=h "])
        for _ in 0..<2 {
            #expect(fixture.session.write(1, ByteView("0123456789A")) == 11)
            fixture.receive(ScriptedPeer.update(stream: 1, 6))
            _ = fixture.produce()
            #expect(fixture.takeEvents() == [])
            fixture.receive(ScriptedPeer.update(stream: 1, 5))
            _ = fixture.produce()
            #expect(fixture.takeEvents() == ["drained 1"])
        }
    }

    // MARK: Expectations

    /// HEADERS of a request that waits for `100 Continue`.
    private static func expecting(_ path: String, stream: Int, length: Int? = nil, ended: Bool = false) -> [UInt8] {
        let fields = Peer.headers(path, isPost: true) + Peer.field("expect", "100-Continue")
        let length = length.map { Peer.field("content-length", "\($0)") } ?? []
        return Peer.frame(1, flags: ended ? 5 : 4, stream: stream, fields + length)
    }

    @Test("A client that expects 100 Continue gets it before it sends its content, then the answer")
    func expectation() {
        let fixture = SessionFixture()
        // A block that comes again and again is read in another way from the fourth on.
        for number in stride(from: 1, to: 13, by: 2) {
            fixture.receive(Self.expecting("/echo", stream: number, length: 3))
            let interim = fixture.produce()
            #expect(interim.map(\.type) == [1] && interim.map(\.status) == [100])
            #expect(interim.map { $0.flags & 1 } == [0] && interim.map(\.stream) == [number])
            fixture.receive(Peer.frame(0, flags: 1, stream: number, [1, 2, 3]))
            let frames = fixture.produce().filter { $0.stream == number }
            #expect(frames.map(\.type) == [1, 0] && frames[0].status == 200 && frames[1].payload == [1, 2, 3])
        }
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("A client that does not wait gets 100 Continue and the answer in one turn; one without content gets no 100")
    func expectationUnawaited() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/echo", stream: 1) + Peer.frame(0, flags: 1, stream: 1, [1]))
        #expect(fixture.produce().filter { $0.type < 2 }.map(\.type) == [1, 1, 0])
        fixture.receive(Self.expecting("/echo", stream: 3, ended: true))
        #expect(fixture.produce().filter { $0.type == 1 }.map(\.status) == [200])
        // An expectation that is not known, and none.
        let unknown = Peer.headers("/echo", isPost: true) + Peer.field("expect", "x")
        fixture.receive(Peer.frame(1, flags: 4, stream: 5, unknown))
        fixture.receive(Peer.request("/echo", stream: 7, ended: false))
        #expect(fixture.produce().filter { $0.type == 1 }.isEmpty)
    }

    @Test("Content that is announced as too large is refused at once, without 100 Continue")
    func expectationTooLarge() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/echo", stream: 1, length: 4097))
        #expect(fixture.takeEvents().last?.hasSuffix("too large") == true)
        let frames = fixture.produce()
        #expect(frames.filter { $0.type == 1 }.map(\.status) == [413])
        #expect(frames.last?.type == 3 && frames.last?.errorCode == 0)
        fixture.receive(Self.expecting("/echo", stream: 3, length: 4096))
        #expect(fixture.produce().map(\.status) == [100])
        #expect(fixture.memory.streams.usedCount == 1)
    }

    @Test("A stream that is reset before its 100 Continue leaves takes no other stream's answer with it")
    func expectationReset() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/wait", stream: 1) + Peer.frame(3, stream: 1, Peer.bytes(8)))
        fixture.receive(Self.expecting("/wait", stream: 3) + Peer.request("/echo", stream: 5))
        let frames = fixture.produce().filter { $0.type == 1 }
        #expect(frames.map(\.stream) == [3, 5] && frames.map(\.status) == [100, 200])
        fixture.session.end()
        #expect(fixture.memory.streams.usedCount == 0)
    }
}
