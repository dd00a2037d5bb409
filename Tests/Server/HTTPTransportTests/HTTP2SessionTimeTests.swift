import HTTPTransport
import Testing
import Wire

/// The time limits of one session, with a clock controlled by the test.
@Suite
struct HTTP2SessionTimeTests {
    @Test("A request must arrive within its time limit, to the second")
    func request() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/echo", stream: 1, ended: false))
        #expect(fixture.passSeconds(60))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.times(.requestSeconds) == 0)
        #expect(fixture.passSeconds(1))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.reset])
        #expect(frames.first?.errorCode == .cancel)
        #expect(fixture.times(.requestSeconds) == 1)
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("An answer must be read within its time limit; the handler and an open stream have no limit")
    func answer() {
        let fixture = SessionFixture(settings: ScriptedPeer.setting(.initialWindowSize, 0))
        for number in [1, 3, 5] { fixture.receive(ScriptedPeer.request("/wait", stream: number)) }
        #expect(fixture.respond(1, body: "answer"))
        #expect(fixture.session.beginStreaming(3, Response()))
        _ = fixture.produce()
        #expect(fixture.passSeconds(60))
        #expect(fixture.times(.responseSeconds) == 0)
        #expect(fixture.passSeconds(1))
        #expect(fixture.times(.responseSeconds) == 1)
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.reset])
        #expect(frames.first?.stream == 1)
        #expect(frames.first?.errorCode == .cancel)
        #expect(fixture.passSeconds(86_400))
        #expect(fixture.memory.streams.usedCount == 2)
    }

    @Test("A connection without requests is ended after its time, one with a request is not")
    func idle() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        #expect(fixture.passSeconds(3_601))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.respond(1))
        _ = fixture.produce()
        #expect(fixture.passSeconds(3_600))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.times(.idleSeconds) == 0)
        #expect(fixture.passSeconds(1))
        #expect(fixture.times(.idleSeconds) == 1)
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.goAway])
        #expect(frames.first?.payload.dropFirst(8) == [UInt8]("{\"reason\":\"IdleTimeout\"}".utf8)[...])
        #expect(fixture.isOver)
    }

    @Test("A session is quiet until a PING, its answer or the end is due, and never while a request arrives")
    func quiet() {
        let fixture = SessionFixture()
        #expect(fixture.session.isQuietUntil == 1000 + 3_600_001)
        fixture.receive(ScriptedPeer.request("/wait", stream: 1, ended: false))
        #expect(fixture.session.isQuietUntil == 0)
        fixture.receive(ScriptedPeer.frame(.data, flags: .endStream, stream: 1))
        #expect(fixture.session.isQuietUntil == .max)
        fixture.session.setPing(everySeconds: 30)
        #expect(fixture.session.isQuietUntil == 31_000)
        #expect(fixture.passSeconds(29))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.passSeconds(1))
        #expect(fixture.produce().map(\.type) == [.ping])
        #expect(fixture.session.isQuietUntil == 31_000 + 10_001)
        fixture.receive(ScriptedPeer.frame(.ping, flags: .ack, [UInt8](repeating: 0, count: 8)))
        #expect(fixture.session.isQuietUntil == 61_000)
        #expect(fixture.passSeconds(30))
        #expect(fixture.produce().map(\.type) == [.ping])
        #expect(fixture.passSeconds(10))
        #expect(!fixture.passSeconds(1))
    }

    @Test("PING is sent at the requested interval, and its answer has a time limit")
    func ping() {
        var timer = PingTimer(now: 0)
        func pass(to now: Int64) -> PingTimer.Action { timer.timePassed(now: now, answerSeconds: 10) }
        #expect(pass(to: 100_000) == .wait)
        timer.intervalChanged(seconds: 30, now: 100_000)
        #expect(pass(to: 129_999) == .wait)
        #expect(pass(to: 130_000) == .send)
        #expect(pass(to: 140_000) == .wait)
        // Changed while an answer is pending, which is still required.
        timer.intervalChanged(seconds: nil, now: 140_000)
        #expect(pass(to: 140_001) == .peerIsGone)
        timer.answered()
        #expect(pass(to: 999_999) == .wait)
    }

    @Test("A PING due within two seconds is sent with other output, and needs an answer like any other")
    func pingWithOthers() {
        var timer = PingTimer(now: 0)
        func leave(at now: Int64) -> Bool { timer.bytesQueued(now: now) }
        func pass(to now: Int64) -> PingTimer.Action { timer.timePassed(now: now, answerSeconds: 10) }
        #expect(!leave(at: 50_000))
        timer.intervalChanged(seconds: 30, now: 0)
        #expect(!leave(at: 27_999))
        #expect(leave(at: 28_000))
        #expect(!leave(at: 28_001))
        #expect(pass(to: 38_001) == .peerIsGone)
        timer.answered()
        #expect(pass(to: 57_999) == .wait)
        #expect(pass(to: 58_000) == .send)

        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        #expect(fixture.session.beginStreaming(1, Response()))
        fixture.session.setPing(everySeconds: 30)
        _ = fixture.produce()
        fixture.memory.now += 15_000
        _ = fixture.session.write(1, ByteView("one"))
        #expect(fixture.produce().map(\.type) == [.data])
        fixture.memory.now += 14_000
        _ = fixture.session.write(1, ByteView("two"))
        #expect(Set(fixture.produce().map(\.type)) == [.data, .ping])
    }

    @Test("Control frames are paid from a budget that fills with time, and never above its size")
    func budget() {
        #expect(Self.taken([0, 0, 0, 0, 99]) == [true, true, true, false, false])
        #expect(Self.taken([0, 0, 0, 100, 150]) == [true, true, true, true, false])
        #expect(Self.taken([500, 500, 500, 500].map { $0 * 1000 }) == [true, true, true, false])
        #expect(Self.taken([0, 0, 200, 200, 200, 200]) == [true, true, true, true, true, false])
    }

    /// Returns, for frames at these times, whether each is within a budget of three and ten a second.
    private static func taken(_ times: [Int64]) -> [Bool] {
        var budget = ControlFrameBudget(burst: 3, perSecond: 10, now: 0)
        return times.map { budget.frameReceived(now: $0) }
    }

    @Test("The latest streams that were cut short are known individually, and older ones are accepted")
    func cutShort() {
        var numbers = StreamNumbers()
        let count = Int32(StreamNumbers.cutShortMax)
        // Every second stream is cut short.
        for index in 0..<(2 * count + 4) {
            numbers.opened(index * 2 + 1)
            if index % 2 == 0 { numbers.cutShort(index * 2 + 1) }
        }
        // Two have left the ring: the streams 1 and 5.
        let letPass = (0..<(2 * count + 4)).map { $0 * 2 + 1 }.filter { numbers.mayGoOn($0) }
        #expect(letPass == [1, 3, 5] + (2..<(count + 2)).map { $0 * 4 + 1 })
        numbers.resetByPeer(9)
        #expect(!numbers.mayGoOn(9))
        #expect(numbers.faultUnlessOpen(9) == .streamClosed)
    }

    @Test("A peer that does not acknowledge SETTINGS in the time of a request is ended for it, first and later ones")
    func settingsTimeout() {
        for isFirst in [true, false] {
            let fixture = SessionFixture(acknowledges: !isFirst)
            if !isFirst {
                fixture.memory.now += 100_000
                #expect(fixture.session.setStreamLimit(1))
                #expect(fixture.produce().map(\.type) == [.settings])
            }
            fixture.receive(ScriptedPeer.request("/wait", stream: 1))
            #expect(fixture.passSeconds(60))
            #expect(fixture.produce().isEmpty)
            #expect(fixture.passSeconds(1))
            let frames = fixture.produce()
            #expect(frames.map(\.type) == [.goAway])
            #expect(frames.first?.errorCode == .settingsTimeout)
            #expect(fixture.isOver)
            #expect(fixture.times(.requestSeconds) == 1)
        }
    }

    @Test("A peer that has acknowledged is left alone, and one with several open acknowledgements must make progress")
    func settingsAcknowledged() {
        let fixture = SessionFixture()
        for limit in 1...3 { #expect(fixture.session.setStreamLimit(limit)) }
        _ = fixture.produce()
        for _ in 1...3 {
            #expect(fixture.passSeconds(60))
            #expect(fixture.produce().isEmpty)
            fixture.receive(ScriptedPeer.frame(.settings, flags: .ack))
        }
        #expect(fixture.passSeconds(3000))
        #expect(fixture.produce().isEmpty)
    }

    struct Unfinished: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        /// Bytes that prevent the connection from becoming silent.
        let drop: [UInt8]

        init(_ name: String, _ bytes: [UInt8], drop: [UInt8]) {
            self.testDescription = name
            self.bytes = bytes
            self.drop = drop
        }
    }

    static let unfinishedFrames = [
        Unfinished(
            "a block",
            ScriptedPeer.frame(.headers, stream: 1, [0x82]),
            drop: ScriptedPeer.frame(.continuation, stream: 1, ScriptedPeer.field("a", "b"))
        ),
        Unfinished(
            "trailers",
            ScriptedPeer.request("/wait", stream: 1, ended: false)
                + ScriptedPeer.frame(.headers, flags: .endStream, stream: 1),
            drop: ScriptedPeer.frame(.continuation, stream: 1)
        ),
        Unfinished(
            "a field",
            ScriptedPeer.frame(.headers, stream: 1, [0x00, 0x01]),
            drop: ScriptedPeer.frame(.continuation, stream: 1)
        ),
        Unfinished("the head of a frame", [0, 0], drop: []),
        Unfinished("GOAWAY", [0, 64, 0, 7, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8), drop: [0x20]),
        Unfinished("an unknown frame", [0, 64, 0, 0x42, 0, 0, 0, 0, 0], drop: [0x20]),
    ]

    @Test(
        "A frame or a block that has begun must end in the time of a request, or its connection does",
        arguments: Self.unfinishedFrames
    )
    func unfinished(_ unfinished: Unfinished) {
        let fixture = SessionFixture()
        fixture.receive(unfinished.bytes)
        for _ in 0..<60 {
            #expect(fixture.passSeconds(1))
            if !unfinished.drop.isEmpty { fixture.receive(unfinished.drop) }
        }
        #expect(fixture.produce().isEmpty)
        #expect(fixture.passSeconds(1))
        #expect(fixture.produce().last?.errorCode == .enhanceYourCalm)
        #expect(fixture.isOver)
    }

    @Test("A peer with a new partial frame each time is left alone, and so is one whose last frame is complete")
    func alwaysBusy() {
        let fixture = SessionFixture()
        let frame = ScriptedPeer.frame(.unknown, [1, 2, 3])
        fixture.receive(Array(frame[..<5]))
        for _ in 0..<200 {
            #expect(fixture.passSeconds(1))
            fixture.receive(Array(frame[5...]) + frame[..<5])
        }
        fixture.receive(Array(frame[5...]))
        #expect(fixture.passSeconds(100))
        #expect(fixture.produce().isEmpty)
        #expect(!fixture.isOver)
    }

    @Test("A waiting GOAWAY is sent after the answers, including those to later requests")
    func pendingGoAway() {
        let fixture = SessionFixture()
        for number in [1, 3] { fixture.receive(ScriptedPeer.request("/wait", stream: number)) }
        fixture.session.goAway(debugData: ByteView("bye"), inFlight: .answeredFirst)
        #expect(fixture.produce().isEmpty)
        #expect(fixture.respond(1, body: "one"))
        #expect(fixture.produce().map(\.type) == [.headers, .data])
        fixture.receive(ScriptedPeer.request("/wait", stream: 5))
        fixture.session.goAway(debugData: ByteView("again"), inFlight: .answeredFirst)
        #expect(fixture.respond(3, body: "three"))
        #expect(fixture.respond(5))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.headers, .headers, .data, .goAway])
        #expect(frames.last.map { ScriptedPeer.number($0.payload[0..<4]) } == 5)
        #expect(frames.last?.payload.dropFirst(8) == [UInt8]("bye".utf8)[...])
        #expect(fixture.isOver)
    }

    @Test("An announced GOAWAY stops new streams, answers arriving ones, and names the last a second later")
    func announcedGoAway() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        fixture.session.goAway(debugData: ByteView("bye"), inFlight: .announcedFirst)
        #expect(fixture.produce().isEmpty)
        #expect(fixture.respond(1, body: "one"))
        let first = fixture.produce()
        #expect(first.map(\.type) == [.headers, .data, .goAway])
        #expect(first.last?.payload == [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])
        fixture.receive(ScriptedPeer.request("/echo", stream: 3))
        #expect(fixture.produce().map(\.type) == [.headers] && !fixture.isOver)
        #expect(fixture.passSeconds(1))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [.goAway])
        #expect(frames.last.map { ScriptedPeer.number($0.payload[0..<4]) } == 3)
        #expect(frames.last?.payload.dropFirst(8) == [UInt8]("bye".utf8)[...])
        #expect(fixture.isOver)
    }

    @Test("GOAWAY waits at most a second for a partial request, and without limit for an open answer")
    func gracePeriod() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/wait", stream: 1))
        fixture.receive(ScriptedPeer.request("/echo", stream: 3, ended: false))
        fixture.session.goAway(debugData: ByteView("bye"), inFlight: .answeredFirst)
        #expect(fixture.passSeconds(10))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.respond(1))
        #expect(fixture.produce().map(\.type) == [.headers, .goAway])
        fixture.receive(ScriptedPeer.frame(.data, flags: .endStream, stream: 3))
        #expect(fixture.produce().map(\.type) == [.headers])
        #expect(fixture.isOver)

        let silent = SessionFixture()
        silent.receive(ScriptedPeer.request("/echo", stream: 1, ended: false))
        silent.session.goAway(debugData: ByteView("bye"), inFlight: .answeredFirst)
        #expect(!silent.session.wantsToWrite)
        #expect(silent.passSeconds(1))
        #expect(silent.session.wantsToWrite)
        #expect(silent.produce().map(\.type) == [.goAway])

        let idle = SessionFixture()
        idle.session.goAway(debugData: ByteView("bye"), inFlight: .answeredFirst)
        #expect(idle.session.wantsToWrite)
        #expect(idle.produce().map(\.type) == [.goAway])
    }

    @Test("A request that is read before GOAWAY has left is answered and named by it, or refused, never both")
    func requestBeforeGoAwayLeaves() {
        let waiting = SessionFixture()
        waiting.session.goAway(debugData: ByteView("bye"), inFlight: .answeredFirst)
        waiting.receive(ScriptedPeer.request("/wait", stream: 1))
        #expect(waiting.produce().isEmpty)
        #expect(waiting.respond(1))
        let frames = waiting.produce()
        #expect(frames.map(\.type) == [.headers, .goAway])
        #expect(frames.last.map { ScriptedPeer.number($0.payload[0..<4]) } == 1)
        #expect(waiting.isOver)

        for inFlight in [StreamsInFlight.finished, .refused(from: 5)] {
            let going = SessionFixture()
            for number in [1, 3] { going.receive(ScriptedPeer.request("/wait", stream: number)) }
            going.session.goAway(debugData: ByteView("bye"), inFlight: inFlight)
            going.receive(ScriptedPeer.request("/wait", stream: 5))
            #expect(!going.respond(5))
            for number: Int32 in [1, 3] { #expect(going.respond(number)) }
            let sent = going.produce()
            #expect(sent.filter { $0.type == .reset }.map(\.errorCode) == [.refusedStream])
            #expect(sent.first { $0.type == .goAway }.map { ScriptedPeer.number($0.payload[0..<4]) } == 3)
            #expect(going.isOver)
        }
    }
}
