extension TaskLedger {
    /// The position in the launch order: the longest waiting launch is the smallest.
    struct Place: Comparable {
        var since: Int64
        var arrival: Int

        static func < (left: Place, right: Place) -> Bool {
            (left.since, left.arrival) < (right.since, right.arrival)
        }
    }

    /// A push, a request or a session that is pending or in flight.
    struct Item {
        var name: String
        var kind: String
        var place: Place
        var needsNetwork = false
        var needsPower = false
        var count = 0
        var attempts: Int64 = 0
        /// The priority of a push.
        var priority = 5
        var expiry = Int64.max
        var isNowOrNever = false

        var lane: String { ["processing", "continued"].contains(self.kind) ? self.kind : "short" }
        var isRequest: Bool { self.kind != "push" && self.kind != "urlSession" }
        /// The beginning of the names of the counters that count the item.
        var list: String { self.kind == "push" ? "" : self.isRequest ? "tasks." : "sessions." }

        func isNamesake(_ other: Item) -> Bool {
            self.name == other.name && self.isRequest == other.isRequest && self.kind != "push" && other.kind != "push"
        }
    }

    struct Flight {
        var item: Item
        /// The scripted end of the wake, and its time.
        var end: (outcome: String, moment: Int64)
        var isCharged: Bool
        var isCancelled = false
    }

    struct Charge {
        var moment: Int64
        /// True if it used the immediate allowance before the interval was over.
        var jumped: Bool
    }

    /// An outcome line that must come next.
    struct Must: Equatable {
        var event: String
        var name: String
        var word: String
    }
}
