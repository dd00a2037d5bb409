import HTTPClient
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("A worker's subscription")
struct SubscriptionStateMachineTests {
    /// Where a machine is when an event comes.
    enum Place: CaseIterable {
        case waiting, connecting, subscribed, draining, over

        func machine() -> SubscriptionStateMachine {
            var generator = SeededGenerator(seed: 1)
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
            _ = generator.next()
            return machine
        }
    }

    @Test("A new worker subscribes at once, and is silent until its stream is", arguments: [nil, 20_000, 300_000])
    func begins(limit: Int64?) {
        var machine = limit.map { SubscriptionStateMachine(now: 5, silenceMax: $0) } ?? SubscriptionStateMachine(now: 5)
        let limit = limit ?? 40_000
        #expect(machine.nextMoment == 5)
        #expect(machine.momentReached(now: 4) == .nothing)
        #expect(machine.momentReached(now: 5) == .subscribe)
        machine.accepted(now: 6)
        #expect(machine.nextMoment == 6 + limit)
        machine.heard(now: 1000)
        #expect(machine.momentReached(now: 999 + limit) == .nothing)
        #expect(machine.momentReached(now: 1000 + limit) == .giveUp(silence: limit))
    }

    @Test("A request to stop drains an open stream, and ends what is only tried")
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
        "A thousand workers whose gateway restarts are back within five seconds, never in a crowd",
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

    @Test("Events that no longer matter change nothing")
    func late() {
        for place in Place.allCases where place != .connecting {
            var machine = place.machine()
            let before = machine.nextMoment
            machine.accepted(now: 20)
            #expect(machine.nextMoment == before, "\(place)")
        }
        var over = Place.over.machine()
        over.heard(now: 20)
        #expect(over.momentReached(now: .max) == .nothing)
        #expect(over.nextMoment == nil)
    }
}
