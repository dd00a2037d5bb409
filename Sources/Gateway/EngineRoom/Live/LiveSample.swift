package import DeviceEngine
import LaunchPolicy
package import WakeDispatch

/// What the counters and gauges of all topics were at one moment: what charts are made of.
package struct LiveSample {
    /// The names of `values`, in their order.
    package static let fields: [String] =
        [
            "at", "accepted", "noWake", "rejected", "completed", "coalesced", "discarded", "launched", "pending",
            "inFlight", "connected", "slots", "busy",
        ] + WakeOutcome.allCases.map(\.rawValue) + HoldCode.allCases.map { "held.\($0.name)" }

    /// The moment in milliseconds since 1970, then counters since the counting began, and gauges.
    let values: [Int64]

    /// What the figures are at a moment.
    ///
    /// - `at`: in milliseconds since 1970.
    /// - `rejected`: pushes refused, for whatever reason.
    package init(at: Int64, _ books: Books, rejected: Int64, _ workers: Dispatcher.WorkerCounts) {
        self.values =
            [
                at, books.accepted, books.noWake, rejected, books.completed, books.coalesced, books.discarded.sum,
                books.launched, books.pending, books.inFlight, Int64(workers.connected), Int64(workers.slots),
                Int64(workers.busy),
            ] + WakeOutcome.allCases.map { books.results[$0] } + HoldCode.allCases.map { books.held[$0] }
    }
}
