import Bytes
import Testing

@testable import HTTPTransport

/// The limits of time of one session, by a clock that the test sets.
@Suite
struct HTTP2SessionTimeTests {
    @Test("A request has its time to arrive, to the second")
    func request() {
        let fixture = SessionFixture()
        fixture.receive(ScriptedPeer.request("/echo", stream: 1, ended: false))
        #expect(fixture.passSeconds(60))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.passSeconds(1))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [3])
        #expect(frames.first?.errorCode == 8)
        #expect(fixture.core.streams.usedCount == 0)
    }

    @Test("An answer has its time to be taken; the handler and an open stream have as long as they like")
    func answer() {
        let fixture = SessionFixture(settings: ScriptedPeer.setting(4, 0))
        for number in [1, 3, 5] { fixture.receive(ScriptedPeer.request("/wait", stream: number)) }
        #expect(fixture.respond(1, body: "answer"))
        #expect(fixture.session.beginStreaming(3, Response()))
        _ = fixture.produce()
        #expect(fixture.passSeconds(61))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [3])
        #expect(frames.first?.stream == 1)
        #expect(fixture.passSeconds(86_400))
        #expect(fixture.core.streams.usedCount == 2)
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
        #expect(fixture.passSeconds(1))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [7])
        #expect(frames.first?.payload.dropFirst(8) == [UInt8]("{\"reason\":\"IdleTimeout\"}".utf8)[...])
        #expect(fixture.isOver)
    }

    @Test("A session is quiet until a PING, its answer or the end is due, and never while a request arrives")
    func quiet() {
        let fixture = SessionFixture()
        #expect(fixture.session.isQuietUntil == 1000 + 3_600_001)
        fixture.receive(ScriptedPeer.request("/wait", stream: 1, ended: false))
        #expect(fixture.session.isQuietUntil == 0)
        fixture.receive(ScriptedPeer.frame(0, flags: 1, stream: 1))
        #expect(fixture.session.isQuietUntil == .max)
        fixture.session.setPing(everySeconds: 30)
        #expect(fixture.session.isQuietUntil == 31_000)
        #expect(fixture.passSeconds(29))
        #expect(fixture.produce().isEmpty)
        #expect(fixture.passSeconds(1))
        #expect(fixture.produce().map(\.type) == [6])
        #expect(fixture.session.isQuietUntil == 31_000 + 10_001)
        #expect(fixture.passSeconds(10))
        #expect(!fixture.passSeconds(1))
    }

    @Test("PING comes as often as was asked, and its answer has its time")
    func ping() {
        var timer = PingTimer(now: 0)
        func pass(to now: Int64) -> PingTimer.Action { timer.timePassed(now: now, answerSeconds: 10) }
        #expect(pass(to: 100_000) == .wait)
        timer.set(everySeconds: 30, now: 100_000)
        #expect(pass(to: 129_999) == .wait)
        #expect(pass(to: 130_000) == .send)
        #expect(pass(to: 140_000) == .wait)
        // Set anew while an answer is awaited: that answer is still owed.
        timer.set(everySeconds: nil, now: 140_000)
        #expect(pass(to: 140_001) == .peerIsGone)
        timer.answered()
        #expect(pass(to: 999_999) == .wait)
    }

    @Test("A PING that is due within two seconds goes with what is being sent, and is owed an answer like any other")
    func pingWithOthers() {
        var timer = PingTimer(now: 0)
        func leave(at now: Int64) -> Bool { timer.otherBytesLeave(now: now) }
        func pass(to now: Int64) -> PingTimer.Action { timer.timePassed(now: now, answerSeconds: 10) }
        #expect(!leave(at: 50_000))
        timer.set(everySeconds: 30, now: 0)
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
        fixture.core.now += 15_000
        _ = fixture.session.write(1, ByteView("one"))
        #expect(fixture.produce().map(\.type) == [0])
        fixture.core.now += 14_000
        _ = fixture.session.write(1, ByteView("two"))
        #expect(Set(fixture.produce().map(\.type)) == [0, 6])
    }

    @Test("Control frames are paid from a budget that fills with time, and never above its size")
    func budget() {
        #expect(Self.taken([0, 0, 0, 0, 99]) == [true, true, true, false, false])
        #expect(Self.taken([0, 0, 0, 100, 150]) == [true, true, true, true, false])
        #expect(Self.taken([500, 500, 500, 500].map { $0 * 1000 }) == [true, true, true, false])
        #expect(Self.taken([0, 0, 200, 200, 200, 200]) == [true, true, true, true, true, false])
    }

    /// Whether frames at these times are within a budget of three and ten a second.
    private static func taken(_ times: [Int64]) -> [Bool] {
        var budget = ControlFrameBudget(burst: 3, perSecond: 10, now: 0)
        return times.map { budget.frameReceived(now: $0) }
    }

    @Test("HEADERS on a number that is used up are a fault, unless more of that request may be under way")
    func numbers() {
        var numbers = StreamNumbers()
        #expect(numbers.faultUnlessOpen(1) == nil)
        numbers.opened(5)
        #expect(numbers.faultUnlessOpen(3) == .protocolError)
        #expect(numbers.faultUnlessOpen(4) == .protocolError)
        #expect(numbers.faultUnlessOpen(5) == .streamClosed)
        #expect(numbers.faultUnlessOpen(7) == nil)
        numbers.opened(7)
        #expect(numbers.faultUnlessOpen(5) == .streamClosed)
        #expect(numbers.faultUnlessOpen(6) == .protocolError)
        numbers.cutShort(3)
        #expect(numbers.faultUnlessOpen(1) == nil)
        #expect(numbers.faultUnlessOpen(3) == nil)
        #expect(numbers.faultUnlessOpen(5) == .streamClosed)
        numbers.resetByPeer(7)
        numbers.cutShort(7)
        #expect(numbers.faultUnlessOpen(7) == .streamClosed)
    }
}
