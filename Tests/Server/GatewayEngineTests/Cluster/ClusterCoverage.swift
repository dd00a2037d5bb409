/// What happened in simulations of clusters, so that nothing holds because nothing happened.
struct ClusterCoverage {
    enum Event: String, CaseIterable {
        case accepted, unavailable, refused, wake, taskWake, expired, expiredAsLost, reported, lateReport
        case reportedElsewhere, statistics, wakeOfTheDead
        case kill, start, pause, slow, full, drain, removal, repeatedPush, spaced, lost, lostByDeath
    }

    private(set) var counts: [Event: Int] = [:]

    mutating func note(_ event: Event, _ count: Int = 1) { self.counts[event, default: 0] += count }

    mutating func add(_ other: Self) { self.counts.merge(other.counts, uniquingKeysWith: +) }

    /// What never happened, by name.
    var missing: [String] { Event.allCases.filter { self.counts[$0] == nil }.map(\.rawValue) }
}
