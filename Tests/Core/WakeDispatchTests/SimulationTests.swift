import Engine
import Foundation
import Policy
import Testing
import WakeGateTestKit

/// The seeds of runs, in groups. Environment variables can increase their number or select one seed.
struct SimulationSeeds {
    /// The seed to replay.
    let replayed: UInt64?
    /// The factor by which the number of seeds is increased.
    private let factor: UInt64

    init(seed: String, factor: String? = nil) {
        let environment = ProcessInfo.processInfo.environment
        self.replayed = environment[seed].flatMap(UInt64.init)
        self.factor = factor.flatMap { environment[$0] }.flatMap(UInt64.init) ?? 1
    }

    func group(_ group: UInt64, of count: UInt64) -> [UInt64] {
        if let replayed { return group == 0 ? [replayed] : [] }
        let count = count * self.factor
        return (0..<count).map { group * count + $0 + 1 }
    }
}

@Suite("Simulation of dispatch among faulty workers", .timeLimit(.minutes(15)))
struct SimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_SEED")

    @Test("Every promise holds in every run, and every push ends", arguments: 0..<8 as Range<UInt64>)
    func holds(group: UInt64) {
        var coverage = Coverage<SimulationEvent>()
        for seed in Self.seeds.group(group, of: 40) {
            let simulation = DispatchSimulation(seed: seed)
            let fault = simulation.run(steps: 120)
            #expect(fault == nil, "replay with WAKEGATE_SEED=\(seed)")
            #expect(simulation.rig.engine.totals.launched > 0, "seed \(seed): nothing was ever launched")
            coverage.add(simulation.coverage)
        }
        guard Self.seeds.replayed == nil else { return }
        let missing = coverage.missing(SimulationEvent.expected)
        #expect(missing == [], "group \(group): cases that never happened prove nothing")
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
        for seed in Self.seeds.group(0, of: 30) {
            let simulation = DispatchSimulation(seed: seed, hasTasks: hasTasks)
            if isKept { simulation.live(on: MemoryMedium(), faultsEvery: seed % 2 == 0 ? 0 : 60) }
            let fault = simulation.run(steps: 70, drainingAt: 45)
            #expect(fault == nil, "replay with WAKEGATE_DRAIN_SEED=\(seed)")
            open += simulation.coverage[.openAtDrain]
            heldBack += simulation.coverage[.heldBackByDrain]
        }
        guard Self.seeds.replayed == nil else { return }
        #expect(open > 0 && heldBack > 0, "\(open) wakes in flight, \(heldBack) launches held back")
    }
}

@Suite("Simulation of the core with a store that fails, deaths and restarts", .timeLimit(.minutes(15)))
struct CrashSimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_CRASH_SEED", factor: "WAKEGATE_CRASH_FACTOR")

    @Test(
        "Deaths and failures lose no answered request, launch nothing twice, and keep the counters balanced",
        arguments: 0..<3 as Range<UInt64>
    )
    func holds(group: UInt64) {
        var coverage = Coverage<CrashEvent>()
        for seed in Self.seeds.group(group, of: 15) {
            let simulation = DispatchSimulation(seed: seed)
            let medium = MemoryMedium()
            simulation.live(on: medium, faultsEvery: [4, 12, 40][Int(seed % 3)])
            let fault = simulation.run(steps: 60)
            #expect(fault == nil, "replay with WAKEGATE_CRASH_SEED=\(seed)")
            #expect(medium.misuses.isEmpty, "seed \(seed)")
            if let lives = simulation.lives { coverage.add(lives.coverage) }
        }
        guard Self.seeds.replayed == nil else { return }
        let missing = coverage.missing(CrashEvent.allCases)
        #expect(missing == [], "group \(group): cases that never happened prove nothing")
    }

    @Test("A gateway may die after any of its steps")
    func everyStep() {
        for step in 0..<30 {
            let seed = UInt64(step % 4 + 7)
            let simulation = DispatchSimulation(seed: seed)
            simulation.live(on: MemoryMedium(), faultsEvery: 0)
            let fault = simulation.run(steps: step + 5, dyingAt: step)
            #expect(fault == nil, "step \(step) of seed \(seed)")
        }
    }
}

@Suite("Simulation of requests and sessions among faulty workers, deaths and restarts", .timeLimit(.minutes(15)))
struct TaskSimulationTests {
    /// Events that must occur.
    private static let expected: [String] =
        ["launched", "scheduled", "replaced"] + TaskRefusal.allCases.map { "refused \($0)" }
        + LaunchKind.allCases.compactMap(\.task).flatMap { kind in
            ["launched \(kind)"] + ["success", "failure", "expired", "lost"].map { "\(kind) \($0)" }
        }
        + ["processing interrupted", "continued interrupted", "continued cancelled"]
        + DiscardReason.ofTasks.map { "discarded \($0)" }
        + ["repeated event", "ninth session", "cancelled while waiting", "progress", "progress of another kind"]
        + ["late progress", "resumed", "reload", "report of another kind", "conditions heard", "waits for a worker"]
        + ["launched", "laneIsFull", "notPending", "noWorker"].map { "simulated launch: \($0)" }
        + ["simulated expiration"]

    /// A factor of 10 results in 5,400 seeds.
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_TASK_SEED", factor: "WAKEGATE_TASK_FACTOR")

    private static func simulation(dies: Bool, _ seed: UInt64) -> (DispatchSimulation, MemoryMedium?) {
        let simulation = DispatchSimulation(seed: seed, hasTasks: true)
        let medium = dies ? MemoryMedium() : nil
        if let medium { simulation.live(on: medium, faultsEvery: [4, 12, 40][Int(seed % 3)]) }
        return (simulation, medium)
    }

    @Test(
        "Counters balance, lanes hold one wake, nothing launches twice, and every request ends",
        arguments: [false, true],
        0..<3 as Range<UInt64>
    )
    func holds(dies: Bool, group: UInt64) {
        var coverage = Coverage<String>()
        for seed in Self.seeds.group(group, of: dies ? 120 : 60) {
            let (simulation, medium) = Self.simulation(dies: dies, seed)
            let fault = simulation.run(steps: dies ? 60 : 120)
            #expect(fault == nil, "replay with WAKEGATE_TASK_SEED=\(seed), dies: \(dies)")
            #expect(medium?.misuses.isEmpty ?? true, "seed \(seed)")
            coverage.add(simulation.taskCoverage)
            for reason in DiscardReason.ofTasks {
                let count = simulation.rig.engine.totals.requests.discarded[reason]
                coverage.note("discarded \(reason)", Int(count))
            }
        }
        guard Self.seeds.replayed == nil else { return }
        let missing = coverage.missing(Self.expected)
        #expect(missing == [], "dies: \(dies), group \(group): cases that never happened prove nothing")
    }

    @Test("A gateway with requests may die after any of its steps")
    func everyStep() {
        for step in 0..<30 {
            let seed = UInt64(step % 4 + 7)
            let simulation = DispatchSimulation(seed: seed, hasTasks: true)
            simulation.live(on: MemoryMedium(), faultsEvery: 0)
            let fault = simulation.run(steps: step + 5, dyingAt: step)
            #expect(fault == nil, "step \(step) of seed \(seed)")
        }
    }

    @Test("The same seed gives the same run", arguments: [false, true])
    func replays(dies: Bool) {
        let logs = (0..<2).map { _ in
            let (simulation, _) = Self.simulation(dies: dies, 32)
            _ = simulation.run(steps: 60)
            return simulation.log
        }
        #expect(logs[0] == logs[1])
        #expect(logs[0].count > 20)
    }
}
