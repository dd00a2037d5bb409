import HTTPTransport
import Testing
import Wire

/// The settings of a connection, and a handler's calls on it other than answers.
@Suite(.timeLimit(.minutes(15)))
struct HTTP2VerbTests {
    private typealias Peer = ScriptedPeer

    private static let acknowledgement = Peer.frame(.settings, flags: .ack)

    @Test("The settings of APNs are sent first, before any request", arguments: [1000, 4])
    func settings(streamsMax: Int) {
        let limits = TransportLimits { $0.streamsPerConnectionMax = streamsMax }
        let first = SessionFixture(limits, hasBegun: false).produce().first
        #expect(first?.type == .settings)
        let wanted: KeyValuePairs<SettingIdentifier, Int> = [
            .headerTableSize: 4096, .maxConcurrentStreams: streamsMax, .initialWindowSize: 65_535,
            .maxFrameSize: 16_384, .maxHeaderListSize: 8000,
        ]
        #expect(first?.payload == wanted.flatMap { Peer.setting($0.key, UInt32($0.value)) })
    }

    private static func fixture(openStreams: Int) -> SessionFixture {
        let fixture = SessionFixture()
        for index in 0..<openStreams { fixture.receive(Peer.request("/wait", stream: 1 + 2 * index)) }
        _ = fixture.takeEvents()
        return fixture
    }

    @Test("A new stream limit is announced, and applies once it is acknowledged")
    func streamLimit() throws {
        let fixture = Self.fixture(openStreams: 1)
        #expect(fixture.session.setStreamLimit(2))
        let settings = try #require(fixture.produce().first { $0.type == .settings })
        #expect(settings.flags == [])
        #expect(settings.payload == Peer.setting(.maxConcurrentStreams, 2))
        for stream in [3, 5, 7] { fixture.receive(Peer.request("/wait", stream: stream)) }
        #expect(fixture.produce().isEmpty, "the peer had not acknowledged the limit")
        fixture.receive(Self.acknowledgement)
        fixture.receive(Peer.request("/wait", stream: 9))
        let refusal = try #require(fixture.produce().first)
        #expect((refusal.type, refusal.stream, refusal.errorCode) == (.reset, 9, .refusedStream))
        for stream in [1, 3, 5] { #expect(fixture.respond(Int32(stream))) }
        _ = fixture.produce()
        fixture.receive(Peer.request("/wait", stream: 11))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.session.setStreamLimit(1000))
        #expect(fixture.produce().map(\.payload) == [Peer.setting(.maxConcurrentStreams, 1000)])
        fixture.receive(Peer.request("/wait", stream: 13))
        #expect(fixture.produce().isEmpty, "a higher limit holds at once")
        #expect(!fixture.isOver)
    }

    private static func window(_ bytes: UInt32, streams: UInt32 = 1000) -> [UInt8] {
        Peer.setting(.maxConcurrentStreams, streams) + Peer.setting(.initialWindowSize, bytes)
    }

    @Test("A new stream window is announced, stays closed for new data, and resetting it releases all streams")
    func streamWindow() throws {
        let fixture = Self.fixture(openStreams: 0)
        fixture.receive(Peer.request("/echo", stream: 1, ended: false))
        fixture.receive(Peer.frame(.data, stream: 1, [UInt8]("before".utf8)))
        #expect(fixture.session.setStreamWindow(6))
        #expect(fixture.produce().map(\.payload) == [Self.window(6)])
        fixture.receive(Self.acknowledgement)
        fixture.receive(Peer.request("/echo", stream: 3, ended: false))
        fixture.receive(Peer.frame(.data, stream: 3, [UInt8]("during".utf8)))
        #expect(fixture.produce().isEmpty, "no WINDOW_UPDATE for the stream or the connection")
        #expect(fixture.session.setStreamWindow(nil))
        #expect(fixture.produce().map(\.payload) == [Self.window(65_535)])
        // DATA may arrive before the acknowledgement, because some clients send it early.
        for stream in [1, 3] {
            fixture.receive(Peer.frame(.data, flags: .endStream, stream: stream, [UInt8](" and after".utf8)))
        }
        fixture.receive(Self.acknowledgement)
        let bodies = fixture.produce().filter { $0.type == .data }.map { String(decoding: $0.payload, as: UTF8.self) }
        #expect(bodies == ["before and after", "during and after"])
        #expect(!fixture.isOver)
    }

