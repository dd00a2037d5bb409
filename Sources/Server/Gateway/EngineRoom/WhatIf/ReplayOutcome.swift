import Policy
import Wire

/// What became of a device's pushes: as it was recorded, or in a replay.
struct ReplayOutcome {
    /// One launch.
    struct Launch {
        /// In milliseconds since 1970.
        let at: Int64
        let attempt: Int
        let coalesced: Int
        var result: WakeOutcome?
    }

    private(set) var launches: [Launch] = []
    private(set) var completed = 0
    private(set) var coalesced = 0
    private(set) var discarded = 0
    /// When those pushes came that no launch has carried yet.
    private var waiting: [Int64] = []
    private var isArrivalDiscarded = false
    private var launchedPushes: Int64 = 0
    private var waitSum: Int64 = 0
    private var waitMax: Int64 = 0

    /// A push came; one that is discarded at once has its discard behind it.
    mutating func pushReceived(at moment: Int64, isDiscarded: Bool) {
        self.isArrivalDiscarded = isDiscarded
        if !isDiscarded { self.waiting.append(moment) }
    }

    mutating func launched(at moment: Int64, attempt: Int, coalesced: Int) {
        self.launches.append(Launch(at: moment, attempt: attempt, coalesced: coalesced))
        for received in self.waiting {
            self.launchedPushes += 1
            self.waitSum += moment - received
            self.waitMax = max(self.waitMax, moment - received)
        }
        self.waiting.removeAll()
    }

    mutating func ended(_ outcome: WakeOutcome) {
        if !self.launches.isEmpty { self.launches[self.launches.count - 1].result = outcome }
        switch outcome {
        case .newData, .noData: self.completed += 1
        case .failed, .expired, .lost: break
        }
    }

    mutating func pushesCoalesced(_ count: Int) { self.coalesced += count }

    /// A push was dropped: the one that just came while others wait on, or the one that stood for all that waited.
    mutating func pushDiscarded() {
        self.discarded += 1
        if !self.isArrivalDiscarded { self.waiting.removeAll() }
        self.isArrivalDiscarded = false
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        for (name, count) in [
            ("launched", self.launches.count), ("completed", self.completed), ("coalesced", self.coalesced),
            ("discarded", self.discarded), ("waiting", self.waiting.count),
        ] {
            writer.key(name)
            writer.integer(count)
        }
        writer.key("meanWait")
        if self.launchedPushes > 0 { writer.integer(self.waitSum / self.launchedPushes) } else { writer.null() }
        writer.key("maxWait")
        if self.launchedPushes > 0 { writer.integer(self.waitMax) } else { writer.null() }
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
