import HTTPTransport
import Testing
import Wire

@Suite(.timeLimit(.minutes(15)))
struct HTTP2SessionTests {
    private typealias Peer = ScriptedPeer

    @Test("An ended session ignores further requests of the handler")
    func ended() {
        let fixture = SessionFixture()
        fixture.receive(Peer.request("/wait", stream: 1))
        _ = fixture.takeEvents()
        fixture.session.end()
        #expect(fixture.takeEvents() == ["closed 1"])
        #expect(!fixture.respond(1))
        #expect(!fixture.session.beginStreaming(1, Response()))
        #expect(fixture.session.write(1, ByteView("abc")) == nil)
        fixture.session.finish(1)
        fixture.session.goAway(debugData: ByteView())
        #expect(!fixture.session.setStreamLimit(1) && !fixture.session.setStreamWindow(nil))
        fixture.session.end()
        #expect(fixture.takeEvents() == [])
    }

    @Test("A body over its limit is passed on immediately, and later bytes are dropped")
    func bodyTooLarge() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/echo", stream: 1, ended: false))
        for _ in 0..<4 { fixture.receive(ScriptedPeer.frame(.data, stream: 1, [UInt8](repeating: 0, count: 4096))) }
        #expect(fixture.takeEvents() == ["limit 1", "1 POST /echo h host=h too large"])
        #expect(fixture.handler.bodyBytesHeld == 0)
        let frames = fixture.produce().filter { $0.stream == 1 }
        #expect(frames.first?.status == 413)
        #expect(frames.last?.type == .reset)
        #expect(frames.last?.errorCode == .noError)
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("A client that resets each stream after its answer does not count as a flood")
    func resetsAfterAnswers() {
        let fixture = SessionFixture(TransportLimits { $0.controlFramesBurst = 10 })
        for number in stride(from: 1, to: 101, by: 2) {
            fixture.receive(ScriptedPeer.request("/echo", stream: number))
            _ = fixture.produce()
            fixture.receive(ScriptedPeer.frame(.reset, stream: number, ScriptedPeer.bytes(.cancel)))
        }
        #expect(!fixture.isOver)
        #expect(fixture.takeEvents().filter { $0.contains("POST /echo") || $0.contains("GET /echo") }.count == 50)
    }

    @Test("A streaming response is drained below half of its limit, once each time it was above, and counted as often")
    func drained() {
        let fixture = SessionFixture(
            TransportLimits { $0.streamingBytesSoftMax = 10 },
            settings: ScriptedPeer.setting(.initialWindowSize, 0)
        )
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        #expect(fixture.session.beginStreaming(1, Response()))
        #expect(fixture.session.write(1, ByteView("0123456789")) == 10)
        fixture.receive(ScriptedPeer.update(stream: 1, 10))
        _ = fixture.produce()
        #expect(fixture.takeEvents() == ["1 GET /wait h host=h "])
        #expect(fixture.times(.streamingBytesSoftMax) == 0)
        for round in 1...2 {
            #expect(fixture.session.write(1, ByteView("0123456789A")) == 11)
            #expect(fixture.session.write(1, ByteView("B")) == 12)
            #expect(fixture.times(.streamingBytesSoftMax) == round)
            fixture.receive(ScriptedPeer.update(stream: 1, 7))
            _ = fixture.produce()
            #expect(fixture.takeEvents() == [])
            fixture.receive(ScriptedPeer.update(stream: 1, 5))
            _ = fixture.produce()
            #expect(fixture.takeEvents() == ["drained 1"])
        }
    }

    // MARK: Expectations

    /// Returns HEADERS of a request that waits for `100 Continue`.
    private static func expecting(_ path: String, stream: Int, length: Int? = nil, ended: Bool = false) -> [UInt8] {
        let fields = Peer.headers(path, isPost: true) + Peer.field("expect", "100-Continue")
        let length = length.map { Peer.field("content-length", "\($0)") } ?? []
        return Peer.frame(.headers, flags: ended ? .whole : .endHeaders, stream: stream, fields + length)
    }

