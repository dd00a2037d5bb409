import HTTPTransport
import Testing
import Wire

/// Every limit of one session. Below it, nothing happens. Beyond it, the offender is refused, and the event is
/// counted once.
@Suite("The limits of one HTTP/2 connection")
struct SessionBoundTests {
    private typealias Peer = ScriptedPeer

    /// Returns the error code of the GOAWAY among these frames; nil if there is none.
    private func goAway(_ frames: [ScriptedPeer.Frame]) -> HTTP2ErrorCode? {
        frames.first { $0.type == .goAway }?.errorCode
    }

    /// Returns HEADERS of a request with this many CONTINUATION frames, the last of which ends the block.
    private static func continued(_ count: Int) -> [UInt8] {
        var bytes = Peer.frame(.headers, flags: .endStream, stream: 1, Peer.headers("/echo"))
        for number in 1...count {
            bytes += Peer.frame(.continuation, flags: number == count ? .endHeaders : [], stream: 1)
        }
        return bytes
    }

    @Test("CONTINUATION frames of a header block are limited, however the bytes are cut", arguments: [false, true])
    func continuations(isCutUp: Bool) {
        let limits = TransportLimits { $0.continuationFramesMax = 3 }
        func receive(_ count: Int) -> SessionFixture {
            let fixture = SessionFixture(limits)
            let bytes = Self.continued(count)
            if isCutUp { for byte in bytes { fixture.receive([byte]) } } else { fixture.receive(bytes) }
            return fixture
        }
        let served = receive(3)
        #expect(served.takeEvents().count == 1)
        #expect(served.times(.continuationFramesMax) == 0)
        let ended = receive(5)
        #expect(self.goAway(ended.produce()) == .enhanceYourCalm)
        #expect(ended.isOver)
        #expect(ended.times(.continuationFramesMax) == 1)
        #expect(ended.takeEvents().isEmpty)
    }