    @Test("A window is announced together with the last stream limit, and after the first frame")
    func earlyStreamWindow() {
        let fixture = SessionFixture(hasBegun: false)
        #expect(fixture.session.setStreamWindow(0))
        #expect(fixture.session.setStreamLimit(1))
        #expect(fixture.session.setStreamWindow(nil))
        let settings = fixture.produce().filter { $0.type == .settings }.map(\.payload)
        #expect(settings.count == 4)
        #expect(
            settings.first?[6..<18]
                == (Peer.setting(.maxConcurrentStreams, 1000) + Peer.setting(.initialWindowSize, 65_535))[...]
        )
        #expect(
            settings.dropFirst() == [
                Self.window(0), Peer.setting(.maxConcurrentStreams, 1), Self.window(65_535, streams: 1),
            ]
        )
    }

    @Test("A peer that acknowledges nothing gets a limited number of window changes")
    func streamWindowsAreBounded() {
        let fixture = SessionFixture()
        let areTaken = (0...StreamLimit.unacknowledgedMax).map { fixture.session.setStreamWindow($0) }
        #expect(areTaken.filter { $0 }.count == StreamLimit.unacknowledgedMax && areTaken.last == false)
        #expect(fixture.produce().map(\.payload) == (0..<32).map { Self.window($0) })
    }

    @Test("A held stream is freed when its peer gives up or its time is over")
    func abandonedStreams() {
        let fixture = Self.fixture(openStreams: 0)
        #expect(fixture.session.setStreamWindow(3))
        _ = fixture.produce()
        fixture.receive(Self.acknowledgement)
        for stream in [1, 3] {
            fixture.receive(Peer.request("/echo", stream: stream, ended: false))
            fixture.receive(Peer.frame(.data, stream: stream, [1, 2, 3]))
        }
        #expect(fixture.session.heldBytes > 0)
        #expect(fixture.memory.requestBytes.held == fixture.session.heldBytes)
        fixture.receive(Peer.frame(.reset, stream: 1, Peer.bytes(.cancel)))
        #expect(fixture.memory.streams.usedCount == 1)
        #expect(fixture.passSeconds(60))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.passSeconds(1))
        let ends = fixture.produce()
        #expect(ends.map(\.type) == [.reset] && ends.map(\.stream) == [3] && ends.map(\.errorCode) == [.cancel])
        #expect(fixture.times(.requestSeconds) == 1)
        // The bytes held are updated with the next input.
        fixture.receive(Peer.frame(.ping, [UInt8](repeating: 0, count: 8)))
        #expect(fixture.session.heldBytes == 0)
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(fixture.memory.streams.usedCount == 0)
        #expect(!fixture.isOver)
    }

    @Test("A reset ends a waiting or streaming stream with its code, and no other", arguments: HTTP2ErrorCode.allCases)
    func reset(_ code: HTTP2ErrorCode) {
        let fixture = Self.fixture(openStreams: 3)
        #expect(fixture.session.beginStreaming(3, Response()))
        #expect(fixture.respond(5))
        _ = fixture.produce()
        for stream: Int32 in [1, 3, 5, 9] { fixture.session.reset(stream, code: code) }
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.reset, .reset])
        #expect(frames.map(\.stream) == [1, 3])
        #expect(frames.map(\.errorCode) == [code, code])
        #expect(fixture.takeEvents() == ["closed 1", "closed 3"])
        #expect(!fixture.isOver)
    }

    @Test("GOAWAY names the last stream, and leaves open, refuses or drops the streams in flight")
    func goAway() {
        let rows: [(inFlight: StreamsInFlight, last: Int, closed: [String], isOver: Bool, isAnswered: Bool)] = [
            (.finished, 5, [], false, true), (.refused(from: 3), 1, ["closed 3", "closed 5"], false, true),
            (.refused(from: 1), 0, ["closed 1", "closed 3", "closed 5"], true, false), (.dropped, 5, [], true, true),
        ]
        for row in rows {
            let fixture = Self.fixture(openStreams: 3)
            let text = ByteView("{\"reason\":\"Shutdown\"}")
            fixture.session.goAway(debugData: text, code: .enhanceYourCalm, inFlight: row.inFlight)
            let frames = fixture.produce()
            #expect(frames.count == 1, "\(row.inFlight)")
            #expect(frames.first?.errorCode == .enhanceYourCalm, "\(row.inFlight)")
            #expect(frames.first.map { Peer.number($0.payload[0..<4]) } == row.last, "\(row.inFlight)")
            #expect(frames.first.map { Array($0.payload[8...]) } == text.array, "\(row.inFlight)")
            #expect(Set(fixture.takeEvents()) == Set(row.closed), "\(row.inFlight)")
            #expect(fixture.isOver == row.isOver, "\(row.inFlight)")
            #expect(fixture.respond(1) == row.isAnswered, "\(row.inFlight)")
        }
    }

    @Test("Error codes have the numbers of RFC 9113")
    func errorCodes() {
        #expect(HTTP2ErrorCode.allCases.map(\.rawValue) == Array(0...13))
        #expect(HTTP2ErrorCode.refusedStream.rawValue == 7 && HTTP2ErrorCode.enhanceYourCalm.rawValue == 11)
    }
}
