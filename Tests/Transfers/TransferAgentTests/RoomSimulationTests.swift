import Foundation
import Testing

@Suite("A room in a simulated world", .timeLimit(.minutes(15)))
struct RoomSimulationTests {
    private static let seeds: [UInt64] = {
        let replayed = ProcessInfo.processInfo.environment["WAKEGATE_SEED"].flatMap { UInt64($0) }
        return replayed.map { [$0] } ?? Array(1...8)
    }()

    @Test("Whatever dies, each transfer ends once, is whole, and is told once")
    func worlds() throws {
        var (deaths, taken, ends, events) = (0, 0, [String: Int](), 0)
        for seed in Self.seeds {
            var simulation = try RoomSimulation(seed: seed)
            try simulation.run(steps: 500)
            let violations = simulation.ledger.violations
            #expect(
                violations.isEmpty,
                "seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(violations.prefix(3)); \(violations.count) in all"
            )
            deaths += simulation.deaths
            taken += simulation.takenFiles
            ends.merge(simulation.ledger.endCounts, uniquingKeysWith: +)
            events += simulation.ledger.events.values.reduce(0) { $0 + $1.count }
        }
        guard Self.seeds.count > 1 else { return }
        // Worlds in which nothing happens would show nothing.
        #expect(deaths > 60 && taken > 30 && events > 30, "\(deaths) deaths, \(taken) taken, \(events) events")
        for end in ["finished", "failed", "cancelled"] { #expect(ends[end, default: 0] > 20, "\(ends)") }
    }
}
