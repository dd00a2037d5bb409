import Testing
import WakeWorker

@Suite("The end of a worker")
struct StopStateMachineTests {
    @Test("A worker that nobody asked to stop waits for nothing")
    func running() {
        var machine = StopStateMachine()
        #expect(machine.nextMoment == nil)
        #expect(machine.workChanged(handlers: 0, wakes: 0, now: 5) == .nothing)
        #expect(machine.workChanged(handlers: 1, wakes: 1, now: 5) == .nothing)
        #expect(machine.momentReached(now: .max) == .nothing)
    }

    @Test(
        "Handlers that run are cancelled when results need what is left, and the limit is the end, to the millisecond",
        arguments: [(5000, 1250), (8000, 2000), (40_000, 10_000), (86_400_000, 10_000)] as [(Int64, Int64)]
    )
    func limit(limit: Int64, results: Int64) {
        var machine = StopStateMachine(limit: limit)
        machine.stopRequested(now: 100)
        machine.stopRequested(now: 3000)
        #expect(machine.workChanged(handlers: 2, wakes: 2, now: 100) == .nothing)
        #expect(machine.nextMoment == 100 + limit - results)
        #expect(machine.momentReached(now: 99 + limit - results) == .nothing)
        #expect(machine.momentReached(now: 100 + limit - results) == .cancelHandlers)
        #expect(machine.isCancelled)
        // A handler that does not heed it holds up nobody.
        #expect(machine.workChanged(handlers: 1, wakes: 2, now: 100 + limit - results) == .nothing)
        #expect(machine.nextMoment == 100 + limit)
        #expect(machine.momentReached(now: 99 + limit) == .nothing)
        #expect(machine.momentReached(now: 100 + limit) == .end)
        #expect(machine.nextMoment == nil)
    }

    @Test("A gateway that never ends the stream holds a worker without handlers up for the time of results")
    func silence() {
        var machine = StopStateMachine()
        machine.stopRequested(now: 0)
        // A wake that came while the gateway had not heard of the stop.
        #expect(machine.workChanged(handlers: 0, wakes: 0, now: 0) == .nothing)
        #expect(machine.nextMoment == 10_000)
        #expect(machine.workChanged(handlers: 1, wakes: 1, now: 4000) == .nothing)
        #expect(machine.nextMoment == 30_000)
        #expect(machine.workChanged(handlers: 0, wakes: 1, now: 5000) == .nothing)
        for now: Int64 in stride(from: 6000, to: 15_000, by: 1000) {
            #expect(machine.workChanged(handlers: 0, wakes: 1, now: now) == .nothing)
            #expect(machine.momentReached(now: now) == .nothing)
            #expect(machine.nextMoment == 15_000)
        }
        #expect(machine.momentReached(now: 15_000) == .end)
    }

    @Test("Whatever comes when, the end is never later than the limit")
    func neverLater() {
        for step: Int64 in [1, 7, 500, 9999] {
            var machine = StopStateMachine()
            machine.stopRequested(now: 0)
            var now: Int64 = 0
            var handlers = 1
            while machine.workChanged(handlers: handlers, wakes: 1, now: now) != .end {
                guard let moment = machine.nextMoment else { break }
                // Wakes come and go without end, each time just before results would be given up.
                now = max(now, min(moment, now + step))
                handlers = 1 - handlers
                if machine.momentReached(now: now) == .end { break }
            }
            #expect(now == 40_000, "step \(step)")
        }
    }

    @Test("A second request ends at once what has nothing to tell, and everything else within seconds")
    func hurried() {
        var idle = StopStateMachine()
        idle.stopRequested(now: 0)
        #expect(idle.workChanged(handlers: 0, wakes: 0, now: 0) == .nothing)
        idle.cancelRequested(now: 700)
        #expect(idle.workChanged(handlers: 0, wakes: 0, now: 700) == .end)

        // A result that the gateway has not taken for longer than that is given up at once.
        var waiting = StopStateMachine()
        waiting.stopRequested(now: 0)
        #expect(waiting.workChanged(handlers: 0, wakes: 1, now: 0) == .nothing)
        waiting.cancelRequested(now: 3000)
        #expect(waiting.momentReached(now: 3000) == .end)

        var busy = StopStateMachine()
        busy.stopRequested(now: 0)
        #expect(busy.workChanged(handlers: 1, wakes: 1, now: 0) == .nothing)
        busy.cancelRequested(now: 1000)
        #expect(busy.isCancelled)
        #expect(busy.nextMoment == 6000)
        // More requests do not prolong it.
        busy.cancelRequested(now: 4000)
        #expect(busy.nextMoment == 6000)
        #expect(busy.workChanged(handlers: 0, wakes: 1, now: 3000) == .nothing)
        #expect(busy.nextMoment == 5000)
        #expect(busy.momentReached(now: 4999) == .nothing)
        #expect(busy.momentReached(now: 5000) == .end)
        #expect(busy.workChanged(handlers: 0, wakes: 0, now: 5000) == .end)
    }

    @Test("A second request shortens what is left of the limit, and never prolongs it")
    func lateHurry() {
        var machine = StopStateMachine()
        machine.stopRequested(now: 0)
        #expect(machine.workChanged(handlers: 1, wakes: 1, now: 0) == .nothing)
        #expect(machine.momentReached(now: 30_000) == .cancelHandlers)
        machine.cancelRequested(now: 38_000)
        #expect(machine.nextMoment == 40_000)
        // Both at once, as a caller may who has no patience.
        var both = StopStateMachine()
        both.cancelRequested(now: 10)
        #expect(both.workChanged(handlers: 1, wakes: 1, now: 10) == .nothing)
        #expect(both.nextMoment == 5010)
        both.stopRequested(now: 20)
        #expect(both.nextMoment == 5010)
    }
}
