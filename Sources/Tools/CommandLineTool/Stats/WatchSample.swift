package import Wire

/// The counters and gauges of one second that a view draws lines of.
package struct WatchSample: Sendable {
    /// In milliseconds since 1970.
    package let at: Double
    package let accepted: Double
    package let launched: Double
    package let completed: Double
    package let coalesced: Double
    package let rejected: Double
    package let pending: Double
    package let inFlight: Double

    /// Of the statistics of all topics, or of one.
    package init(at: Double, stats: JSONValue) {
        func number(_ group: String, _ name: String) -> Double { stats[group]?[name]?.number ?? 0 }
        self.at = at
        self.accepted = number("pushes", "accepted")
        self.launched = number("wakes", "launched")
        self.completed = number("pushes", "completed")
        self.coalesced = number("pushes", "coalesced")
        self.rejected = stats["pushes"]?["rejected"]?.members.reduce(0) { $0 + ($1.value.number ?? 0) } ?? 0
        self.pending = number("pushes", "pending")
        self.inFlight = number("pushes", "inFlight")
    }

    /// Of a row of `GET /v1/samples`, whose columns `fields` names; nil when it is none.
    package init?(row: [JSONValue], fields: [String]) {
        func number(_ name: String) -> Double? {
            fields.firstIndex(of: name).flatMap { $0 < row.count ? row[$0].number : nil }
        }
        guard let at = number("at"), let accepted = number("accepted"), let launched = number("launched"),
            let completed = number("completed"), let coalesced = number("coalesced"),
            let rejected = number("rejected"), let pending = number("pending"), let inFlight = number("inFlight")
        else { return nil }
        self.at = at
        self.accepted = accepted
        self.launched = launched
        self.completed = completed
        self.coalesced = coalesced
        self.rejected = rejected
        self.pending = pending
        self.inFlight = inFlight
    }
}
