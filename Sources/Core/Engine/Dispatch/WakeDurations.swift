package import Policy

/// The number of wakes by their duration, in milliseconds. The width of a bucket is at most an eighth of its durations.
package struct DurationCounts: Hashable, Sendable {
    /// The number of buckets, which end at nine hours; the last bucket also has all longer durations.
    package static let bucketCount = 184

    package private(set) var buckets: [Int64] = []
    /// The number of wakes.
    package private(set) var count: Int64 = 0
    package private(set) var sum: Int64 = 0
    package private(set) var max: Int64 = 0

    package init() {}

    package var isEmpty: Bool { self.buckets.isEmpty }

    @inline(__always)
    package mutating func record(_ milliseconds: Int64) {
        if self.buckets.isEmpty { self.buckets = Array(repeating: 0, count: Self.bucketCount) }
        self.buckets[Self.bucket(milliseconds)] += 1
        self.count += 1
        self.sum += milliseconds
        if milliseconds > self.max { self.max = milliseconds }
    }

    /// Subtracts a counted wake.
    ///
    /// - Returns: false if no wake of this duration is counted.
    mutating func takeBack(_ milliseconds: Int64) -> Bool {
        let bucket = Self.bucket(milliseconds)
        guard !self.buckets.isEmpty, self.buckets[bucket] > 0 else { return false }
        self.buckets[bucket] -= 1
        self.count -= 1
        self.sum = Swift.max(0, self.sum - milliseconds)
        return true
    }

    /// Adds wakes to one bucket. `add(sum:max:)` adds their durations.
    package mutating func add(_ times: Int64, bucket: Int) {
        if self.buckets.isEmpty { self.buckets = Array(repeating: 0, count: Self.bucketCount) }
        self.buckets[bucket] += times
        self.count += times
    }

    /// Adds a sum of durations, and the longest duration.
    package mutating func add(sum: Int64, max: Int64) {
        self.sum += sum
        self.max = Swift.max(self.max, max)
    }

    package static func += (left: inout DurationCounts, right: DurationCounts) {
        if left.buckets.isEmpty {
            left.buckets = right.buckets
        } else {
            for bucket in right.buckets.indices { left.buckets[bucket] += right.buckets[bucket] }
        }
        left.count += right.count
        left.add(sum: right.sum, max: right.max)
    }

    /// Returns the duration that a share of the wakes did not exceed, rounded up by at most an eighth; nil without
    /// wakes.
    package func quantile(_ share: Double) -> Int64? {
        guard self.count > 0 else { return nil }
        var left = Int64((Double(self.count) * share).rounded(.up))
        for (bucket, times) in self.buckets.enumerated() {
            left -= times
            guard left <= 0 else { continue }
            return bucket == Self.bucketCount - 1 ? self.max : Swift.min(Self.longest(bucket), self.max)
        }
        return self.max
    }

    /// Returns the number of wakes in buckets that end at `milliseconds` or before.
    package func count(upTo milliseconds: Int64) -> Int64 {
        self.buckets.enumerated().reduce(0) { Self.longest($1.offset) <= milliseconds ? $0 + $1.element : $0 }
    }

    /// Returns the bucket of a duration: eight buckets for each power of two.
    @inline(__always)
    private static func bucket(_ milliseconds: Int64) -> Int {
        let value = Swift.min(Swift.max(milliseconds - 1, 0), 1 << 25 - 1)
        let shift = Swift.max(0, 60 - value.leadingZeroBitCount)
        return shift << 3 + Int(value >> Int64(shift))
    }

    /// Returns the longest duration of a bucket.
    private static func longest(_ bucket: Int) -> Int64 {
        guard bucket >= 8 else { return Int64(bucket) + 1 }
        return Int64(9 + bucket & 7) << Int64(bucket >> 3 - 1)
    }
}