    struct Flood: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The bytes sent before, and the number of frames that they count as.
        var before: [UInt8] = []
        var beforeCost = 0
        /// Returns the bytes of another frame. A request has the stream with this number.
        let frame: @Sendable (Int) -> [UInt8]
    }

    static let floods = [
        Flood(testDescription: "PING") { _ in Peer.frame(.ping, [UInt8](repeating: 7, count: 8)) },
        Flood(testDescription: "WINDOW_UPDATE") { _ in Peer.update(1) },
        Flood(testDescription: "WINDOW_UPDATE on a stream", before: Peer.request("/wait", stream: 1)) { _ in
            Peer.update(stream: 1, 1)
        },
        Flood(testDescription: "GOAWAY", before: Peer.request("/wait", stream: 1)) { _ in
            Peer.frame(.goAway, [UInt8](repeating: 0, count: 8))
        },
        Flood(testDescription: "SETTINGS") { _ in Peer.frame(.settings) },
        Flood(testDescription: "PRIORITY") { _ in Peer.frame(.priority, stream: 1, [0, 0, 0, 0, 1]) },
        Flood(testDescription: "RST_STREAM") { stream in
            Peer.request("/wait", stream: stream) + Peer.frame(.reset, stream: stream, Peer.bytes(.cancel))
        },
        Flood(testDescription: "RST_STREAM with NO_ERROR") { stream in
            Peer.request("/wait", stream: stream) + Peer.frame(.reset, stream: stream, Peer.bytes(.noError))
        },
        Flood(testDescription: "requests whose window overflows") { stream in
            Peer.request("/wait", stream: stream) + Peer.update(stream: stream, 0x7FFF_FFFF)
        },
        Flood(testDescription: "requests with less content than announced") { stream in
            Peer.request(block: Peer.headers("/wait") + Peer.field("content-length", "5"), stream: stream)
        },
        Flood(testDescription: "requests with more content than announced") { stream in
            let fields = Peer.headers("/wait", isPost: true) + Peer.field("content-length", "1")
            return Peer.frame(.headers, flags: .endHeaders, stream: stream, fields)
                + Peer.frame(.data, flags: .endStream, stream: stream, [1, 2])
        },
        Flood(testDescription: "requests with a malformed field") { stream in
            Peer.request(block: Peer.headers("/wait") + Peer.field("X", "1"), stream: stream)
        },
        Flood(testDescription: "requests with malformed trailers") { stream in
            Peer.request("/wait", stream: stream, ended: false)
                + Peer.request(block: Peer.field("X", "1"), stream: stream)
        },
        Flood(testDescription: "empty DATA", before: Peer.request("/wait", stream: 1, ended: false)) { _ in
            Peer.frame(.data, stream: 1)
        },
        Flood(
            testDescription: "empty DATA on a stream that we reset",
            before: Peer.frame(.headers, flags: .endHeaders, stream: 1, [0x82] + Peer.field("X", "1")),
            beforeCost: 1
        ) { _ in Peer.frame(.data, stream: 1) },
        Flood(
            testDescription: "CONTINUATION",
            before: Peer.frame(.headers, flags: .endStream, stream: 1, Peer.headers("/wait"))
        ) { _ in Peer.frame(.continuation, stream: 1) },
    ]

    @Test("All kinds of frames without a request share one budget", arguments: Self.floods)
    func controlFrames(flood: Flood) {
        // The client's first SETTINGS is one of them.
        let fixture = SessionFixture(TransportLimits { $0.controlFramesBurst = 5 })
        fixture.receive(flood.before)
        for index in flood.beforeCost..<4 { fixture.receive(flood.frame(index * 2 + 1)) }
        #expect(fixture.times(.controlFramesPerSecond) == 0)
        #expect(self.goAway(fixture.produce()) == nil)
        for index in 4..<7 { fixture.receive(flood.frame(index * 2 + 1)) }
        #expect(self.goAway(fixture.produce()) == .enhanceYourCalm)
        #expect(fixture.isOver)
        #expect(fixture.times(.controlFramesPerSecond) == 1)
    }

    @Test("A peer that floods in one piece cannot queue more answers than its budget has frames")
    func queuedAnswers() {
        let fixture = SessionFixture()
        fixture.receive((0..<1500).flatMap { _ in Peer.frame(.ping, Self.ping) })
        #expect(fixture.session.framesPending <= fixture.memory.limits.controlFramesBurst + 2)
        #expect(self.goAway(fixture.produce()) == .enhanceYourCalm)
    }

    @Test("Streams beyond the limit take from the same budget; until it is acknowledged, as many as it allows do not")
    func refusedStreams() {
        let refused = [true, false].map { acknowledges in
            let limits = TransportLimits {
                $0.controlFramesBurst = 5
                $0.streamsPerConnectionMax = 1
            }
            let fixture = SessionFixture(limits, acknowledges: acknowledges)
            let frames = (0..<8).flatMap { index in
                fixture.receive(Peer.request("/wait", stream: index * 2 + 1))
                return fixture.produce()
            }
            #expect(self.goAway(frames) != nil)
            #expect(fixture.times(.controlFramesPerSecond) == 1)
            return frames.filter { $0.errorCode == .refusedStream }.count
        }
        #expect(refused[0] >= 4 && refused[1] == refused[0] + 1, "\(refused)")
    }

    @Test("A stream that the handler resets costs its peer nothing, and one that was answered in full earns a frame")
    func ownResets() {
        let fixture = SessionFixture(TransportLimits { $0.controlFramesBurst = 5 })
        for index in 0..<20 {
            fixture.receive(Peer.request("/wait", stream: index * 2 + 1))
            fixture.session.reset(Int32(index * 2 + 1), code: .internalError)
            #expect(fixture.produce().map(\.errorCode) == [.internalError])
        }
        for index in 20..<40 {
            fixture.receive(Peer.request("/wait", stream: index * 4 + 1))
            fixture.receive(Peer.update(stream: index * 4 + 1, 0x7FFF_FFFF))
            fixture.receive(Peer.request("/echo", stream: index * 4 + 3))
            #expect(self.goAway(fixture.produce()) == nil)
        }
        #expect(fixture.times(.controlFramesPerSecond) == 0)
    }

    @Test("Frames within the budget of a second cost nothing, and mixing kinds gains nothing")
    func budget() {
        let limits = TransportLimits {
            $0.controlFramesBurst = 11
            $0.controlFramesPerSecond = 10
        }
        let fixture = SessionFixture(limits)
        for _ in 0..<5 {
            for index in 0..<10 { fixture.receive(index < 5 ? Peer.frame(.settings) : Peer.frame(.ping, Self.ping)) }
            #expect(fixture.passSeconds(1))
        }
        #expect(fixture.times(.controlFramesPerSecond) == 0)
        for index in 0..<11 { fixture.receive(index < 5 ? Peer.frame(.settings) : Peer.frame(.ping, Self.ping)) }
        #expect(fixture.times(.controlFramesPerSecond) == 1)
    }

    private static let ping = [UInt8](repeating: 7, count: 8)

    @Test("A header list of the maximum size is accepted, and one more byte is answered 431")
    func headerList() {
        // Four fields, each with 32 additional bytes: :method GET, :scheme http, :path /echo, host h.
        let size = 4 * 32 + 10 + 11 + 10 + 5
        for (limit, times) in [(size, 0), (size - 1, 1)] {
            let fixture = SessionFixture(TransportLimits { $0.headerListBytesMax = limit })
            fixture.receive(Peer.request("/echo", stream: 1))
            let head = fixture.produce().first
            #expect(head?.status == (times == 0 ? 200 : 431))
            #expect(head?.flags.contains(.endStream) == true)
            #expect(fixture.times(.headerListBytesMax) == times)
            #expect(!fixture.isOver)
        }
    }

    @Test("A frame of the maximum size is accepted, and a longer one ends the connection; only that fault counts")
    func frameSize() {
        for (bytes, times) in [(16_384, 0), (16_385, 1)] {
            let fixture = SessionFixture()
            fixture.receive(Peer.request("/wait", stream: 1, ended: false))
            fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0, count: bytes)))
            #expect(self.goAway(fixture.produce()) == (times == 0 ? nil : .frameSizeError))
            #expect(fixture.times(.frameBytesMax) == times)
        }
        let fixture = SessionFixture()
        fixture.receive(Peer.frame(.ping, [1, 2, 3]))
        #expect(self.goAway(fixture.produce()) == .frameSizeError)
        #expect(fixture.times(.frameBytesMax) == 0)
    }

    @Test("A stream's window may be used up; one byte more resets the stream, and the connection continues")
    func streamWindow() {
        for (more, times) in [(0, 0), (1, 1)] {
            let fixture = SessionFixture(TransportLimits { $0.streamWindowBytes = 16_384 })
            fixture.receive(Peer.request("/wait", stream: 1, ended: false))
            // A window is not extended until half of it was used.
            fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0, count: 8_191)))
            fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0, count: 8_193 + more)))
            let frames = fixture.produce()
            #expect(frames.first { $0.type == .reset }?.errorCode == (times == 0 ? nil : .flowControlError))
            #expect(fixture.times(.streamWindowBytes) == times)
            #expect(!fixture.isOver)
        }
    }

    @Test("The connection's window may be used up; one byte more ends it")
    func connectionWindow() {
        for (last, times) in [(16_383, 0), (16_384, 1)] {
            let fixture = SessionFixture(TransportLimits { $0.connectionWindowBytes = 65_535 })
            fixture.receive(Peer.request("/wait", stream: 1, ended: false))
            // After half of it was used, the window is extended, but the client sends the rest before it is notified.
            for bytes in [16_384, 16_384, 16_384, 16_384, 16_384, last] {
                fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0, count: bytes)))
            }
            #expect(self.goAway(fixture.produce()) == (times == 0 ? nil : .flowControlError))
            #expect(fixture.times(.connectionWindowBytes) == times)
        }
    }

    @Test("A stream over the limit is refused and counted, and so is one over the loop's limit")
    func streams() {
        let fixture = SessionFixture(TransportLimits { $0.streamsPerConnectionMax = 2 })
        for number in [1, 3] { fixture.receive(Peer.request("/wait", stream: number)) }
        #expect(fixture.times(.streamsPerConnectionMax) == 0)
        fixture.receive(Peer.request("/wait", stream: 5))
        #expect(fixture.produce().first { $0.type == .reset }?.errorCode == .refusedStream)
        #expect(fixture.times(.streamsPerConnectionMax) == 1)

        let loop = SessionFixture(TransportLimits { $0.streamsPerLoopMax = 2 })
        for number in [1, 3] { loop.receive(Peer.request("/wait", stream: number)) }
        #expect(loop.times(.streamsPerLoopMax) == 0)
        loop.receive(Peer.request("/wait", stream: 5))
        let resets = loop.produce().filter { $0.type == .reset }
        #expect(resets.map(\.stream) == [5] && resets.first?.errorCode == .refusedStream)
        #expect(loop.times(.streamsPerLoopMax) == 1)
        #expect(loop.times(.streamsPerConnectionMax) == 0)
        #expect(loop.respond(1))
        _ = loop.produce()
        loop.receive(Peer.request("/wait", stream: 7))
        #expect(loop.takeEvents().last == "7 GET /wait h host=h ")
    }

    @Test("A connection may have a few streams even while others use all streams of the loop")
    func streamsOfOthers() {
        // A connection may always have two streams.
        let limit = 2 << 13
        let limits = TransportLimits {
            $0.streamsPerLoopMax = limit
            $0.streamsPerConnectionMax = limit
        }
        let greedy = SessionFixture(limits)
        for number in 0..<limit { greedy.receive(Peer.request("/wait", stream: 1 + 2 * number, ended: false)) }
        let other = SessionFixture(limits, beside: greedy)
        for number in [1, 3, 5] { other.receive(Peer.request("/wait", stream: number)) }
        let resets = other.produce().filter { $0.type == .reset }
        #expect(resets.map(\.stream) == [5] && resets.first?.errorCode == .refusedStream)
        #expect(other.times(.streamsPerLoopMax) == 1)
    }

    /// Returns the bytes held for the head of a request whose body is pending.
    private func headBytes() -> Int {
        let fixture = SessionFixture()
        fixture.receive(Peer.request("/wait", stream: 1, ended: false))
        return fixture.session.heldBytes
    }

    @Test("The request that exceeds a connection's bytes of open requests is refused, and the others continue")
    func requestBytesOfConnection() {
        let limit = 2 * self.headBytes() + 10
        let fixture = SessionFixture(TransportLimits { $0.requestBytesPerConnectionMax = limit })
        for number in [1, 3] { fixture.receive(Peer.request("/wait", stream: number, ended: false)) }
        fixture.receive(Peer.frame(.data, stream: 3, [UInt8](repeating: 0x61, count: 10)))
        #expect(fixture.times(.requestBytesPerConnectionMax) == 0)
        #expect(fixture.session.heldBytes == limit)
        _ = fixture.takeEvents()
        fixture.receive(Peer.frame(.data, stream: 3, [0x61]))
        #expect(fixture.times(.requestBytesPerConnectionMax) == 1)
        #expect(fixture.takeEvents() == ["3 POST /wait h host=h no room: connection"])
        #expect(fixture.respond(3, body: "refused"))
        let frames = fixture.produce().filter { $0.stream == 3 }
        #expect(frames.map(\.type) == [.headers, .data, .reset])
        #expect(frames.last?.errorCode == .noError)
        // Its bytes were released. A head alone may also be too large.
        fixture.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0x61, count: self.headBytes() + 10)))
        #expect(fixture.times(.requestBytesPerConnectionMax) == 1)
        fixture.receive(Peer.request("/wait", stream: 5, ended: false))
        #expect(fixture.times(.requestBytesPerConnectionMax) == 2)
        fixture.receive(Peer.frame(.data, flags: .endStream, stream: 1))
        #expect(fixture.session.heldBytes == 0)
        #expect(fixture.memory.requestBytes.held == 0)
    }

    @Test("Bytes of incomplete requests are limited over all connections; complete requests are not counted")
    func requestBytes() {
        let limits = TransportLimits { $0.requestBytesMax = 2 * self.headBytes() + 10 }
        let first = SessionFixture(limits)
        let second = SessionFixture(limits, beside: first)
        for fixture in [first, second] { fixture.receive(Peer.request("/wait", stream: 1, ended: false)) }
        first.receive(Peer.frame(.data, stream: 1, [UInt8](repeating: 0x61, count: 10)))
        #expect(first.memory.requestBytes.held == limits.requestBytesMax)
        second.receive(Peer.request("/echo", stream: 3))
        #expect(first.times(.requestBytesMax) == 0)
        _ = second.takeEvents()
        second.receive(Peer.frame(.data, stream: 1, [0x61]))
        #expect(first.times(.requestBytesMax) == 1)
        #expect(second.takeEvents() == ["1 POST /wait h host=h no room: server"])
        // A connection that ends releases the bytes of its requests.
        first.session.end()
        #expect(first.memory.requestBytes.held == 0)
        second.receive(Peer.request("/wait", stream: 5, ended: false))
        second.receive(Peer.frame(.data, flags: .endStream, stream: 5, [0x61]))
        #expect(first.times(.requestBytesMax) == 1)
        #expect(second.takeEvents().last == "5 POST /wait h host=h a")
    }

    /// Returns HEADERS of a request that continues with the first bytes of a long field.
    private static func half(_ count: Int, stream: Int = 1) -> [UInt8] {
        let field: [UInt8] = [0x00, 1, 0x78, 0x7F, 0x81, 0xF0, 0x01]
        return Peer.frame(.headers, flags: .endStream, stream: stream, Peer.headers("/echo") + field)
            + Peer.frame(.continuation, stream: stream, [UInt8](repeating: 0x76, count: count))
    }

    /// Returns more bytes of that field.
    private static func more(_ count: Int, endsBlock: Bool = false) -> [UInt8] {
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: count, by: 16_000) {
            let piece = [UInt8](repeating: 0x76, count: min(16_000, count - start))
            bytes += Peer.frame(
                .continuation,
                flags: endsBlock && start + piece.count == count ? .endHeaders : [],
                stream: 1,
                piece
            )
        }
        return bytes
    }

    @Test("The bytes of a partial block, including a partial field, count as request bytes until the block ends")
    func blockBytes() {
        let fixture = SessionFixture()
        fixture.receive(Self.half(1000))
        let held = fixture.memory.requestBytes.held
        #expect(held > 1000 && held < 1100)
        fixture.receive(Self.more(500))
        #expect(fixture.memory.requestBytes.held == held + 500)
        fixture.session.end()
        #expect(fixture.memory.requestBytes.held == 0)

        let ended = SessionFixture()
        ended.receive(Self.half(1000) + Self.more(29_847))
        #expect(ended.memory.requestBytes.held > 30_000)
        ended.receive(Self.more(1, endsBlock: true))
        #expect(ended.memory.requestBytes.held == 0)
        #expect(ended.produce().first?.status == 431)
    }

    @Test("A block over the connection's limit ends it; one over the limit of all is refused, or ends it, too")
    func blockBytesMax() {
        let own = SessionFixture(TransportLimits { $0.requestBytesPerConnectionMax = 900 })
        own.receive(Self.half(1000))
        #expect(self.goAway(own.produce()) == .enhanceYourCalm)
        #expect(own.times(.requestBytesPerConnectionMax) == 1)

        let limits = TransportLimits { $0.requestBytesMax = 900 }
        let small = SessionFixture(limits)
        small.receive(Self.half(1000))
        #expect(small.produce().map(\.errorCode) == [.refusedStream])
        #expect(small.times(.requestBytesMax) == 1)
        // The rest of the block is read and discarded, and the connection continues.
        small.receive(Self.more(29_848, endsBlock: true))
        #expect(small.memory.requestBytes.held == 0)
        small.receive(Peer.request("/echo", stream: 3))
        #expect(small.produce().first?.status == 200)

        let large = SessionFixture(limits)
        large.receive(Self.half(9000))
        #expect(self.goAway(large.produce()) == .enhanceYourCalm)
        #expect(large.times(.requestBytesMax) == 1)
    }

    @Test("A field longer than four header lists ends the connection before it has arrived")
    func longestField() {
        let fixture = SessionFixture(TransportLimits { $0.headerListBytesMax = 1000 })
        fixture.receive(Peer.frame(.headers, flags: .endStream, stream: 1, [0x00, 1, 0x78, 0x7F, 0xA0, 0x1E]))
        #expect(!fixture.isOver)
        let over = SessionFixture(TransportLimits { $0.headerListBytesMax = 1000 })
        over.receive(Peer.frame(.headers, flags: .endStream, stream: 1, [0x00, 1, 0x78, 0x7F, 0xA1, 0x1E]))
        #expect(self.goAway(over.produce()) == .compressionError)
    }

    @Test("Queued bytes of streams count for their connection until they are sent or their stream ends")
    func queuedBytes() {
        let fixture = SessionFixture(settings: Peer.setting(.initialWindowSize, 100))
        for number in [1, 3, 5] { fixture.receive(Peer.request("/wait", stream: number)) }
        #expect(fixture.session.beginStreaming(1, Response()))
        let thousand = [UInt8](repeating: 0x61, count: 1000)
        for _ in 0..<2 { _ = thousand.withByteView { fixture.session.write(1, $0) } }
        #expect(fixture.respond(3, body: "answer"))
        #expect(fixture.respond(5))
        #expect(fixture.session.queuedBytes == 2006)
        _ = fixture.produce()
        #expect(fixture.session.queuedBytes == 1900)
        fixture.receive(Peer.update(stream: 1, 900))
        _ = fixture.produce()
        #expect(fixture.session.queuedBytes == 1000)
        fixture.receive(Peer.frame(.reset, stream: 1, Peer.bytes(.cancel)))
        #expect(fixture.session.queuedBytes == 0)
    }

    @Test("Output is prepared up to the limit, and the rest later")
    func output() {
        for (bytesMax, count, times) in [(35, 34, 0), (17, 17, 1)] {
            let fixture = SessionFixture()
            fixture.receive(Peer.frame(.ping, Self.ping) + Peer.frame(.ping, Self.ping))
            var output = ByteBuffer()
            fixture.session.produce(into: &output, bytesMax: bytesMax)
            #expect(output.count == count)
            #expect(fixture.times(.outputBytesMax) == times)
        }
    }
}
