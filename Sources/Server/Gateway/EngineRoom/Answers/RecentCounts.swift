import Engine
import Platform
import Policy
import Wire

/// The pushes and wakes that were counted in a period, for one topic or for all topics together.
struct PeriodCounts: Sendable {
    /// The start of the period, in milliseconds since 1970.
    let since: Int64
    /// The end of the period, in milliseconds since 1970; nil if it has not ended.
    let until: Int64?
    /// The counts, in the order of `RecentCounts.values(of:)`.
    fileprivate let values: [Int64]

    /// Appends an object.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("since", WallTime.text(self.since))
        writer.member("until", ifPresent: self.until.map { WallTime.text($0) })
        for (place, name) in (["accepted", "completed", "coalesced", "launched"] as [StaticString]).enumerated() {
            writer.member(name, self.values[place])
        }
        let reasons = DiscardReason.ofPushes
        writer.member("discarded", zip(reasons, self.values.dropFirst(4)).map { ($0.rawValue, $1) })
        let results = self.values.dropFirst(4 + reasons.count)
        writer.member("results", zip(WakeOutcome.allCases, results).map { ($0.rawValue, $1) })
        writer.endObject()
    }

    /// Appends an object with one total of discards instead of a count per reason.
    func writeSums(to writer: inout JSONWriter) {
        let results = self.values.suffix(WakeOutcome.allCases.count)
        let outcomes = Dictionary(uniqueKeysWithValues: zip(WakeOutcome.allCases, results))
        let discarded = self.values.dropFirst(4).dropLast(results.count).reduce(0, +)
        writer.beginObject()
        writer.member("accepted", self.values[0])
        writer.member("completed", self.values[1])
        writer.member("coalesced", self.values[2])
        writer.member("discarded", discarded)
        writer.member("expired", outcomes[.expired] ?? 0)
        writer.member("lost", outcomes[.lost] ?? 0)
        writer.endObject()
    }
}

/// The counters of the last day by topic: one sample per minute for the last hour, and one per quarter of an hour
/// before that.
///
/// Only topics whose counters have changed get samples, so idle topics cost nothing. A restart loses all samples.
package struct RecentCounts {
    static let hour: Int64 = 3_600_000
    static let day: Int64 = 86_400_000
    /// The maximum number of topics with several samples. Other topics have only one sample, their latest.
    package static let topicsMax = 256
    private static let (fine, coarse): (Int64, Int64) = (60_000, 900_000)
    /// The number of samples at which old samples are removed: two hours by minutes, and a day by quarters of an hour.
    private static let samplesMax = 220

    private struct Series {
        /// The times of the samples, in milliseconds of policy time.
        var times: [Int64] = []
        /// The counts of each sample.
        var values: [[Int64]] = []

        mutating func append(_ values: [Int64], at time: Int64) {
            self.times.append(time)
            self.values.append(values)
        }

        /// Removes samples older than a day. Of those older than an hour, keeps the last one of each quarter of an
        /// hour.
        mutating func thin(_ now: Int64) {
            // A period may begin up to a minute before the last hour, and its first sample up to another minute
            // earlier.
            let hour = now - RecentCounts.hour - 2 * RecentCounts.fine
            let day = now - RecentCounts.day - RecentCounts.coarse
            let last = self.times.count - 1
            func quarter(_ place: Int) -> Int64 { (self.times[place] - 1) / RecentCounts.coarse }
            let kept = self.times.indices.filter { place in
                place == last
                    || self.times[place + 1] > day
                        && (self.times[place] > hour || quarter(place) != quarter(place + 1))
            }
            self.times = kept.map { self.times[$0] }
            self.values = kept.map { self.values[$0] }
        }
    }

    /// The samples by topic. The key nil stands for all topics together.
    private var series: [TopicIndex?: Series] = [:]
    private var startedAt: Int64?
    /// The time of the next sample, in milliseconds of policy time.
    private(set) var nextAt: Int64 = 0
    /// The policy time of the last call of `look`, at most a second ago.
    private(set) var now = Instant.distantPast

    /// Takes the sample of this minute, if it is due.
    mutating func look(_ engine: DeviceEngine, _ now: Instant) {
        self.now = now
        guard now.milliseconds >= self.nextAt else { return }
        let time = self.startedAt == nil ? now.milliseconds : now.milliseconds / Self.fine * Self.fine
        self.nextAt = (now.milliseconds / Self.fine + 1) * Self.fine
        let startedAt = self.startedAt ?? time
        self.startedAt = startedAt
        var busy = self.series.values.count { $0.times.count > 1 }
        self.take(engine.totalsShown, of: nil, at: time, startedAt, &busy)
        for number in 0..<UInt32(engine.topicCount) {
            let topic = TopicIndex(rawValue: number)
            self.take(engine.countersShown(topic), of: topic, at: time, startedAt, &busy)
        }
    }

    private mutating func take(
        _ counters: ActivityCounters,
        of topic: TopicIndex?,
        at time: Int64,
        _ startedAt: Int64,
        _ busy: inout Int
    ) {
        let values = Self.values(of: counters)
        var series = self.series[topic] ?? Series()
        if series.times.isEmpty {
            // A topic added after the first sample had no counts then.
            series.append(time == startedAt ? values : values.map { _ in 0 }, at: startedAt)
        }
        if series.values.last != values {
            if series.times.count == 1, busy >= Self.topicsMax {
                series = Series()
            } else if series.times.count == 1 {
                busy += 1
            }
            series.append(values, at: time)
        }
        let isOld = series.times.count > 1 && series.times[1] <= time - Self.day - Self.coarse
        if isOld || series.times.count > Self.samplesMax { series.thin(time) }
        self.series[topic] = series
    }

    /// Returns the counts of a period of policy time.
    ///
    /// The start and the end move back to the previous samples. If all samples are later, the first sample is used.
    func counts(
        _ counters: ActivityCounters,
        of topic: TopicIndex?,
        in period: Range<Int64>,
        _ now: Instant,
        _ offset: WallOffset
    )
        -> PeriodCounts
    {
        let current = Self.values(of: counters)
        let zero = (self.startedAt ?? now.milliseconds, current.map { _ in Int64(0) })
        let (since, before) = self.sample(of: topic, at: period.lowerBound, now) ?? zero
        var (until, after): (Int64?, [Int64]) = (nil, current)
        if period.upperBound <= now.milliseconds {
            let end = self.sample(of: topic, at: period.upperBound, now) ?? zero
            (until, after) = (end.0, end.1)
        }
        return PeriodCounts(
            since: offset.wall(Instant(milliseconds: since)),
            until: until.map { offset.wall(Instant(milliseconds: $0)) },
            values: zip(after, before).map { max(0, $0 - $1) }
        )
    }

    /// Returns the counts at the last full minute before `moment`. For times more than an hour ago, uses the last
    /// quarter of an hour.
    ///
    /// - Returns: the first counts if `moment` is before all samples; nil without samples.
    private func sample(of topic: TopicIndex?, at moment: Int64, _ now: Instant) -> (at: Int64, values: [Int64])? {
        guard let series = self.series[topic] else { return nil }
        let step = moment >= now.milliseconds - Self.hour - Self.fine ? Self.fine : Self.coarse
        let begin = moment / step * step
        let place = series.times.lastIndex { $0 <= begin }
        return (place == nil ? series.times[0] : begin, series.values[place ?? 0])
    }

    private static func values(of counters: ActivityCounters) -> [Int64] {
        [counters.accepted, counters.completed, counters.coalesced, counters.launched]
            + DiscardReason.ofPushes.map { counters.discarded[$0] } + WakeOutcome.allCases.map { counters.results[$0] }
    }
}

