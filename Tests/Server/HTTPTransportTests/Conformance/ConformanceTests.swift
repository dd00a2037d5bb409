import HTTPTransport
import Testing
import Wire

@Suite("RFC 9113 and RFC 7541, rule by rule", .timeLimit(.minutes(15)))
struct ConformanceTests {
    private typealias Peer = ScriptedPeer

    @Test("Frames have the effect required by the RFC, and their memory is freed", arguments: ConformanceCase.all)
    func rule(_ rule: ConformanceCase) {
        let fixture = SessionFixture(hasBegun: false)
        fixture.receive(rule.opening)
        fixture.receive(rule.first)
        _ = (fixture.produce(), fixture.takeEvents())
        fixture.receive(rule.sent)
        let frames = fixture.produce()
        let answer = frames.first { [.headers, .reset].contains($0.type) && $0.stream == rule.stream }
        var continues = true
        switch rule.outcome {
        case .connectionError(let codes):
            let code = frames.first { $0.type == .goAway }?.errorCode
            #expect(codes.contains { $0 == code }, "GOAWAY \(code?.name ?? "none")")
            continues = false
        case .streamError(let code):
            #expect(answer?.type == .reset)
            #expect(answer?.errorCode == code)
        case .answered(let status):
            #expect(answer?.type == .headers)
            #expect(answer?.status == status)
        case .delivered:
            #expect(fixture.takeEvents().contains { $0.hasPrefix("\(rule.stream) ") })
        case .ignored:
            #expect(!frames.contains { $0.type == .reset })
        case .ended:
            #expect(!frames.contains { $0.type == .goAway && $0.errorCode != .noError })
            continues = false
        }
        #expect(fixture.isOver == !continues)
        fixture.receive(Peer.request("/echo", stream: 101))
        #expect(fixture.takeEvents().contains { $0.hasPrefix("101 ") } == continues)
        #expect(fixture.produce().contains { $0.type == .headers && $0.stream == 101 } == continues)
        fixture.session.end()
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("5.1.1 the highest number is a stream, and the last of its connection")
    func highestNumber() {
        let fixture = SessionFixture()
        fixture.receive(Peer.request("/echo", stream: 0x7FFF_FFFF))
        #expect(fixture.produce().first?.status == 200)
        fixture.receive(Peer.request("/echo", stream: 3))
        #expect(fixture.produce().first { $0.type == .goAway }?.errorCode == .protocolError)
        #expect(fixture.isOver)
    }

    @Test("5.1.2 a stream over the limit is refused, and its fields stay in the table")
    func refusedStreamIsDecoded() {
        let fixture = SessionFixture(TransportLimits { $0.streamsPerConnectionMax = 1 })
        let added = Peer.headers("/echo") + [0x40, 1, 0x61, 1, 0x62]
        fixture.receive(Peer.request("/wait", stream: 1) + Peer.request(block: added, stream: 3))
        let refusal = fixture.produce().first
        #expect(refusal?.stream == 3 && refusal?.errorCode == .refusedStream)
        fixture.receive(Peer.frame(.reset, stream: 1, Peer.bytes(.cancel)))
        fixture.receive(Peer.request(block: Peer.headers("/echo") + [0xBE], stream: 5))
        #expect(fixture.produce().first?.status == 200)
    }

    @Test("5.4.1 GOAWAY names the last accepted stream, which was answered")
    func lastStream() throws {
        let fixture = SessionFixture()
        fixture.receive(Peer.request("/echo", stream: 5))
        #expect(fixture.produce().first?.status == 200)
        fixture.receive(Peer.frame(.ping, stream: 1, ConformanceCase.ping))
        let goAway = try #require(fixture.produce().first { $0.type == .goAway })
        #expect(goAway.stream == 0)
        #expect(Peer.number(goAway.payload[0..<4]) == 5)
    }

    @Test("HPACK 4.2 a table of no entries is announced once, in the first response", arguments: [0, 4096])
    func headerTableSize(allowed: UInt32) {
        let fixture = SessionFixture(settings: Peer.setting(.headerTableSize, allowed))
        fixture.receive(Peer.request("/echo", stream: 1))
        #expect(fixture.produce().first?.payload.prefix(2) == [0x20, 0x88])
        fixture.receive(Peer.request("/echo", stream: 3))
        #expect(fixture.produce().first?.payload.first == 0x88)
    }

    @Test("6.5.3 settings are applied in order, and acknowledged immediately")
    func settingsInOrder() {
        let fixture = SessionFixture(hasBegun: false)
        let settings = Peer.setting(.initialWindowSize, 100) + Peer.setting(.initialWindowSize, 1)
        fixture.receive(Peer.preface + Peer.frame(.settings, settings) + Peer.request("/wait", stream: 1))
        #expect(fixture.produce().first { $0.type == .settings && $0.flags == .ack }?.payload == [])
        #expect(fixture.respond(1, body: "answer"))
        #expect(Self.dataBytes(fixture) == 1)
    }

    @Test("6.8 a client that sends GOAWAY still gets its answers, then the connection ends")
    func goAway() {
        let fixture = SessionFixture()
        fixture.receive(Peer.request("/wait", stream: 1) + Peer.frame(.goAway, [UInt8](repeating: 0, count: 8)))
        #expect(fixture.produce().isEmpty && !fixture.isOver)
        #expect(fixture.respond(1, body: "released"))
        #expect(fixture.produce().last?.payload == [UInt8]("released".utf8))
        #expect(fixture.isOver)
    }

    @Test("6.9 DATA on a stream that the server has reset gives its window back to the connection")
    func windowOfDiscardedData() {
        let fixture = SessionFixture()
        // A malformed request, which is reset before it has ended.
        let block = Peer.headers("/echo", isPost: true) + Peer.field("X", "1")
        fixture.receive(Peer.request(block: block, flags: .endHeaders))
        #expect(fixture.produce().first?.errorCode == .protocolError)
        // The total exceeds the connection's window.
        for _ in 0..<80 {
            fixture.receive(Peer.frame(.data, stream: 1, ConformanceCase.largest))
            _ = fixture.produce()
        }
        fixture.receive(Peer.request("/echo", stream: 3))
        #expect(fixture.produce().first { $0.stream == 3 }?.status == 200)
    }

    @Test("6.9.1 DATA does not exceed the window of the connection")
    func connectionWindow() {
        let fixture = Self.answering(window: 0x7FFF_FFFF)
        #expect(Self.dataBytes(fixture) == 65_535)
        fixture.receive(Peer.update(stream: 1, 10))
        #expect(Self.dataBytes(fixture) == 0)
        fixture.receive(Peer.update(10))
        #expect(Self.dataBytes(fixture) == 10)
    }

    @Test("6.9.2 a new initial window applies to open streams, and may make theirs negative")
    func initialWindow() {
        let fixture = Self.answering(window: 0)
        #expect(Self.dataBytes(fixture) == 0)
        fixture.receive(Peer.frame(.settings, Peer.setting(.initialWindowSize, 3)))
        #expect(Self.dataBytes(fixture) == 3)
        fixture.receive(Peer.frame(.settings, Peer.setting(.initialWindowSize, 1)))
        fixture.receive(Peer.update(stream: 1, 2))
        #expect(Self.dataBytes(fixture) == 0)
        fixture.receive(Peer.update(stream: 1, 5))
        #expect(Self.dataBytes(fixture) == 5)
    }

    /// Returns a session that answers stream 1 with a long body.
    ///
    /// - Parameter window: the initial window of the client's streams.
    private static func answering(window: UInt32) -> SessionFixture {
        let fixture = SessionFixture(settings: Peer.setting(.initialWindowSize, window))
        fixture.receive(Peer.request("/wait", stream: 1))
        let body = [UInt8](repeating: 0x61, count: 100_000)
        #expect(body.withByteView { fixture.session.respond(1, Response(), body: $0) })
        return fixture
    }

    /// Returns the number of DATA bytes that the session sends now.
    private static func dataBytes(_ fixture: SessionFixture) -> Int {
        let data = fixture.produce().filter { $0.type == .data }
        #expect(!data.contains { $0.payload.count > 16_384 })
        return data.reduce(0) { $0 + $1.payload.count }
    }
}

/// A rule of RFC 9113 or RFC 7541: the bytes that a client sends, and the required outcome.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
    enum Outcome: Sendable {
        /// GOAWAY with one of these codes, then the end of the connection. RFC 9113 §5.4.1 allows an endpoint to treat
        /// any stream error as a connection error.
        case connectionError([HTTP2ErrorCode])
        /// RST_STREAM with this code on `stream`; the connection continues.
        case streamError(HTTP2ErrorCode)
        /// A response with this status on `stream`; the connection continues.
        case answered(Int)
        /// A request on `stream` that the handler does not answer; the connection continues.
        case delivered
        /// No reaction; the connection continues.
        case ignored
        /// The connection ends without an error.
        case ended
    }

