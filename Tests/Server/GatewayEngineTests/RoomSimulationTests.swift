import Foundation
import Testing
import WakeGateTestKit

@Suite("Simulation of the engine room, with failed commits, deaths and restarts", .timeLimit(.minutes(15)))
struct RoomSimulationTests {
    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_ROOM_SEED"].flatMap(UInt64.init)
    /// How many more seeds than in `swift test`, from the environment.
    private static let factor = ProcessInfo.processInfo.environment["WAKEGATE_ROOM_FACTOR"].flatMap(UInt64.init) ?? 1

    @Test(
        "Whatever dies or fails, what was answered stays, and every push that was accepted ends once",
        arguments: [true, false]
    )
    func holds(onDisk: Bool) {
        var coverage = RoomCoverage()
        for seed in Self.replayed.map({ [$0] }) ?? Array(1...(24 * Self.factor)) {
            let medium: any SimulatedMedium = onDisk ? DiskMedium(seed: seed) : MemoryMedium()
            let simulation = RoomSimulation(seed: seed, on: medium, faultsEvery: [6, 20, 60][Int(seed % 3)])
            let fault = simulation.run(steps: 80)
            #expect(fault == nil, "replay with WAKEGATE_ROOM_SEED=\(seed), on \(onDisk ? "a disk" : "memory")")
            #expect(medium.misuses.isEmpty, "seed \(seed)")
            coverage.add(simulation.coverage)
        }
        guard Self.replayed == nil else { return }
        #expect(coverage.missing.isEmpty, "what never happened proves nothing")
    }

    @Test("Where nothing fails, nothing is lost but by a death")
    func quiet() {
        for seed in 1...(6 as UInt64) {
            let simulation = RoomSimulation(seed: seed, on: MemoryMedium(), faultsEvery: 0)
            #expect(simulation.run(steps: 80) == nil, "seed \(seed)")
            #expect(simulation.coverage[.failedStart] + simulation.coverage[.failedCommit] == 0)
        }
    }
}
