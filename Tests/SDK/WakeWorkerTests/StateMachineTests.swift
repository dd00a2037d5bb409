import HTTPClient
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("A worker's subscription")
struct SubscriptionStateMachineTests {
    /// The state of a machine when an event arrives.
    enum Place: CaseIterable {
        case waiting, connecting, subscribed, draining, over

        func machine() -> SubscriptionStateMachine {
            var machine = SubscriptionStateMachine(now: 0)
            if self == .waiting { return machine }
            _ = machine.momentReached(now: 0)
            if self == .connecting { return machine }
            if self == .over {
                machine.failed()
                return machine
            }
            machine.accepted(now: 10)
            if self == .draining { _ = machine.stopRequested() }
            return machine
        }
    }

    @Test("A new worker subscribes immediately, and is silent until it is open", arguments: [nil, 20_000, 300_000])
    func begins(limit: Int64?) {
        var timing = WorkerTiming()
        if let limit { timing.silenceMax = limit }
        var machine = SubscriptionStateMachine(now: 5, timing: timing)
        let limit = limit ?? 40_000
        #expect(machine.nextMoment == 5)
        #expect(machine.momentReached(now: 4) == .nothing)
        #expect(machine.momentReached(now: 5) == .subscribe)
        machine.accepted(now: 6)
        #expect(machine.nextMoment == 6 + limit)
        machine.received(now: 1000)
        #expect(machine.momentReached(now: 999 + limit) == .nothing)
        #expect(machine.momentReached(now: 1000 + limit) == .giveUp(silence: limit))
    }

    @Test("A request to stop drains an open stream, and ends an attempt to subscribe")
    func stop() {
        let expected: [Place: SubscriptionStateMachine.StopRequestedAction] = [
            .waiting: .cancel, .connecting: .cancel, .subscribed: .drain, .draining: .nothing, .over: .nothing,
        ]
        for place in Place.allCases {
            var machine = place.machine()
            #expect(machine.stopRequested() == expected[place], "\(place)")
            #expect(machine.isStopping)
            #expect(machine.isOver == (place != .subscribed && place != .draining), "\(place)")
        }
    }

    @Test("A stream that ends is tried again, unless the worker stops")
    func ended() {
        var generator = SeededGenerator(seed: 7)
        for place in Place.allCases {
            var machine = place.machine()
            let action = machine.streamEnded(now: 100, using: &generator)
            switch (place, action) {
            case (.waiting, .retry(let wait)), (.connecting, .retry(let wait)), (.subscribed, .retry(let wait)):
                #expect((place == .subscribed ? 750...2250 : 1250...2500).contains(wait), "\(place)")
                #expect(machine.nextMoment == 100 + wait)
                #expect(machine.momentReached(now: 100 + wait) == .subscribe)
            case (.draining, .over), (.over, .over): #expect(machine.isOver)
            default: Issue.record("\(place): \(action)")
            }
        }
    }

