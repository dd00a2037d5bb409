package import Policy

/// The number of wakes by their duration, in milliseconds; buckets are an eighth of their values wide or less.
package struct DurationCounts: Hashable, Sendable {
    /// The buckets up to nine hours; the last one has all longer durations.
    package static let bucketCount = 184

    package private(set) var buckets: [Int64] = []
    package private(set) var sum: Int64 = 0
    package private(set) var max: Int64 = 0

    package init() {}

    /// The number of wakes.
    package var count: Int64 { self.buckets.reduce(0, +) }

    package var isEmpty: Bool { self.buckets.isEmpty }

    /// Counts a wake; `-1` takes one back that was counted.
    @inline(__always)
    package mutating func record(_ milliseconds: Int64, times: Int64 = 1) {
        if self.buckets.isEmpty { self.buckets = Array(repeating: 0, count: Self.bucketCount) }
        self.buckets[Self.bucket(milliseconds)] += times
        self.sum += milliseconds * times
        if milliseconds > self.max { self.max = milliseconds }
    }

    /// Adds wakes of one bucket, and what they add to the sum and the longest.
    package mutating func add(_ times: Int64, bucket: Int) {
        if self.buckets.isEmpty { self.buckets = Array(repeating: 0, count: Self.bucketCount) }
        self.buckets[bucket] += times
    }

    /// Adds a sum of durations, and the longest of them.
    package mutating func add(sum: Int64, max: Int64) {
        self.sum += sum
        self.max = Swift.max(self.max, max)
    }

    package static func += (left: inout DurationCounts, right: DurationCounts) {
        for (bucket, times) in right.buckets.enumerated() where times != 0 { left.add(times, bucket: bucket) }
        left.add(sum: right.sum, max: right.max)
    }

    /// The duration that a share of the wakes did not exceed, at most an eighth too long; nil without wakes.
    package func quantile(_ share: Double) -> Int64? {
        let count = self.count
        guard count > 0 else { return nil }
        var left = Int64((Double(count) * share).rounded(.up))
        for (bucket, times) in self.buckets.enumerated() {
            left -= times
            guard left <= 0 else { continue }
            return bucket == Self.bucketCount - 1 ? self.max : Swift.min(Self.longest(bucket), self.max)
        }
        return self.max
    }

    /// The number of wakes in buckets that end at `milliseconds` or before.
    package func count(upTo milliseconds: Int64) -> Int64 {
        self.buckets.enumerated().reduce(0) { Self.longest($1.offset) <= milliseconds ? $0 + $1.element : $0 }
    }

    /// The bucket of a duration: powers of two begin a new one.
    @inline(__always)
    private static func bucket(_ milliseconds: Int64) -> Int {
        let value = Swift.min(Swift.max(milliseconds - 1, 0), 1 << 25 - 1)
        let shift = Swift.max(0, 60 - value.leadingZeroBitCount)
        return shift << 3 + Int(value >> Int64(shift))
    }

    /// The longest duration of a bucket.
    private static func longest(_ bucket: Int) -> Int64 {
        guard bucket >= 8 else { return Int64(bucket) + 1 }
        return Int64(9 + bucket & 7) << Int64(bucket >> 3 - 1)
    }
}

/// The durations of wakes of one kind and topic: of the workers of one name, or of all.
package struct WakeDurationRow: Hashable, Sendable {
    package let topic: TopicIndex
    package let kind: LaunchKind
    /// The name that the workers gave, which may be empty; nil for every worker of the topic.
    package let worker: String?
    package var counts: DurationCounts

    package init(topic: TopicIndex, kind: LaunchKind, worker: String?, counts: DurationCounts) {
        self.topic = topic
        self.kind = kind
        self.worker = worker
        self.counts = counts
    }
}

