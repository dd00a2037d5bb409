import Foundation

/// The seeds of a simulation, in groups. Environment variables can increase their number or select one seed.
package struct SimulationSeeds: Sendable {
    /// The environment variable with the seed to replay.
    package let name: String
    /// The seed to replay.
    package let replayed: UInt64?
    /// The factor by which the number of seeds is increased.
    private let factor: UInt64

    package init(seed name: String, factor: String? = nil) {
        let environment = ProcessInfo.processInfo.environment
        self.name = name
        self.replayed = environment[name].flatMap(UInt64.init)
        self.factor = factor.flatMap { environment[$0] }.flatMap(UInt64.init) ?? 1
    }

    /// Returns `count` seeds, increased by the factor; only the seed to replay, in the first group, if there is one.
    package func group(_ group: UInt64 = 0, of count: UInt64) -> [UInt64] {
        if let replayed { return group == 0 ? [replayed] : [] }
        let count = count * self.factor
        return (0..<count).map { group * count + $0 + 1 }
    }
}

/// The events of simulations, to ensure that the tested situations occurred.
package struct Coverage<Event: Hashable> {
    private var counts: [Event: Int] = [:]

    package init() {}

    package mutating func note(_ event: Event, _ count: Int = 1) { self.counts[event, default: 0] += count }

    package mutating func add(_ other: Self) { self.counts.merge(other.counts, uniquingKeysWith: +) }

    package subscript(event: Event) -> Int { self.counts[event] ?? 0 }

    /// Returns the events that never occurred.
    package func missing(_ expected: [Event]) -> [Event] { expected.filter { self[$0] == 0 } }
}
