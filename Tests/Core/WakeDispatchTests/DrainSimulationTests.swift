import Foundation
import Testing
import WakeGateTestKit

@Suite("Simulation of shutdowns among faulty workers", .timeLimit(.minutes(15)))
struct DrainSimulationTests {
    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_DRAIN_SEED"].flatMap(UInt64.init)

    private static var seeds: ClosedRange<UInt64> { self.replayed.map { $0...$0 } ?? 1...30 }

    @Test(
        "Nothing is launched, what is in flight ends, and the books balance; the next start goes on",
        arguments: [false, true],
        [false, true]
    )
    func holds(hasTasks: Bool, isKept: Bool) {
        var (open, heldBack) = (0, 0)
        for seed in Self.seeds {
            let simulation = DispatchSimulation(seed: seed, hasTasks: hasTasks)
            if isKept { simulation.live(on: MemoryMedium(), faultsEvery: seed % 2 == 0 ? 0 : 60) }
            let fault = simulation.run(steps: 70, drainingAt: 45)
            #expect(fault == nil, "replay with WAKEGATE_DRAIN_SEED=\(seed)")
            open += simulation.coverage.openAtDrain
            heldBack += simulation.coverage.heldBackByDrain
        }
        guard Self.replayed == nil else { return }
        #expect(open > 0 && heldBack > 0, "\(open) wakes in flight, \(heldBack) launches held back")
    }
}