    @Test("A client that expects 100 Continue gets it before it sends its content, then the answer")
    func expectation() {
        let fixture = SessionFixture()
        // A block that repeats is parsed on another path from the fourth time on.
        for number in stride(from: 1, to: 13, by: 2) {
            fixture.receive(Self.expecting("/echo", stream: number, length: 3))
            let interim = fixture.produce()
            #expect(interim.map(\.type) == [.headers] && interim.map(\.status) == [100])
            #expect(interim.map(\.flags) == [.endHeaders] && interim.map(\.stream) == [number])
            fixture.receive(Peer.frame(.data, flags: .endStream, stream: number, [1, 2, 3]))
            let frames = fixture.produce().filter { $0.stream == number }
            #expect(
                frames.map(\.type) == [.headers, .data] && frames[0].status == 200 && frames[1].payload == [1, 2, 3]
            )
        }
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("A client that does not wait gets 100 Continue and the answer in one turn; one without content gets no 100")
    func expectationUnawaited() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/echo", stream: 1) + Peer.frame(.data, flags: .endStream, stream: 1, [1]))
        #expect(
            fixture.produce().filter { [.headers, .data].contains($0.type) }.map(\.type) == [.headers, .headers, .data]
        )
        fixture.receive(Self.expecting("/echo", stream: 3, ended: true))
        #expect(fixture.produce().filter { $0.type == .headers }.map(\.status) == [200])
        // An unknown expectation, and none.
        let unknown = Peer.headers("/echo", isPost: true) + Peer.field("expect", "x")
        fixture.receive(Peer.frame(.headers, flags: .endHeaders, stream: 5, unknown))
        fixture.receive(Peer.request("/echo", stream: 7, ended: false))
        #expect(fixture.produce().filter { $0.type == .headers }.isEmpty)
    }

    @Test("Content announced as too large is refused immediately, without 100 Continue; its maximum is accepted")
    func expectationTooLarge() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/echo", stream: 1, length: 4097))
        #expect(fixture.takeEvents().last?.hasSuffix("too large") == true)
        let frames = fixture.produce()
        #expect(frames.filter { $0.type == .headers }.map(\.status) == [413])
        #expect(frames.last?.type == .reset && frames.last?.errorCode == .noError)
        fixture.receive(Self.expecting("/echo", stream: 3, length: 4096))
        #expect(fixture.produce().map(\.status) == [100])
        #expect(fixture.memory.streams.usedCount == 1)
        fixture.receive(Peer.frame(.data, flags: .endStream, stream: 3, [UInt8](repeating: 0, count: 4096)))
        #expect(fixture.produce().filter { $0.type == .headers }.map(\.status) == [200])
    }

    @Test("A stream that is answered early is reset after its answer, and not examined while the answer waits")
    func earlyAnswerWaits() {
        let fixture = SessionFixture(settings: Peer.setting(.initialWindowSize, 0))
        fixture.receive(Self.expecting("/wait", stream: 1, length: 4097))
        #expect(fixture.session.respond(1, Response(), body: ByteView("too large")))
        #expect(fixture.produce().map(\.type) == [.headers])
        #expect(!fixture.session.wantsToWrite)
        fixture.receive(Peer.update(stream: 1, 1000))
        #expect(fixture.produce().map(\.type) == [.data, .reset])
    }

    @Test("Resetting a stream before its 100 Continue is sent does not affect another stream's answer")
    func expectationReset() {
        let fixture = SessionFixture()
        fixture.receive(Self.expecting("/wait", stream: 1) + Peer.frame(.reset, stream: 1, Peer.bytes(.cancel)))
        fixture.receive(Self.expecting("/wait", stream: 3) + Peer.request("/echo", stream: 5))
        let frames = fixture.produce().filter { $0.type == .headers }
        #expect(frames.map(\.stream) == [3, 5] && frames.map(\.status) == [100, 200])
        fixture.session.end()
        #expect(fixture.memory.streams.usedCount == 0)
    }
}

