import Gateway
import Platform
import Testing
import WakeGateTestKit

@Suite("The store rests between commits", .timeLimit(.minutes(15)))
struct CommitPipelineTests {
    /// A pace of many pushes, the last three of which were durable in an hour: until then the store rests, but for as
    /// many pushes.
    private static var resting: CommitPace {
        var pace = CommitPace()
        let end = SystemClock.monotonicMicroseconds + 3_600_000_000
        for window in 0..<2 {
            let moment = end + Int64(window - 1) * CommitPace.window
            pace.committed(10_000, from: moment, to: moment)
        }
        pace.committed(3, from: end, to: end)
        return pace
    }

    @Test("Pushes wait until as many are there as were before, and questions for nothing")
    func rest() throws {
        let rig = try GatewayEngineRig(pace: Self.resting)
        let before = rig.store.commits
        rig.step { $0.explain(1, 1) }
        rig.takeTold()
        #expect(rig.answer(1)?.kind == .answer)
        for request in 2...3 {
            rig.step { $0.push(request, request) }
            rig.takeTold()
            #expect(rig.answer(request) == nil && rig.store.commits == before)
        }
        rig.step { $0.push(4, 4) }
        try rig.answers(2...4)
        #expect(rig.store.commits == before + 1)
        rig.stop()
    }

    @Test("The engine is woken when a rest is over, though what waited before was let out without a commit")
    func over() throws {
        var pace = Self.resting
        pace.endRest()
        // A rest is over in two milliseconds, and what is looked at is how the store's thread sleeps until then.
        for _ in 0..<50 {
            let rig = try GatewayEngineRig(pace: pace)
            rig.gate.close()
            rig.step { $0.register(1, 1) }
            try rig.waitForCommit()
            rig.step { requests in
                for request in 2...3 { requests.push(request, 1, isDryRun: true) }
            }
            rig.gate.open()
            try rig.answers(1...3)
            rig.step { $0.push(4, 1) }
            // Steps only when it is rung.
            try rig.answers(4...4)
            rig.stop()
        }
    }

    @Test("What waits is durable before the gateway ends")
    func end() throws {
        let rig = try GatewayEngineRig(pace: Self.resting)
        let before = rig.store.commits
        rig.step { $0.push(1, 1) }
        #expect(rig.store.commits == before)
        rig.stop()
        #expect(rig.answer(1) != nil && rig.store.commits > before)
    }
}
