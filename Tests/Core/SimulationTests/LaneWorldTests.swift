import Foundation
import Policy
import Testing

@Suite("What always holds of a device's tasks, whatever the world does", .timeLimit(.minutes(15)))
struct LaneWorldTests {
    private static let seeds: ClosedRange<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        guard let seed = environment["WAKEGATE_SEED"].flatMap({ UInt64($0) }) else { return 1...500 }
        return seed...seed
    }()

    /// What must have been met, each at least this often.
    private static let corners = [
        "restart.lost", "operator.launched", "deadline.moved", "twin.replaced", "discard.cancelled",
        "discard.unregistered", "discard.exhausted",
    ]
    private static let cornerMin = 10

    @Test("Removals, restarts, reloads and operators lose nothing, launch nothing twice, and charge nothing wrongly")
    func promises() throws {
        var sightings = Sightings()
        for seed in Self.seeds {
            let world = try LaneWorld(seed: seed)
            sightings.add(world.sightings)
            guard let first = world.violations.first else { continue }
            Issue.record("seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(first)")
            return
        }
        guard Self.seeds.count > 1 else { return }
        for corner in Self.corners {
            let count = sightings.counts[corner, default: 0]
            #expect(count >= Self.cornerMin, "\(corner) was hardly met")
        }
    }
}