/// The durations of the wakes that workers answered or let expire, in the last half hour to hour.
///
/// A wake that was lost, given back or ended by an operator says nothing of its worker.
package struct WakeDurations {
    /// The milliseconds after which a new count begins, at whole half hours of policy time; the one before is kept.
    package static let span: Int64 = 1_800_000
    /// The most names of workers that have counts of their own.
    package static let namesMax = 1024

    /// The workers of one topic and name, and wakes of one kind.
    struct Key: Hashable {
        let topic: TopicIndex
        let kind: LaunchKind
        /// nil for all workers beyond `namesMax`.
        let worker: String?
    }

    /// The counts of one key; streams keep theirs.
    final class Cell {
        var current = DurationCounts()
        var before = DurationCounts()
        var isListed = true
    }

    private var cells: [Key: Cell] = [:]
    /// Wakes of pushes that are in no count any more, by topic.
    private var past: [TopicIndex: DurationCounts] = [:]
    /// The number of the half hour that is counted now.
    private var span: Int64 = 0

    package init() {}

    /// Counts a wake of a stream that took so long; `-1` takes one back that was counted.
    @inline(__always)
    mutating func record(_ milliseconds: Int64, _ kind: LaunchKind, _ stream: Subscription, times: Int64 = 1) {
        if kind == .push, let cell = stream.durations, cell.isListed {
            cell.current.record(milliseconds, times: times)
        } else {
            self.recordFirst(milliseconds, kind, stream, times)
        }
    }

    @inline(never)
    private mutating func recordFirst(_ milliseconds: Int64, _ kind: LaunchKind, _ stream: Subscription, _ times: Int64)
    {
        var key = Key(topic: stream.topic, kind: kind, worker: stream.request.label)
        if self.cells[key] == nil, self.cells.count >= Self.namesMax {
            key = Key(topic: stream.topic, kind: kind, worker: nil)
        }
        let cell = self.cells[key] ?? Cell()
        self.cells[key] = cell
        if kind == .push { stream.durations = cell }
        cell.current.record(milliseconds, times: times)
    }

    /// Begins a new count with each half hour.
    mutating func advance(to now: Instant) {
        let span = now.milliseconds / Self.span
        guard span != self.span else { return }
        let isNext = span == self.span + 1
        let isFirst = self.span == 0
        self.span = span
        guard !isFirst else { return }
        for (key, cell) in self.cells {
            for counts in isNext ? [cell.before] : [cell.before, cell.current] where key.kind == .push {
                self.past[key.topic, default: DurationCounts()] += counts
            }
            cell.before = isNext ? cell.current : DurationCounts()
            cell.current = DurationCounts()
            guard cell.before.isEmpty else { continue }
            cell.isListed = false
            self.cells[key] = nil
        }
    }

    /// The start of the earlier of the two counts.
    var since: Instant { Instant(milliseconds: (self.span - 1) * Self.span) }

    /// A row for each topic and kind, then one for each name.
    ///
    /// - Parameter topic: nil for every topic.
    func rows(_ topic: TopicIndex?) -> [WakeDurationRow] {
        var rows: [WakeDurationRow] = []
        for (key, cell) in self.cells where topic == nil || key.topic == topic {
            var counts = cell.current
            counts += cell.before
            rows.append(WakeDurationRow(topic: key.topic, kind: key.kind, worker: nil, counts: counts))
            guard let worker = key.worker else { continue }
            rows.append(WakeDurationRow(topic: key.topic, kind: key.kind, worker: worker, counts: counts))
        }
        return Self.merged(rows)
    }

    /// The rows of which there are several, such as those of several gateways, as one each.
    package static func merged(_ rows: [WakeDurationRow]) -> [WakeDurationRow] {
        var places: [Key: Int] = [:]
        var merged: [WakeDurationRow] = []
        for row in rows {
            let place = places[Key(topic: row.topic, kind: row.kind, worker: row.worker)]
            if let place {
                merged[place].counts += row.counts
            } else {
                places[Key(topic: row.topic, kind: row.kind, worker: row.worker)] = merged.count
                merged.append(row)
            }
        }
        return merged
    }

    /// The wakes of pushes since the process began, by topic.
    var pushes: [TopicIndex: DurationCounts] {
        var pushes = self.past
        for (key, cell) in self.cells where key.kind == .push {
            pushes[key.topic, default: DurationCounts()] += cell.before
            pushes[key.topic, default: DurationCounts()] += cell.current
        }
        return pushes
    }
}

extension Dispatcher {
    /// Begins a new count of durations if it is time.
    package func advanceDurations(to now: Instant) { self.streams.durations.advance(to: now) }

    /// The start of the counts of `durations`.
    package var durationsSince: Instant { self.streams.durations.since }

    /// The durations of wakes on the streams of this gateway, by topic, and by worker.
    package func durations(_ topic: TopicIndex?) -> [WakeDurationRow] { self.streams.durations.rows(topic) }

    /// The durations of the wakes of pushes since the process began, by topic.
    package var pushDurations: [TopicIndex: DurationCounts] { self.streams.durations.pushes }
}
