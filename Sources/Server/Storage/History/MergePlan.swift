/// Chooses the runs that are merged next.
///
/// A run has a level by its size, and eight neighbours of no higher level become one run. The largest level is not
/// merged any more, and what a busy gateway writes at once is already as large: it is written only once.
enum MergePlan {
    /// What the choice depends on.
    struct Run: Hashable {
        let events: Int
        let oldestMilliseconds: Int64
        let newestMilliseconds: Int64
    }

    private static let levels = 4

    /// The level of a run: 0 for the smallest.
    static func level(events: Int, _ limits: HistoryLimits) -> Int {
        var bound = limits.runEventsMax / HistoryLimits.fanIn
        var level = self.levels - 1
        while level > 0, events < bound {
            level -= 1
            bound /= HistoryLimits.fanIn
        }
        return level
    }

    /// - Parameter runs: from the oldest to the newest.
    /// - Returns: the runs to merge; nil when there are few enough.
    static func next(_ runs: [Run], _ limits: HistoryLimits) -> Range<Int>? {
        guard runs.count >= HistoryLimits.fanIn else { return nil }
        let levels = runs.map { self.level(events: $0.events, limits) }
        for level in 0..<self.levels - 1 {
            var start = 0
            for end in 1...runs.count {
                if levels[end - 1] > level { start = end }
                while start < end, !self.fits(runs[start..<end], limits) { start += 1 }
                if end - start == HistoryLimits.fanIn { return start..<end }
            }
        }
        return runs.count > HistoryLimits.runsMax ? self.cheapest(runs) : nil
    }

    private static func fits(_ window: ArraySlice<Run>, _ limits: HistoryLimits) -> Bool {
        let oldest = window.lazy.map(\.oldestMilliseconds).min() ?? 0
        let newest = window.lazy.map(\.newestMilliseconds).max() ?? 0
        let (span, overflow) = newest.subtractingReportingOverflow(oldest)
        return !overflow && span <= limits.spanMillisecondsMax
            && window.reduce(0) { $0 + $1.events } <= limits.runEventsMax
    }

    /// The neighbours with the fewest events: there are too many runs, whatever their size.
    private static func cheapest(_ runs: [Run]) -> Range<Int> {
        var best = 0..<HistoryLimits.fanIn
        var bestEvents = Int.max
        for start in 0...(runs.count - HistoryLimits.fanIn) {
            let window = start..<start + HistoryLimits.fanIn
            let events = runs[window].reduce(0) { $0 + $1.events }
            if events < bestEvents { (best, bestEvents) = (window, events) }
        }
        return best
    }
}
