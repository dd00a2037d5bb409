import Testing
import WakeWorker
import Wire

@Suite("Wakes that were read, as a session takes them")
struct WakeMessageTests {
    @Test("The traces of a wake are read; most wakes have none")
    func traces() throws {
        let start = #"{"wake":"w","device":"ab","topic":"t","deadline":99,"#
        let text = start + #""traceparent":"p","tracestate":"a=\"1\"","traceLinks":["x","y"],"payload":null}"#
        let wake = WakeNotification(try #require(WakeMessage(Array(text.utf8))))
        #expect(wake.traceparent == "p" && wake.tracestate == "a=\"1\"" && wake.traceLinks == ["x", "y"])
        let plain = WakeNotification(try #require(WakeMessage(Array((start + #""payload":null}"#).utf8))))
        #expect(plain.traceparent == nil && plain.tracestate == nil && plain.traceLinks.isEmpty)
    }

    @Test(
        "A session can reckon with any time that is left, on a machine that has run for a hundred years",
        arguments: ["9223372036854775807", "-9223372036854775808", "-1", "-0", "0", "3155760000000"]
    )
    func times(number: String) throws {
        let data = #"{"wake":"w","device":"ab","topic":"t","deadline":\#(number),"timeLeft":\#(number)}"#
        let wake = try #require(WakeMessage(Array(data.utf8)))
        let now: Int64 = 3_155_760_000_000
        var machine = WakeStateMachine(deadline: now + (wake.timeLeft ?? 0))
        machine.handlerStarted()
        machine.extended(to: now + (wake.timeLeft ?? 0))
        var keepAlive = KeepAlive()
        keepAlive.begun(deadline: machine.deadline)
        keepAlive.extended(to: machine.deadline)
        #expect(machine.nextMoment != nil && keepAlive.nextMoment != nil)
    }
}
