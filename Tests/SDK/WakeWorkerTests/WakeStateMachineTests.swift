import Testing
import WakeGateTestKit
import WakeWorker

@Suite("A wake in a worker's hands")
struct WakeStateMachineTests {
    enum Place: CaseIterable {
        case queued, running, expired, lost, sending, pausing, over

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
            case .expired: _ = machine.ended(.expired)
            case .lost: _ = machine.ended(.lost)
            case .sending, .pausing:
                _ = machine.handlerEnded(.newData)
                if self == .pausing { _ = machine.answered(.failed(retryAfter: 0), now: 100, using: &generator) }
            }
            return machine
        }
    }

    @Test("An end at the gateway cancels the handler that runs, and drops what was not begun")
    func ended() {
        let expected: [Place: WakeStateMachine.EndedAction] = [
            .queued: .forget, .running: .cancelHandler, .expired: .nothing, .lost: .nothing, .sending: .nothing,
            .pausing: .nothing, .over: .nothing,
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
        "A thrown error is failed, but no word is said of a lost wake that was given up",
        arguments: [
            (Place.running, BackgroundFetchResult?.none, WakeStateMachine.HandlerEndedAction.send(.failed)),
            (.running, .noData, .send(.noData)), (.expired, nil, .send(.failed)), (.expired, .newData, .send(.newData)),
            (.lost, nil, .forget), (.lost, .newData, .send(.newData)), (.sending, .newData, .forget),
        ]
    )
    func handlerEnded(
        place: Place,
        result: BackgroundFetchResult?,
        expected: WakeStateMachine.HandlerEndedAction
    ) {
        var machine = place.machine()
        #expect(machine.handlerEnded(result) == expected)
    }

    @Test("A result is sent again until it is known to have arrived, and given up long after its deadline")
    func retries() {
        var generator = SeededGenerator(seed: 5)
        var machine = Place.sending.machine()
        var now: Int64 = 1000
        var tries = 0
        while case .retry(let moment) = machine.answered(.failed(retryAfter: 0), now: now, using: &generator) {
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
    func late() {
        var generator = SeededGenerator(seed: 5)
        var machine = Place.expired.machine()
        #expect(machine.handlerEnded(nil) == .send(.failed))
        guard case .retry(let moment) = machine.answered(.failed(retryAfter: 0), now: 0, using: &generator) else {
            Issue.record("not tried again")
            return
        }
        #expect(machine.momentReached(now: moment) == .send(.failed))
        #expect(machine.answered(.failed(retryAfter: 0), now: moment, using: &generator) == .dropped(.failed))
        #expect(machine.isOver)
    }

    @Test("Without a word from the gateway a wake expires by itself, two seconds after its deadline")
    func deadline() {
        var machine = Place.running.machine()
        #expect(machine.nextMoment == 32_000)
        machine.extended(to: 50_000)
        machine.extended(to: 40_000)
        #expect(machine.momentReached(now: 51_999) == .nothing)
        #expect(machine.momentReached(now: 52_000) == .cancelHandler)
        #expect(machine.nextMoment == nil)
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

    @Test("More time is asked for when half of it has passed, until nobody wants it or the gateway gives no more")
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
