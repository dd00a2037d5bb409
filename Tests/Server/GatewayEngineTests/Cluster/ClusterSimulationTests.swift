import Engine
import Foundation
import Gateway
import Testing
import WakeGateTestKit

@Suite("Simulation of gateways on one database, while they and it fail", .timeLimit(.minutes(30)))
struct ClusterSimulationTests {
    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_CLUSTER_SEED"].flatMap(UInt64.init)
    /// How many more seeds than in `swift test`, from the environment.
    private static let factor = ProcessInfo.processInfo.environment["WAKEGATE_CLUSTER_FACTOR"].flatMap(UInt64.init) ?? 1

    /// The engine of the gateway.
    private static func make(_ parts: ClusterGateway.Parts) -> (any GatewayEngine, SimulatedClusterStore) {
        let store = SimulatedClusterStore(parts.database, ring: parts.ring)
        let engine = SharedGatewayEngine(
            configuration: parts.configuration,
            historyKey: EngineRig.historyKey,
            report: GatewayReport(name: "gateway", version: "1"),
            world: parts.world,
            store: store,
            waitForStore: { _ in },
            outlet: parts.outlet
        )
        return (engine, store)
    }

    @Test("Whatever dies, stalls or is cut, what was answered stays, and every push ends once")
    func holds() {
        var coverage = ClusterCoverage()
        var happened: Set<DatabaseLog.Event> = []
        for seed in Self.replayed.map({ [$0] }) ?? Array(1...(300 * Self.factor)) {
            let simulation = ClusterSimulation(
                seed: seed,
                failsEvery: [400, 1000, 3000][Int(seed % 3)],
                make: Self.make
            )
            let fault = simulation.run(for: 6500)
            #expect(fault == nil, "replay with WAKEGATE_CLUSTER_SEED=\(seed)")
            coverage.add(simulation.coverage)
            coverage.add(simulation.clients.coverage)
            happened.formUnion(DatabaseLog.Event.allCases.filter { simulation.database.log.counts[$0] ?? 0 > 0 })
        }
        guard Self.replayed == nil else { return }
        #expect(coverage.missing.isEmpty, "what never happened proves nothing")
        #expect(Set(DatabaseLog.Event.allCases).subtracting(happened).isEmpty)
    }

    @Test("Where nothing fails, everybody is answered, and nothing is lost but by its worker")
    func quiet() {
        for seed in 1...(10 as UInt64) {
            let simulation = ClusterSimulation(seed: seed, failsEvery: 0, make: Self.make)
            #expect(simulation.run(for: 6500) == nil, "seed \(seed)")
            #expect(simulation.database.log.counts[.timeout] == nil, "seed \(seed)")
        }
    }
}