    @Test("Waits grow while nothing works, and start over once it does")
    func backoff() {
        var generator = SeededGenerator(seed: 3)
        var machine = SubscriptionStateMachine(now: 0)
        var now: Int64 = 0
        for bound: Int64 in [2500, 5000, 10_000, 15_000, 15_000] {
            #expect(machine.momentReached(now: now) == .subscribe)
            guard case .retry(let wait) = machine.streamEnded(now: now, using: &generator) else {
                Issue.record("no retry")
                return
            }
            #expect((bound / 2...bound).contains(wait))
            now += wait
        }
        #expect(machine.momentReached(now: now) == .subscribe)
        machine.accepted(now: now)
        let after = machine.streamEnded(retryAfter: 60_000, now: now, using: &generator)
        guard case .retry(let wait) = after else { return #expect(Bool(false), "\(after)") }
        #expect((60_750...62_250).contains(wait))
    }

    @Test(
        "A thousand workers whose gateway restarts are back within five seconds, spread over time",
        arguments: [0, 700, 1500, 3000, 4500] as [Int64]
    )
    func herd(isBackAt: Int64) {
        var generator = SeededGenerator(seed: 11)
        var arrivals: [Int64] = []
        var tries: [Int64: Int] = [:]
        for _ in 0..<1000 {
            var machine = SubscriptionStateMachine(now: 0)
            _ = machine.momentReached(now: 0)
            machine.accepted(now: 0)
            var now: Int64 = 0
            while case .retry(let wait) = machine.streamEnded(now: now, using: &generator) {
                now += wait
                tries[now / 10, default: 0] += 1
                #expect(machine.momentReached(now: now) == .subscribe)
                if now >= isBackAt { break }
            }
            arrivals.append(now)
        }
        #expect(arrivals.allSatisfy { $0 <= isBackAt + 5000 })
        #expect(tries.values.allSatisfy { $0 < 30 }, "\(tries.values.max() ?? 0) of 1,000 within 10 ms")
        #expect(Set(arrivals).count > 500)
    }

    @Test("Only a worker that has a stream and does not stop subscribes again after its releases")
    func renewed() {
        for place in Place.allCases {
            var machine = place.machine()
            #expect(machine.renewed(now: 20) == (place == .subscribed), "\(place)")
            if place == .subscribed { #expect(machine.momentReached(now: 20) == .subscribe) }
        }
    }

    @Test("Events that no longer matter change nothing")
    func late() {
        for place in Place.allCases where place != .connecting {
            var machine = place.machine()
            let before = machine.nextMoment
            machine.accepted(now: 20)
            #expect(machine.nextMoment == before, "\(place)")
        }
        var over = Place.over.machine()
        over.received(now: 20)
        #expect(over.momentReached(now: .max) == .nothing)
        #expect(over.nextMoment == nil)
    }
}

@Suite("Waits between tries")
struct BackoffTests {
    @Test(
        "A seed determines the schedule, and each wait lies between half of its limit and its limit",
        arguments: 0..<20
    )
    func schedule(seed: UInt64) {
        var backoff = Backoff(firstMilliseconds: 1000, lastMilliseconds: 15_000)
        var generator = SeededGenerator(seed: seed)
        let bounds = [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]
        let waits = bounds.map { _ in backoff.failed(using: &generator) }
        for (wait, bound) in zip(waits, bounds) {
            #expect((bound / 2...bound).contains(wait), "seed \(seed): \(waits)")
        }

        var again = Backoff(firstMilliseconds: 1000, lastMilliseconds: 15_000)
        var same = SeededGenerator(seed: seed)
        #expect(bounds.map { _ in again.failed(using: &same) } == waits)
        again.succeeded()
        #expect((500...1000).contains(again.failed(using: &same)))
    }
}

@Suite("The end of a worker")
struct StopStateMachineTests {
    @Test("A worker that was not asked to stop waits for nothing")
    func running() {
        var machine = StopStateMachine()
        #expect(machine.nextMoment == nil)
        #expect(machine.workChanged(handlers: 0, wakes: 0, now: 5) == .nothing)
        #expect(machine.workChanged(handlers: 1, wakes: 1, now: 5) == .nothing)
        #expect(machine.momentReached(now: .max) == .nothing)
    }

    @Test(
        "Running handlers are cancelled while results can still be sent, and the run ends exactly at the limit",
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
        // A handler that ignores the cancellation does not delay anything else.
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
        // A wake that arrived before the gateway received the stop.
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

    @Test("The end is never later than the limit, whatever happens")
    func neverLater() {
        for step: Int64 in [1, 7, 500, 9999] {
            var machine = StopStateMachine()
            machine.stopRequested(now: 0)
            var now: Int64 = 0
            var handlers = 1
            while machine.workChanged(handlers: handlers, wakes: 1, now: now) != .end {
                guard let moment = machine.nextMoment else { break }
                // Wakes come and go all the time, each just before the worker would stop waiting for results.
                now = max(now, min(moment, now + step))
                handlers = 1 - handlers
                if machine.momentReached(now: now) == .end { break }
            }
            #expect(now == 40_000, "step \(step)")
        }
    }

    @Test("A second request ends an idle worker immediately, and any other within seconds")
    func cancelledEarly() {
        var idle = StopStateMachine()
        idle.stopRequested(now: 0)
        #expect(idle.workChanged(handlers: 0, wakes: 0, now: 0) == .nothing)
        idle.cancelRequested(now: 700)
        #expect(idle.workChanged(handlers: 0, wakes: 0, now: 700) == .end)

        // A result that the gateway has not accepted for longer than that is dropped immediately.
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
        // More requests do not extend the time.
        busy.cancelRequested(now: 4000)
        #expect(busy.nextMoment == 6000)
        #expect(busy.workChanged(handlers: 0, wakes: 1, now: 3000) == .nothing)
        #expect(busy.nextMoment == 5000)
        #expect(busy.momentReached(now: 4999) == .nothing)
        #expect(busy.momentReached(now: 5000) == .end)
        #expect(busy.workChanged(handlers: 0, wakes: 0, now: 5000) == .end)
    }

    @Test("A second request shortens the remaining time, and never prolongs it")
    func lateCancellation() {
        var machine = StopStateMachine()
        machine.stopRequested(now: 0)
        #expect(machine.workChanged(handlers: 1, wakes: 1, now: 0) == .nothing)
        #expect(machine.momentReached(now: 30_000) == .cancelHandlers)
        machine.cancelRequested(now: 38_000)
        #expect(machine.nextMoment == 40_000)
        // Both requests, as from an impatient caller.
        var both = StopStateMachine()
        both.cancelRequested(now: 10)
        #expect(both.workChanged(handlers: 1, wakes: 1, now: 10) == .nothing)
        #expect(both.nextMoment == 5010)
        both.stopRequested(now: 20)
        #expect(both.nextMoment == 5010)
    }
}

@Suite("A wake in a worker's hands")
struct WakeStateMachineTests {
    enum Place: CaseIterable {
        case queued, running, expiring, expired, lost, sending, pausing, over

        func machine() -> WakeStateMachine {
            var generator = SeededGenerator(seed: 1)
            var machine = WakeStateMachine(deadline: 30_000)
            if self == .queued { return machine }
            if self == .over {
                _ = machine.ended(.lost)
                return machine
            }
            machine.handlerStarted()
            switch self {
            case .queued, .running, .over: break
            case .expiring: _ = machine.deadlineNears(30_000)
            case .expired: _ = machine.ended(.expired)
            case .lost: _ = machine.ended(.lost)
            case .sending, .pausing:
                _ = machine.handlerEnded(.newData)
                if self == .pausing { _ = machine.answered(.failed(retryAfter: 0), now: 100, using: &generator) }
            }
            return machine
        }
    }

    @Test("An end at the gateway cancels the running handler, and drops a queued wake")
    func ended() {
        let expected: [Place: WakeStateMachine.Action] = [
            .queued: .forget, .running: .cancelHandler, .expiring: .cancelHandler, .expired: .nothing, .lost: .nothing,
            .sending: .nothing, .pausing: .nothing, .over: .nothing,
        ]
        for place in Place.allCases {
            for ending in [WakeStateMachine.Ending.expired, .lost] {
                var machine = place.machine()
                #expect(machine.ended(ending) == expected[place], "\(place) \(ending)")
                #expect(machine.isOver == (place == .queued || place == .over), "\(place)")
            }
        }
    }

    @Test(
        "A handler's error is reported as failed, but not for a lost wake",
        arguments: [
            (Place.running, BackgroundFetchResult?.none, WakeStateMachine.Action.send(.failed)),
            (.running, .noData, .send(.noData)), (.expiring, nil, .send(.failed)),
            (.expiring, .newData, .send(.newData)), (.expired, nil, .send(.failed)),
            (.expired, .newData, .send(.newData)),
            (.lost, nil, .forget), (.lost, .newData, .send(.newData)), (.sending, .newData, .forget),
        ]
    )
    func handlerEnded(
        place: Place,
        result: BackgroundFetchResult?,
        expected: WakeStateMachine.Action
    ) {
        var machine = place.machine()
        #expect(machine.handlerEnded(result) == expected)
    }

    @Test("A result is repeated until it is known to have arrived, and abandoned long after its deadline")
    func retries() throws {
        var generator = SeededGenerator(seed: 5)
        var machine = Place.sending.machine()
        var now: Int64 = 1000
        var tries = 0
        while machine.answered(.failed(retryAfter: 0), now: now, using: &generator) == .nothing {
            let moment = try #require(machine.nextMoment)
            tries += 1
            #expect(moment > now && moment <= now + 5000)
            #expect(machine.momentReached(now: moment - 1) == .nothing)
            #expect(machine.momentReached(now: moment) == .send(.newData))
            now = moment
        }
        #expect(machine.isOver)
        #expect(tries > 10)
        #expect(now < 30_000 + WakeStateMachine.lateMax && now > 30_000 + WakeStateMachine.lateMax - 5000)

        var delivered = Place.sending.machine()
        #expect(delivered.answered(.accepted, now: 0, using: &generator) == .delivered(.newData))
        #expect(delivered.answered(.accepted, now: 0, using: &generator) == .nothing)
        var refused = Place.sending.machine()
        #expect(refused.answered(.refused, now: 0, using: &generator) == .dropped(.newData))
    }

    @Test("A result that no longer counts is tried twice")
    func late() throws {
        var generator = SeededGenerator(seed: 5)
        var machine = Place.expired.machine()
        #expect(machine.handlerEnded(nil) == .send(.failed))
        #expect(machine.answered(.failed(retryAfter: 0), now: 0, using: &generator) == .nothing)
        let moment = try #require(machine.nextMoment)
        #expect(machine.momentReached(now: moment) == .send(.failed))
        #expect(machine.answered(.failed(retryAfter: 0), now: moment, using: &generator) == .dropped(.failed))
        #expect(machine.isOver)
    }

    @Test("A deadline that is near cancels the handler that runs, once, unless it has more time by now")
    func expiring() {
        for place in Place.allCases {
            var machine = place.machine()
            #expect(machine.deadlineNears(30_000) == (place == .running), "\(place)")
        }
        var machine = Place.running.machine()
        machine.extended(to: 60_000)
        #expect(!machine.deadlineNears(30_000) && machine.isRunning)
        // By the local clock, the gateway's answer was a little late, and another caller has asked for more time.
        #expect(machine.deadlineNears(59_900) && machine.isRunning && machine.deadline == 60_000)
        machine.extended(to: 90_000)
        #expect(!machine.deadlineNears(90_000) && machine.nextMoment == 92_000)
        var elsewhere = Place.running.machine()
        #expect(elsewhere.deadlineNears(80_000) && elsewhere.deadline == 80_000)
    }

    @Test("A silent gateway is asked two seconds after the deadline, and the wake expires another two seconds later")
    func deadline() {
        for place in [Place.running, .expiring] {
            var machine = place.machine()
            #expect(machine.nextMoment == 32_000)
            machine.extended(to: 50_000)
            machine.extended(to: 40_000)
            #expect(machine.gotNoTime() == .nothing, "the refused extension was not the last one")
            #expect(machine.momentReached(now: 51_999) == .nothing)
            #expect(machine.momentReached(now: 52_000) == .ask)
            machine.extended(to: 70_000)
            #expect(machine.nextMoment == 72_000)
            #expect(machine.momentReached(now: 72_500) == .ask)
            var refused = machine
            #expect(refused.gotNoTime() == .cancelHandler && refused.nextMoment == nil)
            var continued = machine
            continued.continues(now: 72_600)
            #expect(continued.gotNoTime() == .nothing && continued.nextMoment == 74_600)
            #expect(continued.momentReached(now: 74_600) == .ask)
            #expect(machine.nextMoment == 74_500)
            #expect(machine.momentReached(now: 74_500) == .cancelHandler)
            #expect(machine.nextMoment == nil)
        }
        var queued = Place.queued.machine()
        #expect(queued.momentReached(now: 32_000) == .forget)
    }

    @Test("A worker that ends gives up a result that is not known to have arrived, and every wake")
    func givenUp() {
        for place in Place.allCases {
            var machine = place.machine()
            #expect(machine.givenUp() == (place == .pausing || place == .sending ? .newData : nil), "\(place)")
            #expect(machine.isOver && machine.nextMoment == nil, "\(place)")
        }
    }

    @Test("More time is requested when half of it has passed, until it is not needed or the gateway refuses")
    func keepAlive() {
        var keepAlive = KeepAlive()
        #expect(keepAlive.nextMoment == nil)
        keepAlive.begun(deadline: 30_000)
        keepAlive.begun(deadline: 30_000)
        #expect(keepAlive.nextMoment == 15_000)
        #expect(keepAlive.momentReached(now: 14_999) == false)
        #expect(keepAlive.momentReached(now: 15_000) == true)
        #expect(keepAlive.nextMoment == nil)
        keepAlive.extended(to: 45_000)
        #expect(keepAlive.nextMoment == 30_000)
        #expect(keepAlive.momentReached(now: 30_000) == true)
        keepAlive.unanswered(now: 30_500)
        #expect(keepAlive.nextMoment == 31_500)
        keepAlive.ended()
        #expect(keepAlive.nextMoment == 31_500)
        #expect(keepAlive.momentReached(now: 31_500) == true)
        keepAlive.refused()
        #expect(keepAlive.nextMoment == nil)
        var left = KeepAlive()
        left.begun(deadline: 30_000)
        left.ended()
        left.ended()
        #expect(left.nextMoment == nil)
    }
}

@Suite("When progress is reported")
struct ProgressStateMachineTests {
    private var generator = SystemRandomNumberGenerator()

    /// Returns a machine whose first report is on its way.
    private static func reporting() -> ProgressStateMachine {
        var machine = ProgressStateMachine()
        machine.changed()
        #expect(machine.momentReached(now: 0) == true)
        return machine
    }

    @Test("A change is reported immediately, then at most four times a second, and only the newest one")
    mutating func paced() {
        var machine = ProgressStateMachine()
        #expect(machine.nextMoment == nil && machine.momentReached(now: 0) == false)
        var told: [Int64] = []
        // Something changes every ten milliseconds for ten seconds, and each report is answered five milliseconds
        // later.
        for now in stride(from: Int64(1000), to: 11_000, by: 10) {
            machine.changed()
            if machine.momentReached(now: now) == true {
                told.append(now)
                #expect(machine.nextMoment == nil, "one report is on its way at most")
                machine.answered(.accepted, now: now + 5, using: &self.generator)
            }
        }
        #expect(told.first == 1000 && told.count == 40)
        #expect(zip(told, told.dropFirst()).allSatisfy { $1 - $0 >= WorkerTiming().progressInterval })
    }

    @Test("The last change is reported immediately, and the result waits for its answer")
    mutating func last() {
        var machine = Self.reporting()
        machine.changed()
        // While the first report is being sent, the second one waits for its answer.
        machine.handlerEnded(now: 10)
        #expect(machine.holdsResult && machine.momentReached(now: 11) == false)
        machine.answered(.accepted, now: 20, using: &self.generator)
        #expect(machine.holdsResult && machine.nextMoment == 10 && machine.momentReached(now: 20) == true)
        #expect(machine.holdsResult)
        machine.answered(.accepted, now: 30, using: &self.generator)
        #expect(!machine.holdsResult && machine.nextMoment == nil)
    }

    @Test("A handler without new progress does not delay its result")
    mutating func nothingNew() {
        var silent = ProgressStateMachine()
        silent.handlerEnded(now: 0)
        #expect(!silent.holdsResult)
        var told = Self.reporting()
        told.answered(.accepted, now: 1, using: &self.generator)
        told.handlerEnded(now: 2)
        #expect(!told.holdsResult)
    }

    @Test("A failed report is repeated after a growing wait, or after the wait that the gateway asks for")
    mutating func failed() throws {
        var machine = ProgressStateMachine()
        machine.changed()
        var (now, waits): (Int64, [Int64]) = (0, [])
        for _ in 0..<6 {
            #expect(machine.momentReached(now: now) == true)
            machine.answered(.failed(retryAfter: 0), now: now, using: &self.generator)
            let next = try #require(machine.nextMoment)
            waits.append(next - now)
            now = next
        }
        #expect(waits.allSatisfy { (250...5000).contains($0) } && waits[5] >= 2500, "\(waits)")
        #expect(machine.momentReached(now: now) == true)
        machine.answered(.failed(retryAfter: 60_000), now: now, using: &self.generator)
        // Without a report for a minute, the task would be ended.
        #expect(machine.nextMoment == now + ProgressStateMachine.requestedWaitMax)
    }

    @Test("A last report that does not arrive delays the result for a limited time", arguments: [true, false])
    mutating func gracePeriod(hasFailed: Bool) {
        var machine = Self.reporting()
        if hasFailed { machine.answered(.failed(retryAfter: 60_000), now: 0, using: &self.generator) }
        machine.handlerEnded(now: 100)
        #expect(machine.holdsResult && machine.nextMoment == 100 + ProgressStateMachine.lastReportTimeout)
        #expect(machine.momentReached(now: 100 + ProgressStateMachine.lastReportTimeout) == false)
        #expect(!machine.holdsResult && machine.nextMoment == nil)
        // An answer that arrives later, and later changes, have no effect.
        if !hasFailed { machine.answered(.failed(retryAfter: 0), now: 6000, using: &self.generator) }
        #expect(!machine.holdsResult && machine.nextMoment == nil)
        machine.changed()
        #expect(machine.momentReached(now: 1_000_000) == false)
    }

    @Test("When the gateway accepts no more reports, nothing is reported and nothing waits", arguments: [true, false])
    mutating func over(isRefused: Bool) {
        var machine = Self.reporting()
        machine.handlerEnded(now: 0)
        if isRefused { machine.answered(.refused, now: 1, using: &self.generator) } else { machine.abandoned() }
        #expect(!machine.holdsResult && machine.nextMoment == nil)
        machine.changed()
        #expect(machine.momentReached(now: 10_000) == false && !machine.holdsResult)
    }
}
