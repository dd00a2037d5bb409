import HTTPTransport
import Testing
import Wire

/// Every place that a stream may be in, and everything that a handler, its peer or the connection's end may do to it
/// there.
@Suite("A stream wherever it is and whatever happens to it", .timeLimit(.minutes(15)))
struct StreamPhaseTests {
    private typealias Peer = ScriptedPeer

    /// Where stream 1 is.
    enum Place: CaseIterable {
        /// Neither its number nor a later one was used.
        case idle
        /// The head has come, and the body is to come.
        case receiving
        /// The handler has it.
        case waiting
        /// The answer has begun, and goes on.
        case streaming
        /// The answer is known, and has not left.
        case sending
        /// The answer has left.
        case answered
        /// The peer has reset it while the handler had it.
        case reset
        /// The handler has it before its end, since its body is too large.
        case tooLarge
        /// Such a one was answered, so that its peer was told to send no more of it.
        case answeredEarly

        var fixture: SessionFixture {
            let fixture = SessionFixture()
            if self == .idle { return fixture }
            let isWhole = ![.receiving, .tooLarge, .answeredEarly].contains(self)
            fixture.receive(Peer.request("/wait", stream: 1, ended: isWhole))
            switch self {
            case .idle, .receiving, .waiting: ()
            case .streaming: #expect(fixture.session.beginStreaming(1, Response()))
            case .sending, .answered: #expect(fixture.respond(1, body: "answer"))
            case .reset: fixture.receive(Event.reset.bytes)
            case .tooLarge: fixture.receive(Self.largeData)
            case .answeredEarly:
                fixture.receive(Self.largeData)
                #expect(fixture.respond(1, body: "answer"))
            }
            if self != .sending { _ = fixture.produce() }
            _ = fixture.takeEvents()
            return fixture
        }

        /// More than the handler takes.
        private static let largeData = Peer.frame(0, stream: 1, [UInt8](repeating: 0x61, count: 4097))
    }

    // MARK: The handler

    /// What a handler may ask of it.
    enum Verb: CaseIterable {
        case respond, respondWithBody, beginStreaming, write, finish, reset

        /// - Returns: what the handler is told of it; nil where it is told nothing.
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
        "What a handler asks is done in the one or two places where it may be, and changes nothing in any other",
        arguments: Place.allCases,
        Verb.allCases
    )
    func verbs(place: Place, verb: Verb) {
        let isDone = Self.done[place]?.contains(verb) ?? false
        let fixture = place.fixture
        if let told = verb.ask(fixture) { #expect(told == isDone) }
        let hasChanged = fixture.produceBytes() != place.fixture.produceBytes()
        #expect(hasChanged == isDone, "what leaves")
        #expect(fixture.takeEvents() == (isDone && verb == .reset ? ["closed 1"] : []))
        #expect(!fixture.isOver)
    }

    // MARK: The peer

    /// What its peer may send on it, and the end of the connection.
    enum Event: CaseIterable {
        case data, lastData, trailers, reset, windowUpdate, connectionEnd

        var bytes: [UInt8] {
            switch self {
            case .data: Peer.frame(0, stream: 1, [0x61])
            case .lastData: Peer.frame(0, flags: 1, stream: 1, [0x61])
            case .trailers: Peer.frame(1, flags: 5, stream: 1, Peer.field("x-checksum", "1"))
            case .reset: Peer.frame(3, stream: 1, Peer.bytes(8))
            case .windowUpdate: Peer.update(stream: 1, 1)
            case .connectionEnd: []
            }
        }
    }

    /// What comes of it.
    enum Outcome: Hashable {
        /// The handler gets the request.
        case request
        /// The handler hears that the stream is gone.
        case closed
        /// The stream is reset with this code.
        case streamError(HTTP2ErrorCode)
        /// The connection ends with this code.
        case connectionError(HTTP2ErrorCode)
    }

    /// What comes of each event, as RFC 9113 §5.1 has it; nothing where nothing is said.
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
    ]

    /// What a peer says of a request behind its end.
    private static let afterEnd: [Event: Outcome] = [
        .data: .connectionError(.streamClosed), .lastData: .connectionError(.streamClosed),
        .trailers: .connectionError(.streamClosed),
    ]

    @Test(
        "What its peer sends is taken, dropped or an error, and the handler hears of it once if the stream is its own",
        arguments: Place.allCases,
        Event.allCases
    )
    func events(place: Place, event: Event) {
        let fixture = place.fixture
        let expected = Self.outcomes[place]?[event]
        if event == .connectionEnd { fixture.session.end() } else { fixture.receive(event.bytes) }
        var outcomes = fixture.takeEvents().map { $0 == "closed 1" ? Outcome.closed : .request }
        // A session that has ended has nothing to send, and is not asked.
        for frame in event == .connectionEnd ? [] : fixture.produce() {
            guard let code = HTTP2ErrorCode.allCases.first(where: { frame.errorCode == Int($0.number) }) else {
                continue
            }
            outcomes.append(frame.type == 3 ? .streamError(code) : .connectionError(code))
        }
        #expect(outcomes == (expected.map { [$0] } ?? []))
        guard event != .connectionEnd else { return }
        if case .connectionError? = expected { #expect(fixture.isOver) } else { #expect(!fixture.isOver) }
        fixture.session.end()
        #expect(fixture.takeEvents() == (Self.isWithHandler(place, after: event) ? ["closed 1"] : []))
    }

    /// Whether the handler still waits for the stream's end behind an event.
    private static func isWithHandler(_ place: Place, after event: Event) -> Bool {
        switch place {
        case .idle, .sending, .answered, .reset, .answeredEarly: false
        case .receiving: event == .lastData || event == .trailers
        case .waiting, .streaming, .tooLarge: event != .reset
        }
    }
}
