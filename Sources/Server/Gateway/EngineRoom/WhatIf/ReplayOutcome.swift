import Policy
import Wire

/// The outcomes of a device's pushes, recorded or replayed.
struct ReplayOutcome {
    /// A launch.
    struct Launch {
        /// The time, in milliseconds since 1970.
        let at: Int64
        let attempt: Int
        let coalesced: Int
        var result: WakeOutcome?
    }

    private(set) var launches: [Launch] = []
    private(set) var completed = 0
    private(set) var coalesced = 0
    private(set) var discarded = 0
    /// True if a push is pending that arrived within the period.
    private var hasPending = false
    /// True if a push is in flight that arrived within the period.
    private var hasInFlight = false
    /// True if the next discard is not of the pending push: of one discarded on arrival, or after its last wake.
    private var isDiscardOfAnother = false
    /// The arrivals of the pushes that no launch has carried yet, coalesced ones included.
    private var arrivals: [Int64] = []
    private var waitCount: Int64 = 0
    private var waitSum: Int64 = 0
    private var waitMax: Int64 = 0

    /// The number of pushes that have not ended: at most one is pending, and one in flight.
    var waiting: Int { (self.hasPending ? 1 : 0) + (self.hasInFlight ? 1 : 0) }

    /// Counts an arrival. The discard of a push that is discarded on arrival is the next event.
    mutating func pushReceived(at moment: Int64, isDiscarded: Bool) {
        self.isDiscardOfAnother = isDiscarded
        guard !isDiscarded else { return }
        if self.hasPending { self.coalesced += 1 }
        self.hasPending = true
        self.arrivals.append(moment)
    }

    mutating func launched(at moment: Int64, attempt: Int, coalesced: Int) {
        self.launches.append(Launch(at: moment, attempt: attempt, coalesced: coalesced))
        self.hasInFlight = self.hasPending
        self.hasPending = false
        self.endWaits(at: moment)
    }

    /// Ends the wake in flight. After a failure its push waits again, or is coalesced into the one that is pending.
    ///
    /// - Parameter isDiscarded: true if its push is discarded although another is pending: the device was removed.
    mutating func ended(_ outcome: WakeOutcome, isDiscarded: Bool = false) {
        if !self.launches.isEmpty { self.launches[self.launches.count - 1].result = outcome }
        guard self.hasInFlight else { return }
        self.hasInFlight = false
        switch outcome {
        case .newData, .noData: self.completed += 1
        case .failed, .expired, .lost:
            guard self.hasPending else {
                self.hasPending = true
                return
            }
            if isDiscarded { self.isDiscardOfAnother = true } else { self.coalesced += 1 }
        }
    }

    /// Counts a discard: of the push that just arrived, or of the pending one.
    mutating func pushDiscarded(at moment: Int64) {
        if self.isDiscardOfAnother {
            self.discarded += 1
        } else if self.hasPending {
            self.discarded += 1
            self.hasPending = false
            self.endWaits(at: moment)
        }
        self.isDiscardOfAnother = false
    }

    /// Ends the period: pushes that no launch has carried have waited until `moment`.
    mutating func finish(at moment: Int64) { self.endWaits(at: moment) }

    private mutating func endWaits(at moment: Int64) {
        for arrival in self.arrivals {
            let wait = max(0, moment - arrival)
            self.waitCount += 1
            self.waitSum += wait
            self.waitMax = max(self.waitMax, wait)
        }
        self.arrivals.removeAll()
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        for (name, count) in [
            ("launched", self.launches.count), ("completed", self.completed), ("coalesced", self.coalesced),
            ("discarded", self.discarded), ("waiting", self.waiting),
        ] {
            writer.key(name)
            writer.integer(count)
        }
        writer.key("meanWait")
        if self.waitCount > 0 { writer.integer(self.waitSum / self.waitCount) } else { writer.null() }
        writer.key("maxWait")
        if self.waitCount > 0 { writer.integer(self.waitMax) } else { writer.null() }
        writer.key("launches")
        writer.beginArray()
        for launch in self.launches {
            writer.beginObject()
            writer.key("at")
            writer.integer(launch.at)
            writer.key("attempt")
            writer.integer(launch.attempt)
            writer.key("coalesced")
            writer.integer(launch.coalesced)
            writer.key("result")
            writer.optional(launch.result) { writer, result in writer.string(result.rawValue) }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}