@Suite("HEAD")
struct HeadMethodTests {
    private typealias Peer = ScriptedPeer

    /// Returns HEADERS of a request with the method HEAD.
    private static func head(_ path: String, stream: Int = 1, ended: Bool = true) -> [UInt8] {
        let method: [UInt8] = [0x02, 4] + [UInt8]("HEAD".utf8)
        let flags: FrameFlags = ended ? .whole : .endHeaders
        return Peer.request(block: method + Peer.headers(path).dropFirst(), stream: stream, flags: flags)
    }

    @Test("An answer to HEAD has no content, even if the handler supplies it")
    func respond() {
        let fixture = SessionFixture()
        for number in [1, 3] { fixture.receive(Self.head("/wait", stream: number)) }
        #expect(fixture.respond(1, body: "content"))
        #expect(fixture.respond(3))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.headers, .headers])
        #expect(frames.map(\.stream) == [1, 3])
        #expect(frames.allSatisfy { $0.flags.contains(.endStream) })
        #expect(fixture.session.queuedBytes == 0)
        #expect(fixture.memory.streams.usedCount == 0)
        // The state of a stream is reused.
        fixture.receive(Peer.request("/wait", stream: 5))
        #expect(fixture.respond(5, body: "content"))
        #expect(fixture.produce().map(\.type) == [.headers, .data])
    }

    @Test("A streaming answer to HEAD is its head only, and ends when that is sent")
    func streaming() {
        let fixture = SessionFixture()
        fixture.receive(Self.head("/wait"))
        _ = fixture.takeEvents()
        #expect(fixture.session.beginStreaming(1, Response()))
        _ = fixture.session.write(1, ByteView("content"))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.headers])
        #expect(frames.first?.flags == .whole)
        #expect(fixture.takeEvents() == ["closed 1"])
        #expect(fixture.session.queuedBytes == 0)
        #expect(fixture.session.write(1, ByteView("more")) == nil)
    }

    @Test("A body that is too large, or exceeds the memory limit, brings no content")
    func refusals() {
        let limits = TransportLimits { $0.requestBytesPerConnectionMax = 10 }
        for limits in [TransportLimits(), limits] {
            let fixture = SessionFixture(limits)
            fixture.receive(Self.head("/echo", ended: false))
            fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0x61, count: 5000)))
            #expect(!fixture.produce().contains { $0.type == .data })
        }
    }
}

/// Every state of a stream, and everything that a handler, its peer or the end of the connection can do to it there.
@Suite("A stream in every state with every event", .timeLimit(.minutes(15)))
struct StreamPhaseTests {
    private typealias Peer = ScriptedPeer

    /// The state of stream 1.
    enum Place: CaseIterable {
        /// Neither its number nor a later one was used.
        case idle
        /// The head has arrived, and the body is pending.
        case receiving
        /// The handler has the request.
        case waiting
        /// The answer has begun and continues.
        case streaming
        /// The answer is complete, and has not been sent.
        case sending
        /// The answer was sent.
        case answered
        /// The peer has reset it while the handler had the request.
        case reset
        /// The handler has the request before its end, because its body is too large.
        case tooLarge
        /// The same request was answered, and its peer was notified to send no more of it.
        case answeredEarly
        /// The peer has reset it while the body was pending.
        case resetEarly
        /// The server has reset it, because the request is malformed; the handler does not know it.
        case malformed

        var fixture: SessionFixture {
            let fixture = SessionFixture()
            if self == .idle { return fixture }
            if self == .malformed {
                let block = Peer.headers("/wait", isPost: true) + Peer.field("X", "1")
                fixture.receive(Peer.request(block: block, flags: .endHeaders))
            } else {
                let isWhole = ![.receiving, .tooLarge, .answeredEarly, .resetEarly].contains(self)
                fixture.receive(Peer.request("/wait", stream: 1, ended: isWhole))
            }
            switch self {
            case .idle, .receiving, .waiting, .malformed: ()
            case .streaming: #expect(fixture.session.beginStreaming(1, Response()))
            case .sending, .answered: #expect(fixture.respond(1, body: "answer"))
            case .reset, .resetEarly: fixture.receive(Event.reset.bytes)
            case .tooLarge: fixture.receive(Self.largeData)
            case .answeredEarly:
                fixture.receive(Self.largeData)
                #expect(fixture.respond(1, body: "answer"))
            }
            if self != .sending { _ = fixture.produce() }
            _ = fixture.takeEvents()
            return fixture
        }