// MARK: - Wake durations

/// The durations of wakes by topic and by worker, as answers show them.
struct DurationReport: Sendable {
    /// The maximum number of rows of each kind of wake; the slowest are shown.
    static let rowsMax = 20

    /// A row with the name of its topic and its 95th percentile.
    private typealias Row = (topic: String, row: WakeDurationRow, p95: Int64)

    /// The start of the counts, in milliseconds since 1970.
    let since: Int64
    /// The wakes of pushes of all requested topics.
    private var pushes = DurationCounts()
    private var rows: [Row] = []

    /// - `name`: returns the name of a topic.
    init(_ rows: [WakeDurationRow], since: Int64, name: (TopicIndex) -> String) {
        self.since = since
        for row in WakeDurationRow.sorted(rows) {
            if row.worker == nil, row.kind == .push { self.pushes += row.counts }
            guard let p95 = row.counts.quantile(0.95) else { continue }
            self.rows.append((name(row.topic), row, p95))
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("since", WallTime.text(self.since))
        self.pushes.writeMembers(to: &writer)
        self.write("topics", self.rows.filter { $0.row.worker == nil }, to: &writer)
        self.write("workers", self.rows.filter { $0.row.worker != nil }, to: &writer)
        writer.endObject()
    }

    private func write(_ name: StaticString, _ rows: [Row], to writer: inout JSONWriter) {
        writer.beginArray(name)
        for kind in LaunchKind.allCases {
            // The sort is stable: among equally slow rows, rows with more wakes come first.
            for row in rows.filter({ $0.row.kind == kind }).sorted(by: { $0.p95 > $1.p95 }).prefix(Self.rowsMax) {
                writer.beginObject()
                writer.member("worker", ifPresent: row.row.worker)
                writer.member("topic", row.topic)
                writer.member("kind", kind.rawValue)
                row.row.counts.writeMembers(to: &writer)
                writer.endObject()
            }
        }
        writer.endArray()
    }
}

extension DurationCounts {
    /// Appends the number of wakes, the median, the 95th percentile, and the maximum.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("count", self.count)
        writer.member("p50Ms", self.quantile(0.5))
        writer.member("p95Ms", self.quantile(0.95))
        writer.member("maxMs", self.count > 0 ? self.max : nil)
    }
}