    /// The section, such as `6.5.2`, and a description of the bytes. Sections of RFC 7541 begin with `HPACK`.
    let name: String
    /// The bytes that open the connection.
    let opening: [UInt8]
    /// The bytes that are sent, and answered, before.
    let first: [UInt8]
    let sent: [UInt8]
    /// The stream of the outcome.
    let stream: Int
    let outcome: Outcome

    var testDescription: String { self.name }

    /// Returns rules by their outcome on `stream`, each as section, name and bytes, which are sent after `first`.
    static func rules(
        opening: [UInt8] = ScriptedPeer.preface + ScriptedPeer.frame(.settings),
        after first: [UInt8] = [],
        stream: Int = 1,
        _ rules: KeyValuePairs<Outcome, KeyValuePairs<String, [UInt8]>>
    ) -> [ConformanceCase] {
        rules.flatMap { outcome, rules in
            rules.map { name, sent in
                ConformanceCase(
                    name: name,
                    opening: opening,
                    first: first,
                    sent: sent,
                    stream: stream,
                    outcome: outcome
                )
            }
        }
    }

    /// Returns rules with one outcome for requests on stream 1, each given by its field block.
    static func rules(_ outcome: Outcome, blocks: KeyValuePairs<String, [UInt8]>) -> [ConformanceCase] {
        blocks.flatMap { name, block in Self.rules([outcome: [name: ScriptedPeer.request(block: block)]]) }
    }

    static let all =
        Self.frames + Self.states + Self.definitions + Self.windows + Self.requests + Self.fields + Self.hpack
}

extension ConformanceCase.Outcome {
    static func connectionError(_ code: HTTP2ErrorCode) -> Self { .connectionError([code]) }
}

extension ScriptedPeer {
    /// Returns HEADERS with this whole field block: a request, or trailers.
    static func request(block: [UInt8], stream: Int = 1, flags: FrameFlags = .whole) -> [UInt8] {
        Self.frame(.headers, flags: flags, stream: stream, block)
    }
}
