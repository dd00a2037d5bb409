import Gateway
import Testing
import WakeGateTestKit

@Suite("The circuit breaker of a webhook")
struct WebhookBreakerTests {
    /// A breaker with a clock and a generator of its own.
    private struct Rig {
        var breaker = WebhookBreaker()
        var generator = SeededGenerator(seed: 5)
        var now: Int64 = 0

        /// A failure of a wake that was just handed out.
        mutating func fail(retryAfter: Int64? = nil) -> WebhookBreaker.Action {
            self.fail(round: self.breaker.round, retryAfter: retryAfter)
        }

        mutating func fail(round: UInt64, retryAfter: Int64? = nil) -> WebhookBreaker.Action {
            self.breaker.failed(round: round, at: self.now, retryAfter: retryAfter, using: &self.generator)
        }

        mutating func succeed() -> WebhookBreaker.Action { self.breaker.succeeded(round: self.breaker.round) }

        /// Fails until it rests.
        mutating func open() {
            for _ in 0..<WebhookBreaker.failuresMax { _ = self.fail() }
        }

        /// Goes on to the end of the rest, which must be one.
        mutating func endRest() throws {
            guard case .resting(let until) = self.breaker.state else {
                throw Failure(state: "\(self.breaker.state)")
            }
            #expect(self.breaker.timePassed(until - 1) == .nothing)
            self.now = until
            #expect(self.breaker.timePassed(until) == .probe)
        }

        struct Failure: Error {
            let state: String
        }
    }

    @Test("Failures in a row begin a rest, and a success between them starts the count again")
    func opens() {
        var rig = Rig()
        for _ in 1..<WebhookBreaker.failuresMax { #expect(rig.fail() == .nothing) }
        #expect(rig.succeed() == .nothing)
        for _ in 1..<WebhookBreaker.failuresMax { #expect(rig.fail() == .nothing) }
        #expect(rig.breaker.state == .active)
        guard case .rest(let until) = rig.fail() else {
            Issue.record("it does not rest")
            return
        }
        #expect((WebhookBreaker.firstRest / 2...WebhookBreaker.firstRest).contains(until))
        #expect(rig.breaker.state == .resting(until: until))
        #expect(rig.breaker.failures == WebhookBreaker.failuresMax)
    }

    @Test("A probe that succeeds closes it, as if nothing had been")
    func recovers() throws {
        var rig = Rig()
        rig.open()
        try rig.endRest()
        #expect(rig.breaker.state == .probing)
        #expect(rig.succeed() == .recover)
        #expect(rig.breaker.state == .active && rig.breaker.failures == 0)
        rig.open()
        guard case .resting(let until) = rig.breaker.state else {
            Issue.record("it does not rest")
            return
        }
        #expect(until - rig.now <= WebhookBreaker.firstRest)
    }

    @Test("Each rest that did not help doubles the next, to a bound, and is spread over its upper half")
    func backsOff() throws {
        var rig = Rig()
        rig.open()
        var rests: Set<Int64> = []
        for number in 1...20 {
            try rig.endRest()
            guard case .rest(let until) = rig.fail() else {
                Issue.record("a failed probe does not rest")
                return
            }
            let bound = min(WebhookBreaker.lastRest, WebhookBreaker.firstRest << Int64(number))
            #expect((bound / 2...bound).contains(until - rig.now), "rest \(number)")
            rests.insert(until - rig.now)
        }
        #expect(rests.count > 15, "the rests are not spread")
        #expect(rig.breaker.failures == WebhookBreaker.failuresMax + 20)
    }

    @Test("What becomes of a wake of an earlier round decides nothing")
    func rounds() throws {
        var rig = Rig()
        let before = rig.breaker.round
        rig.open()
        let resting = rig.breaker.state
        #expect(rig.fail(round: before) == .nothing && rig.breaker.state == resting)
        #expect(rig.breaker.succeeded(round: before) == .nothing && rig.breaker.state == resting)
        try rig.endRest()
        #expect(rig.fail(round: before) == .nothing && rig.breaker.state == .probing)
        #expect(rig.breaker.succeeded(round: before) == .nothing && rig.breaker.state == .probing)
        #expect(rig.succeed() == .recover)
        #expect(rig.fail(round: before) == .nothing && rig.breaker.failures == 0)
    }

    @Test("A webhook that asks for rest gets it at once, within bounds, and longer when it asks for longer")
    func retryAfter() throws {
        var rig = Rig()
        #expect(rig.fail(retryAfter: 30_000) == .rest(until: 30_000))
        #expect(rig.fail(retryAfter: 20_000) == .nothing)
        #expect(rig.fail(retryAfter: 40_000) == .rest(until: 40_000))
        try rig.endRest()
        #expect(rig.fail(retryAfter: 0) == .rest(until: 40_000 + WebhookBreaker.firstRest))
        try rig.endRest()
        let start = rig.now
        #expect(rig.fail(retryAfter: .max / 2) == .rest(until: start + WebhookBreaker.retryAfterMax))
        // It holds whenever the wake was handed out that brought the answer.
        var late = Rig()
        let round = late.breaker.round
        late.open()
        #expect(late.fail(round: round, retryAfter: 600_000) == .rest(until: 600_000))
    }

    @Test("A moment that nobody waits for changes nothing")
    func timers() throws {
        var rig = Rig()
        #expect(rig.breaker.timePassed(.max) == .nothing)
        rig.open()
        try rig.endRest()
        #expect(rig.breaker.timePassed(.max) == .nothing && rig.breaker.state == .probing)
    }

    @Test("Whatever happens, a webhook that works again is used again", arguments: 0..<20 as Range<UInt64>)
    func converges(seed: UInt64) throws {
        var rig = Rig()
        rig.generator = SeededGenerator(seed: seed)
        var rests = 0
        for _ in 0..<500 {
            rig.now += Int64.random(in: 0..<3000, using: &rig.generator)
            _ = rig.breaker.timePassed(rig.now)
            let round = rig.breaker.round &- UInt64.random(in: 0...1, using: &rig.generator)
            if Bool.random(using: &rig.generator) {
                _ = rig.breaker.succeeded(round: round)
            } else if case .rest = rig.fail(round: round, retryAfter: rig.now % 7 == 0 ? 5000 : nil) {
                rests += 1
            }
        }
        #expect(rests > 5, "seed \(seed): it hardly rested")
        if case .resting(let until) = rig.breaker.state { #expect(rig.breaker.timePassed(until) == .probe) }
        _ = rig.succeed()
        #expect(rig.breaker.state == .active && rig.breaker.failures == 0, "seed \(seed)")
    }
}
