import Engine
import Policy
import Testing
import WakeGateTestKit

/// Runs a simulation for each seed of a group, and checks that none finds a fault and that every expected event occurs.
private func expectNoFault(
    _ seeds: SimulationSeeds,
    group: UInt64 = 0,
    of count: UInt64,
    hasTasks: Bool = false,
    dies: Bool = false,
    sharesStore: Bool = false,
    expected: [String],
    each check: (DispatchSimulation) -> Void = { _ in }
) {
    var coverage = Coverage<String>()
    for seed in seeds.group(group, of: count) {
        let simulation = DispatchSimulation(seed: seed, hasTasks: hasTasks, sharesStore: sharesStore)
        if dies { simulation.live(diesEvery: [4, 12, 40][Int(seed % 3)]) }
        let fault = simulation.run(steps: dies ? 60 : 120)
        #expect(fault == nil, "replay with \(seeds.name)=\(seed), dies: \(dies)")
        check(simulation)
        coverage.add(simulation.coverage)
    }
    guard seeds.replayed == nil else { return }
    #expect(coverage.missing(expected) == [], "group \(group): cases that never happened prove nothing")
}

@Suite("Simulation of dispatch among faulty workers", .timeLimit(.minutes(15)))
struct SimulationTests {
    private static let expected =
        ["push launched", "push completed", "push coalesced", "push waits for a worker", "repeated push", "empty wake"]
        + DiscardReason.ofPushes.map { "push discarded \($0)" } + WakeOutcome.allCases.map { "push \($0)" }
        + ["repeated answer", "late answer", "unknown answer", "extension", "refused extension", "removal", "stall"]
        + ["slot change", "drained stream", "loss on an open stream", "delivery to a stream that names devices"]
        + ["simulated expiration of the short lane", "held back by a pause", "launch in a paused topic"]
        + ["launch by resuming"]

    private static let seeds = SimulationSeeds(seed: "WAKEGATE_SEED")

    @Test("Every promise holds in every run, and every push ends", arguments: 0..<8 as Range<UInt64>)
    func holds(group: UInt64) {
        expectNoFault(Self.seeds, group: group, of: 40, expected: Self.expected) { simulation in
            #expect(simulation.rig.engine.totals.launched > 0, "nothing was ever launched")
        }
    }
}

@Suite("Simulation of dispatch with a store that gateways share", .timeLimit(.minutes(15)))
struct SharedSimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_SHARED_SEED")

    @Test(
        "An engine that loads its devices for each step keeps every promise, and steps that fail have not happened",
        arguments: [false, true]
    )
    func holds(hasTasks: Bool) {
        let expected =
            ["push launched", "push completed", "push coalesced", "push waits for a worker", "late answer", "removal"]
            + ["extension", "stall", "drained stream", "loss on an open stream", "launch by resuming"]
        expectNoFault(Self.seeds, of: 30, hasTasks: hasTasks, sharesStore: true, expected: expected)
    }
}

@Suite("Simulation of shutdowns among faulty workers", .timeLimit(.minutes(15)))
struct DrainSimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_DRAIN_SEED")

    @Test(
        "A drain launches nothing, wakes in flight end, counters balance, and the next start resumes",
        arguments: [false, true],
        [false, true]
    )
    func holds(hasTasks: Bool, isKept: Bool) {
        var (open, heldBack) = (0, 0)
        for seed in Self.seeds.group(of: 30) {
            let simulation = DispatchSimulation(seed: seed, hasTasks: hasTasks)
            if isKept { simulation.live(diesEvery: seed % 2 == 0 ? 0 : 60) }
            let fault = simulation.run(steps: 70, drainingAt: 45)
            #expect(fault == nil, "replay with \(Self.seeds.name)=\(seed)")
            open += simulation.coverage["in flight at the drain"]
            heldBack += simulation.coverage["held back by the drain"]
        }
        guard Self.seeds.replayed == nil else { return }
        #expect(open > 0 && heldBack > 0, "\(open) wakes in flight, \(heldBack) launches held back")
    }
}

@Suite("Simulation of the core with deaths and restarts", .timeLimit(.minutes(15)))
struct CrashSimulationTests {
    private static let expected =
        ["death", "wake lost at a restart", "remembered answer", "forgotten answer", "repeated push"]
        + ["repeated push after a restart"]

    private static let seeds = SimulationSeeds(seed: "WAKEGATE_CRASH_SEED", factor: "WAKEGATE_CRASH_FACTOR")

    @Test(
        "Deaths lose no answered request, launch nothing twice, and keep the counters balanced",
        arguments: 0..<3 as Range<UInt64>
    )
    func holds(group: UInt64) {
        expectNoFault(Self.seeds, group: group, of: 15, dies: true, expected: Self.expected)
    }

    @Test("A gateway may die after any of its steps", arguments: [false, true])
    func everyStep(hasTasks: Bool) {
        for step in 0..<30 {
            let seed = UInt64(step % 4 + 7)
            let simulation = DispatchSimulation(seed: seed, hasTasks: hasTasks)
            simulation.live(diesEvery: 0)
            let fault = simulation.run(steps: step + 5, dyingAt: step)
            #expect(fault == nil, "step \(step) of seed \(seed)")
        }
    }
}

@Suite("Simulation of requests and sessions among faulty workers, deaths and restarts", .timeLimit(.minutes(15)))
struct TaskSimulationTests {
    private static let expected: [String] =
        ["launched", "scheduled", "replaced"].map { "request \($0)" } + TaskRefusal.allCases.map { "refused \($0)" }
        + LaunchKind.allCases.compactMap(\.task).flatMap { kind in
            ["launched \(kind)"] + ["success", "failure", "expired", "lost"].map { "\(kind) \($0)" }
        }
        + ["processing interrupted", "continued interrupted", "continued cancelled"]
        + DiscardReason.ofTasks.map { "request discarded \($0)" }
        + ["repeated event", "ninth session", "cancelled while waiting", "progress", "progress of another kind"]
        + ["late progress", "resumed", "reload", "report of another kind", "conditions heard"]
        + ["task waits for a worker", "simulated expiration"]
        + ["launched", "laneIsFull", "notPending", "noWorker"].map { "simulated launch: \($0)" }

    /// A factor of 10 results in 5,400 seeds.
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_TASK_SEED", factor: "WAKEGATE_TASK_FACTOR")

    @Test(
        "Counters balance, lanes hold one wake, nothing launches twice, and every request ends",
        arguments: [false, true],
        0..<3 as Range<UInt64>
    )
    func holds(dies: Bool, group: UInt64) {
        let count: UInt64 = dies ? 120 : 60
        expectNoFault(Self.seeds, group: group, of: count, hasTasks: true, dies: dies, expected: Self.expected)
    }

    @Test("The same seed gives the same run", arguments: [false, true])
    func replays(dies: Bool) {
        let logs = (0..<2).map { _ in
            let simulation = DispatchSimulation(seed: 32, hasTasks: true)
            if dies { simulation.live(diesEvery: 40) }
            _ = simulation.run(steps: 60)
            return simulation.log
        }
        #expect(logs[0] == logs[1])
        #expect(logs[0].count > 20)
    }
}