/// The durations of wakes of one kind and topic, for the workers with one name or for all workers.
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

    /// Returns the rows with the most wakes first, in an order that is the same on every gateway.
    package static func sorted(_ rows: [WakeDurationRow]) -> [WakeDurationRow] {
        rows.sorted { first, second in
            guard first.counts.count == second.counts.count else { return first.counts.count > second.counts.count }
            guard first.topic == second.topic else { return first.topic.rawValue < second.topic.rawValue }
            guard first.kind == second.kind else { return first.kind.rawValue < second.kind.rawValue }
            return first.worker ?? "" < second.worker ?? ""
        }
    }
}

/// The durations of the wakes that workers answered or let expire in the current and the previous half hour.
///
/// A wake that was lost, given back or ended by an operator is not counted, because its duration does not depend on its
/// worker.
package struct WakeDurations {
    /// The time span of one count, in milliseconds. The current and the previous count are retained.
    package static let span: Int64 = 1_800_000
    /// The maximum number of separate counts, one for each topic, kind of wake and worker name. A topic may use at most
    /// half of the counts that other topics do not use.
    package static let namesMax = 1024
    /// The maximum number of counts, including those of workers without a separate count. Further wakes are in no row.
    package static let cellsMax = 2048
    /// The topic of wakes that are in no row, in the totals since the start.
    private static let others = TopicIndex(rawValue: .max)

    /// The topic, kind of wake and worker name of a count.
    struct Key: Hashable {
        let topic: TopicIndex
        let kind: LaunchKind
        /// nil for all workers without a separate count.
        let worker: String?
    }

    /// The counts of one key. Streams keep a reference to their cell.
    final class Cell {
        var current = DurationCounts()
        var before = DurationCounts()
        /// False if streams must find another cell, because this cell was dropped or their name may now get a separate
        /// count.
        var isListed = true
    }

    private var cells: [Key: Cell] = [:]
    /// The number of separate counts, in total and by topic.
    private var names: (all: Int, byTopic: [TopicIndex: Int]) = (0, [:])
    /// Push wakes of dropped counts, by topic.
    private var past: [TopicIndex: DurationCounts] = [:]
    /// The number of the current half hour of policy time.
    private var span: Int64 = 0
    /// The first time that was counted.
    private var start = Instant.distantFuture

    package init() {}

    /// Counts a wake of a stream, which had this duration.
    @inline(__always)
    mutating func record(_ milliseconds: Int64, _ kind: LaunchKind, _ stream: Subscription) {
        if kind == .push, let cell = stream.durations, cell.isListed {
            cell.current.record(milliseconds)
        } else {
            self.recordFirst(milliseconds, kind, stream)
        }
    }

    @inline(never)
    private mutating func recordFirst(_ milliseconds: Int64, _ kind: LaunchKind, _ stream: Subscription) {
        let found = self.cell(stream, kind, isNamed: true) ?? self.cell(stream, kind, isNamed: false)
        if kind == .push { stream.durations = found }
        if let cell = found {
            cell.current.record(milliseconds)
        } else if kind == .push {
            self.past[Self.others, default: DurationCounts()].record(milliseconds)
        }
    }

    /// Returns the counts of a stream's worker, or the counts of all workers without a separate count; nil if the
    /// limits are reached.
    private mutating func cell(_ stream: Subscription, _ kind: LaunchKind, isNamed: Bool) -> Cell? {
        let key = Key(topic: stream.topic, kind: kind, worker: isNamed ? stream.request.label : nil)
        if let cell = self.cells[key] { return cell }
        guard self.cells.count < Self.cellsMax else { return nil }
        if isNamed {
            let ofTopic = self.names.byTopic[stream.topic, default: 0]
            guard ofTopic < Self.namesMax - self.names.all else { return nil }
            self.names.byTopic[stream.topic] = ofTopic + 1
            self.names.all += 1
        }
        let cell = Cell()
        self.cells[key] = cell
        return cell
    }

    /// Subtracts a counted wake, unless its count was dropped.
    mutating func takeBack(_ milliseconds: Int64, _ kind: LaunchKind, _ stream: Subscription) {
        for worker in [stream.request.label, nil] {
            guard let cell = self.cells[Key(topic: stream.topic, kind: kind, worker: worker)] else { continue }
            if cell.current.takeBack(milliseconds) || cell.before.takeBack(milliseconds) { return }
        }
    }

    /// Begins a new count with each half hour.
    mutating func advance(to now: Instant) {
        let span = now.milliseconds / Self.span
        guard span != self.span else { return }
        let isNext = span == self.span + 1
        let isFirst = self.span == 0
        self.span = span
        if self.start == .distantFuture { self.start = now }
        guard !isFirst else { return }
        for (key, cell) in self.cells {
            for counts in isNext ? [cell.before] : [cell.before, cell.current] where key.kind == .push {
                let isKept = self.past[key.topic] != nil || self.past.count < Self.cellsMax
                self.past[isKept ? key.topic : Self.others, default: DurationCounts()] += counts
            }
            cell.before = isNext ? cell.current : DurationCounts()
            cell.current = DurationCounts()
            guard cell.before.isEmpty || key.worker == nil else { continue }
            cell.isListed = false
            self.cells[key] = nil
            guard key.worker != nil else {
                // Put the counts into another object, so that each of these workers tries again to get a separate
                // count.
                guard !cell.before.isEmpty else { continue }
                let next = Cell()
                next.before = cell.before
                self.cells[key] = next
                continue
            }
            self.names.all -= 1
            let ofTopic = self.names.byTopic[key.topic, default: 1] - 1
            self.names.byTopic[key.topic] = ofTopic > 0 ? ofTopic : nil
        }
    }

    /// The start of the previous count or, if that is later, the first time that was counted.
    var since: Instant {
        let before = Instant(milliseconds: (self.span - 1) * Self.span)
        return self.start == .distantFuture ? before : max(before, self.start)
    }

    /// Returns a row for each topic and kind, and a row for each worker name.
    ///
    /// - Parameters:
    ///   - topic: nil for every topic.
    ///   - byWorker: false to leave out the rows of worker names.
    func rows(_ topic: TopicIndex?, byWorker: Bool) -> [WakeDurationRow] {
        var rows: [Key: DurationCounts] = [:]
        for (key, cell) in self.cells where topic == nil || key.topic == topic {
            for worker in byWorker && key.worker != nil ? [key.worker, nil] : [nil] {
                let row = Key(topic: key.topic, kind: key.kind, worker: worker)
                rows[row, default: DurationCounts()] += cell.current
                rows[row, default: DurationCounts()] += cell.before
            }
        }
        return rows.map { WakeDurationRow(topic: $0.topic, kind: $0.kind, worker: $0.worker, counts: $1) }
    }

    /// Returns the rows with equal topic, kind and worker combined, such as rows of several gateways.
    package static func merged(_ rows: [WakeDurationRow]) -> [WakeDurationRow] {
        var merged: [Key: DurationCounts] = [:]
        for row in rows {
            merged[Key(topic: row.topic, kind: row.kind, worker: row.worker), default: DurationCounts()] += row.counts
        }
        return merged.map { WakeDurationRow(topic: $0.topic, kind: $0.kind, worker: $0.worker, counts: $1) }
    }

    /// The push wakes since the process began, by topic; wakes that are in no row have the index `others`.
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

    package var durationsSince: Instant { self.streams.durations.since }

    /// Returns the durations of wakes on the streams of this gateway, by topic, and by worker.
    ///
    /// - `byWorker`: false to leave out the rows of worker names.
    package func durations(_ topic: TopicIndex?, byWorker: Bool = true) -> [WakeDurationRow] {
        self.streams.durations.rows(topic, byWorker: byWorker)
    }

    /// The durations of the wakes of pushes since the process began, by topic.
    package var pushDurations: [TopicIndex: DurationCounts] { self.streams.durations.pushes }
}