        /// More bytes than the handler accepts.
        private static let largeData = Peer.frame(.data, stream: 1, [UInt8](repeating: 0x61, count: 4097))
    }

    // MARK: The handler

    /// A handler's call on the stream.
    enum Verb: CaseIterable {
        case respond, respondWithBody, beginStreaming, write, finish, reset

        /// - Returns: the result of the call for the handler; nil if it has none.
        func ask(_ fixture: SessionFixture) -> Bool? {
            switch self {
            case .respond: return fixture.respond(1)
            case .respondWithBody: return fixture.respond(1, body: "another")
            case .beginStreaming: return fixture.session.beginStreaming(1, Response())
            case .write: return fixture.session.write(1, ByteView("more")) != nil
            case .finish: fixture.session.finish(1)
            case .reset: fixture.session.reset(1, code: .cancel)
            }
            return nil
        }
    }

    private static let done: [Place: Set<Verb>] = [
        .waiting: [.respond, .respondWithBody, .beginStreaming, .reset],
        .streaming: [.write, .finish, .reset],
        .tooLarge: [.respond, .respondWithBody, .beginStreaming, .reset],
    ]

    @Test(
        "A handler's request works only in the states that allow it, and changes nothing in others",
        arguments: Place.allCases,
        Verb.allCases
    )
    func verbs(place: Place, verb: Verb) {
        let isDone = Self.done[place]?.contains(verb) ?? false
        let fixture = place.fixture
        if let told = verb.ask(fixture) { #expect(told == isDone) }
        let hasChanged = fixture.produceBytes() != place.fixture.produceBytes()
        #expect(hasChanged == isDone, "the output")
        #expect(fixture.takeEvents() == (isDone && verb == .reset ? ["closed 1"] : []))
        #expect(!fixture.isOver)
    }

    // MARK: The peer

    /// The peer's frames on the stream, and the end of the connection.
    enum Event: CaseIterable {
        case data, lastData, trailers, reset, windowUpdate, connectionEnd

        var bytes: [UInt8] {
            switch self {
            case .data: Peer.frame(.data, stream: 1, [0x61])
            case .lastData: Peer.frame(.data, flags: .endStream, stream: 1, [0x61])
            case .trailers: Peer.frame(.headers, flags: .whole, stream: 1, Peer.field("x-checksum", "1"))
            case .reset: Peer.frame(.reset, stream: 1, Peer.bytes(.cancel))
            case .windowUpdate: Peer.update(stream: 1, 1)
            case .connectionEnd: []
            }
        }
    }

    /// The outcome of an event.
    enum Outcome: Hashable {
        /// The handler gets the request.
        case request
        /// The handler is notified that the stream has closed.
        case closed
        /// The stream is reset with this code.
        case streamError(HTTP2ErrorCode)
        /// The connection ends with this code.
        case connectionError(HTTP2ErrorCode)
    }

    /// The outcome of each event, according to RFC 9113 §5.1; none if nothing is sent.
    private static let outcomes: [Place: [Event: Outcome]] = [
        .idle: [
            .data: .connectionError(.protocolError), .lastData: .connectionError(.protocolError),
            .trailers: .streamError(.protocolError), .reset: .connectionError(.protocolError),
            .windowUpdate: .connectionError(.protocolError),
        ],
        .receiving: [.lastData: .request, .trailers: .request],
        .waiting: Self.afterEnd.merging([.reset: .closed, .connectionEnd: .closed]) { $1 },
        .streaming: Self.afterEnd.merging([.reset: .closed, .connectionEnd: .closed]) { $1 },
        .sending: Self.afterEnd,
        .answered: Self.afterEnd,
        .reset: Self.afterEnd,
        .tooLarge: [.reset: .closed, .connectionEnd: .closed],
        .answeredEarly: [:],
        .resetEarly: Self.afterEnd,
        .malformed: [:],
    ]

    /// The outcomes of a peer's frames after the end of its request.
    private static let afterEnd: [Event: Outcome] = [
        .data: .connectionError(.streamClosed), .lastData: .connectionError(.streamClosed),
        .trailers: .connectionError(.streamClosed),
    ]

    @Test(
        "A peer's frame is accepted, dropped or an error, and the handler of a stream learns of its end once",
        arguments: Place.allCases,
        Event.allCases
    )
    func events(place: Place, event: Event) {
        let fixture = place.fixture
        let expected = Self.outcomes[place]?[event]
        if event == .connectionEnd { fixture.session.end() } else { fixture.receive(event.bytes) }
        var outcomes = fixture.takeEvents().map { $0 == "closed 1" ? Outcome.closed : .request }
        // A session that has ended has nothing to send.
        for frame in event == .connectionEnd ? [] : fixture.produce() {
            guard let code = frame.errorCode else { continue }
            outcomes.append(frame.type == .reset ? .streamError(code) : .connectionError(code))
        }
        #expect(outcomes == (expected.map { [$0] } ?? []))
        if [.reset, .connectionEnd].contains(event) { #expect(fixture.memory.streams.usedCount == 0) }
        guard event != .connectionEnd else { return }
        if case .connectionError? = expected { #expect(fixture.isOver) } else { #expect(!fixture.isOver) }
        fixture.session.end()
        #expect(fixture.takeEvents() == (Self.isWithHandler(place, after: event) ? ["closed 1"] : []))
        #expect(fixture.memory.streams.usedCount == 0)
    }

    /// Returns true if the handler still waits for the stream's end after an event.
    private static func isWithHandler(_ place: Place, after event: Event) -> Bool {
        switch place {
        case .idle, .sending, .answered, .reset, .answeredEarly, .resetEarly, .malformed: false
        case .receiving: event == .lastData || event == .trailers
        case .waiting, .streaming, .tooLarge: event != .reset
        }
    }
}

/// An answer after a fault, and fields whose size is far above the limit.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP2FaultTests {
    private typealias Peer = ScriptedPeer

    @Test("An answer after a fault that ended its connection does no harm")
    func answerAfterFault() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(Peer.request("/wait", stream: 1) + Peer.frame(.data, [0x78]))
        await server.log.wait(for: "closed 1")
        let other = try server.peer()
        other.send(Peer.request("/release", stream: 1))
        #expect(other.frame(type: .headers, stream: 1)?.status == 200)
        try server.expectServed()
    }

    @Test(
        "Fields far over the limit, from a block within it, are reset and not looked at further",
        arguments: [false, true]
    )
    func fieldBomb(inTrailers: Bool) {
        let fixture = SessionFixture()
        // An entry of 4,032 bytes, and references to it of one byte each.
        let entry = [0x40, 1, 0x78, 0x7F, 0xA1, 0x1E] + [UInt8](repeating: 0x76, count: 4000)
        let bomb = entry + [UInt8](repeating: 0xBE, count: 10_000)
        if inTrailers {
            fixture.receive(Peer.request("/echo", stream: 1, ended: false) + Peer.frame(.data, stream: 1, [1]))
            fixture.receive(Peer.request(block: bomb))
        } else {
            fixture.receive(Peer.request(block: Peer.headers("/echo") + bomb))
        }
        #expect(fixture.produce().first { $0.type == .reset }?.errorCode == .enhanceYourCalm)
        // The table has the state that results from decoding the whole block.
        fixture.receive(Peer.request(block: Peer.headers("/echo") + [0xBE], stream: 3))
        #expect(fixture.produce().first { $0.stream == 3 }?.status == 200)
    }
}
