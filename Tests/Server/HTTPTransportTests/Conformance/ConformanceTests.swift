import HTTPTransport
import Testing

@Suite("RFC 9113 and RFC 7541, rule by rule", .serialized, .timeLimit(.minutes(15)))
struct ConformanceTests {
    @Test("Frames have the effect required by the RFC, and others are served", arguments: ConformanceCase.all)
    func rule(_ rule: ConformanceCase) throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send(rule.opening)
        if !rule.first.isEmpty {
            peer.send(rule.first)
            // The answer to a PING may overtake earlier answers, but not answers to anything sent before the previous
            // PING.
            for mark in [UInt8](1...2) { #expect(Self.frames(of: peer, toPing: mark) != nil) }
        }
        peer.send(rule.sent)
        switch rule.outcome {
        case .connectionError(let codes):
            let code = peer.frame(type: .goAway)?.errorCode
            #expect(codes.contains { $0 == code }, "GOAWAY \(code?.rawValue ?? "none")")
            #expect(peer.hasEnded())
        case .streamError(let code):
            let answer = peer.nextFrame { $0.stream == rule.stream && $0.type != .windowUpdate || $0.type == .goAway }
            #expect(answer?.type == .reset)
            #expect(answer?.errorCode == code)
            Self.expectGoesOn(peer)
        case .answered(let status):
            let answer = peer.nextFrame {
                [.headers, .reset].contains($0.type) && $0.stream == rule.stream || $0.type == .goAway
            }
            #expect(answer?.type == .headers)
            #expect(answer?.status == status)
            Self.expectGoesOn(peer)
        case .ignored:
            for mark in [UInt8](3...4) {
                let frames = try #require(Self.frames(of: peer, toPing: mark))
                #expect(!frames.contains { $0.type == .reset })
            }
            Self.expectGoesOn(peer)
        case .ended:
            while let frame = peer.nextFrame() { #expect(frame.type != .goAway || frame.errorCode == .noError) }
            #expect(peer.hasEnded())
        }
        try server.expectServed()
    }

    /// Sends PING and reads until its answer.
    ///
    /// - Returns: the frames before it; nil if the connection has ended, or the server is ending it.
    private static func frames(of peer: ScriptedPeer, toPing mark: UInt8) -> [ScriptedPeer.Frame]? {
        peer.send(ScriptedPeer.ping(mark))
        var frames: [ScriptedPeer.Frame] = []
        while let frame = peer.nextFrame(), frame.type != .goAway {
            if frame.type == .ping && frame.flags == .ack && frame.payload[0] == mark { return frames }
            frames.append(frame)
        }
        return nil
    }

    /// Checks that another request on the connection is answered.
    private static func expectGoesOn(_ peer: ScriptedPeer, _ location: SourceLocation = #_sourceLocation) {
        peer.send(ScriptedPeer.request("/echo", stream: 101))
        let answer = peer.nextFrame { $0.stream == 101 || $0.type == .goAway }
        #expect(answer?.type == .headers, sourceLocation: location)
    }

    @Test("5.1.1 the highest number is a stream, and the last of its connection")
    func highestNumber() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 0x7FFF_FFFF))
        #expect(peer.frame(type: .headers, stream: 0x7FFF_FFFF)?.status == 200)
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.frame(type: .goAway)?.errorCode == .protocolError)
        #expect(peer.hasEnded())
    }

    @Test("5.1.2 a stream over the limit is refused, and its fields stay in the table")
    func refusedStreamIsDecoded() throws {
        let server = try TestServer(TransportLimits { $0.streamsPerConnectionMax = 1 })
        let peer = try server.peer()
        let added = ScriptedPeer.headers("/echo") + [0x40, 1, 0x61, 1, 0x62]
        peer.send(ScriptedPeer.request("/wait", stream: 1))
        peer.send(ScriptedPeer.frame(.headers, flags: .whole, stream: 3, added))
        #expect(peer.frame(type: .reset, stream: 3)?.errorCode == .refusedStream)
        peer.send(ScriptedPeer.frame(.reset, stream: 1, ScriptedPeer.bytes(.cancel)))
        peer.send(ScriptedPeer.frame(.headers, flags: .whole, stream: 5, ScriptedPeer.headers("/echo") + [0xBE]))
        #expect(peer.frame(type: .headers, stream: 5)?.status == 200)
    }

    @Test("5.4.1 GOAWAY names the last accepted stream, which was answered")
    func lastStream() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 5))
        #expect(peer.frame(type: .headers, stream: 5)?.status == 200)
        peer.send(ScriptedPeer.frame(.ping, stream: 1, ConformanceCase.ping))
        let goAway = try #require(peer.frame(type: .goAway))
        #expect(goAway.stream == 0)
        #expect(ScriptedPeer.number(goAway.payload[0..<4]) == 5)
    }

    @Test("HPACK 4.2 a table of no entries is announced once, in the first response", arguments: [0, 4096])
    func headerTableSize(allowed: UInt32) throws {
        let server = try TestServer()
        let peer = try server.peer(settings: ScriptedPeer.setting(.headerTableSize, allowed))
        peer.send(ScriptedPeer.request("/echo", stream: 1))
        #expect(peer.frame(type: .headers, stream: 1)?.payload.prefix(2) == [0x20, 0x88])
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.frame(type: .headers, stream: 3)?.payload.first == 0x88)
    }

    @Test("6.5.3 settings are applied in order, and acknowledged immediately")
    func settingsInOrder() throws {
        let server = try TestServer()
        let peer = try server.peer(
            settings: ScriptedPeer.setting(.initialWindowSize, 100) + ScriptedPeer.setting(.initialWindowSize, 1)
        )
        let answer = try #require(peer.nextFrame { $0.type == .settings && $0.flags == .ack })
        #expect(answer.payload == [])
        peer.send(ScriptedPeer.request("/big", stream: 1))
        #expect(peer.frame(type: .data, stream: 1)?.payload.count == 1)
    }

    @Test("6.8 a client that sends GOAWAY still gets its answers, then the connection ends")
    func goAway() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/wait", stream: 1))
        peer.send(ScriptedPeer.frame(.goAway, [UInt8](repeating: 0, count: 8)))
        await server.log.wait(for: "waiting 1")
        let other = try server.peer()
        other.send(ScriptedPeer.request("/release", stream: 1))
        #expect(peer.body(stream: 1) == [UInt8]("released".utf8))
        #expect(peer.hasEnded())
    }

    @Test("6.9 DATA on a stream that the server has reset gives its window back to the connection")
    func windowOfDiscardedData() throws {
        let server = try TestServer()
        let peer = try server.peer()
        // A malformed request, which is reset before it has ended.
        let block = ScriptedPeer.headers("/echo", isPost: true) + ScriptedPeer.field("X", "1")
        peer.send(ScriptedPeer.frame(.headers, flags: .endHeaders, stream: 1, block))
        #expect(peer.frame(type: .reset, stream: 1)?.errorCode == .protocolError)
        // The total exceeds the connection's window.
        for _ in 0..<80 { peer.send(ScriptedPeer.frame(.data, stream: 1, ConformanceCase.largest)) }
        Self.expectGoesOn(peer)
    }

    @Test("6.9.1 DATA does not exceed the window of the connection")
    func connectionWindow() throws {
        let server = try TestServer()
        let peer = try server.peer(settings: ScriptedPeer.setting(.initialWindowSize, 0x7FFF_FFFF))
        peer.send(ScriptedPeer.request("/big", stream: 1))
        #expect(try Self.dataBytes(peer) == 65_535)
        peer.send(ScriptedPeer.update(stream: 1, 10))
        #expect(try Self.dataBytes(peer) == 0)
        peer.send(ScriptedPeer.update(10))
        #expect(try Self.dataBytes(peer) == 10)
    }

    @Test("6.9.2 a new initial window applies to open streams, and may make theirs negative")
    func initialWindow() throws {
        let server = try TestServer()
        let peer = try server.peer(settings: ScriptedPeer.setting(.initialWindowSize, 0))
        peer.send(ScriptedPeer.request("/big", stream: 1))
        #expect(try Self.dataBytes(peer) == 0)
        peer.send(ScriptedPeer.frame(.settings, ScriptedPeer.setting(.initialWindowSize, 3)))
        #expect(try Self.dataBytes(peer) == 3)
        peer.send(ScriptedPeer.frame(.settings, ScriptedPeer.setting(.initialWindowSize, 1)))
        peer.send(ScriptedPeer.update(stream: 1, 2))
        #expect(try Self.dataBytes(peer) == 0)
        peer.send(ScriptedPeer.update(stream: 1, 5))
        #expect(try Self.dataBytes(peer) == 5)
    }

    /// Returns the number of DATA bytes that arrive without sending anything further.
    private static func dataBytes(_ peer: ScriptedPeer) throws -> Int {
        var count = 0
        for mark in [UInt8](1...2) {
            let frames = try #require(Self.frames(of: peer, toPing: mark))
            #expect(!frames.contains { $0.payload.count > 16_384 })
            for frame in frames where frame.type == .data { count += frame.payload.count }
        }
        return count
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

    /// Returns rules with one outcome on `stream`, each as section, name and bytes, which are sent after `first`.
    static func rules(
        _ outcome: Outcome,
        opening: [UInt8] = ScriptedPeer.preface + ScriptedPeer.frame(.settings),
        after first: [UInt8] = [],
        stream: Int = 1,
        _ rules: KeyValuePairs<String, [UInt8]>
    ) -> [ConformanceCase] {
        rules.map { name, sent in
            ConformanceCase(name: name, opening: opening, first: first, sent: sent, stream: stream, outcome: outcome)
        }
    }

    /// Returns rules for requests on stream 1, each given by its field block.
    static func rules(_ outcome: Outcome, blocks: KeyValuePairs<String, [UInt8]>) -> [ConformanceCase] {
        blocks.flatMap { name, block in Self.rules(outcome, [name: ScriptedPeer.request(block: block)]) }
    }

    static let all =
        Self.frames + Self.states + Self.definitions + Self.windows + Self.requests + Self.fields + Self.hpack
}

extension ConformanceCase.Outcome {
    static func connectionError(_ code: HTTP2ErrorCode) -> Self { .connectionError([code]) }
}

extension ScriptedPeer {
    /// Returns a PING whose bytes are all `mark`.
    static func ping(_ mark: UInt8) -> [UInt8] { Self.frame(.ping, [UInt8](repeating: mark, count: 8)) }

    /// Returns HEADERS with this whole field block: a request, or trailers.
    static func request(block: [UInt8], stream: Int = 1, flags: FrameFlags = .whole) -> [UInt8] {
        Self.frame(.headers, flags: flags, stream: stream, block)
    }
}
