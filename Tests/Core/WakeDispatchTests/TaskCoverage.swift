import Policy

/// What happened to requests and sessions in simulations, so that a property cannot hold because nothing did.
struct TaskCoverage {
    private(set) var counts: [String: Int] = [:]

    mutating func note(_ event: String, _ count: Int = 1) {
        if count > 0 { self.counts[event, default: 0] += count }
    }

    mutating func add(_ other: Self) { self.counts.merge(other.counts, uniquingKeysWith: +) }

    /// What must have happened.
    private static let expected: [String] =
        ["launched", "scheduled", "replaced"] + TaskRefusal.allCases.map { "refused \($0)" }
        + LaunchKind.allCases.compactMap(\.task).flatMap { kind in
            ["launched \(kind)"] + ["success", "failure", "expired", "lost"].map { "\(kind) \($0)" }
        }
        + ["processing interrupted", "continued interrupted", "continued cancelled"]
        + TaskDiscardReason.allCases.map { "discarded \($0)" }
        + ["repeated event", "ninth session", "cancelled while waiting", "progress", "progress of another kind"]
        + ["late progress", "resumed", "reload", "report of another kind", "conditions heard", "waits for a worker"]
        + ["launched", "laneIsFull", "notWaiting", "noWorker"].map { "simulated launch: \($0)" }
        + ["simulated expiration"]

    /// What never happened.
    var missing: [String] { Self.expected.filter { self.counts[$0] == nil } }
}
