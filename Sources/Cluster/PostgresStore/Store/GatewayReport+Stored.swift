package import Engine
import Policy
import Storage
package import Wire

/// The stored format of a report. Numbers in parentheses are bytes, integers are little-endian, a text begins with its
/// length (2), and a list begins with its count (2):
///
/// - version (1), name and software version (texts), wakes (4), draining flag (1);
/// - the list of workers: topic, connected, slots, busy (4 each), flag for conditions (1);
/// - the list of digests: name (text), number (8);
/// - the list of offers: topic, streams, free slots (4 each), flags for pushes and for named devices (1 each), and the
///   lists of tasks, sessions and resources (texts);
/// - the list of durations of wakes: topic (4), code of the kind (1), flag for a row of one worker (1), the worker's
///   name (text), sum and longest (8 each), and the list of buckets: number, wakes (4 each).
///
/// Further bytes are from newer versions and are ignored.
extension GatewayReport {
    private static let storedVersion: UInt8 = 3
    /// The maximum size of the stored offers, in bytes. It is small, because every gateway reads all offers each
    /// second. Offers beyond the limit are omitted.
    package static let offerBytesMax = 16_384
    /// The maximum size of the stored durations, in bytes. Rows of topics come before rows of workers, each with the
    /// most wakes first. Rows beyond the limit are omitted.
    package static let durationBytesMax = 16_384

    /// Encodes the report.
    package func stored() -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.append(Self.storedVersion)
        Self.append(self.name, to: &buffer)
        Self.append(self.version, to: &buffer)
        buffer.append(halfWord: UInt32(clamping: self.wakes))
        buffer.append(self.isDraining ? 1 : 0 as UInt8)
        Self.append(count: self.workers.count, to: &buffer)
        for workers in self.workers.prefix(Int(UInt16.max)) {
            buffer.append(halfWord: workers.topic.rawValue)
            for count in [workers.counts.connected, workers.counts.slots, workers.counts.busy] {
                buffer.append(halfWord: UInt32(clamping: count))
            }
            buffer.append(workers.receivesConditions ? 1 : 0 as UInt8)
        }
        Self.append(count: self.digests.count, to: &buffer)
        for (name, digest) in self.digests.sorted(by: { $0.key < $1.key }).prefix(Int(UInt16.max)) {
            Self.append(name, to: &buffer)
            buffer.append(word: digest)
        }
        self.appendOffers(to: &buffer)
        self.appendDurations(to: &buffer)
        return buffer.view.array
    }

    private func appendOffers(to buffer: inout ByteBuffer) {
        Self.append(self.offers, bytesMax: Self.offerBytesMax, to: &buffer) { offer, bytes in
            bytes.append(halfWord: offer.slots.topic.rawValue)
            bytes.append(halfWord: UInt32(clamping: offer.streams))
            bytes.append(halfWord: UInt32(clamping: offer.slots.count))
            bytes.append(offer.slots.takesPushes ? 1 : 0 as UInt8)
            bytes.append(offer.slots.namesDevices ? 1 : 0 as UInt8)
            for names in [offer.slots.tasks, offer.slots.sessions, offer.slots.resources] {
                Self.append(count: names.count, to: &bytes)
                for name in names { Self.append(name, to: &bytes) }
            }
        }
    }

    private func appendDurations(to buffer: inout ByteBuffer) {
        let rows = WakeDurationRow.sorted(self.durations)
        let ordered = rows.filter { $0.worker == nil } + rows.filter { $0.worker != nil }
        Self.append(ordered, bytesMax: Self.durationBytesMax, to: &buffer) { row, bytes in
            bytes.append(halfWord: row.topic.rawValue)
            bytes.append(row.kind.storedCode)
            bytes.append(row.worker == nil ? 0 : 1 as UInt8)
            Self.append(row.worker ?? "", to: &bytes)
            bytes.append(word: UInt64(clamping: row.counts.sum))
            bytes.append(word: UInt64(clamping: row.counts.max))
            let buckets = row.counts.buckets.enumerated().filter { $0.element > 0 }
            Self.append(count: buckets.count, to: &bytes)
            for (bucket, times) in buckets {
                bytes.append(halfWord: UInt32(bucket))
                bytes.append(halfWord: UInt32(clamping: times))
            }
        }
    }

    /// Appends a list of the items that fit into `bytesMax` bytes.
    private static func append<Item>(
        _ items: [Item],
        bytesMax: Int,
        to buffer: inout ByteBuffer,
        _ write: (Item, inout ByteBuffer) -> Void
    ) {
        var list = ByteBuffer()
        var count = 0
        for item in items {
            var bytes = ByteBuffer()
            write(item, &bytes)
            guard list.count + bytes.count <= bytesMax else { continue }
            list.append(bytes.view)
            count += 1
        }
        self.append(count: count, to: &buffer)
        buffer.append(list.view)
    }

    private static func append(count: Int, to buffer: inout ByteBuffer) {
        buffer.append(memoryOf: UInt16(clamping: count).littleEndian)
    }

    private static func append(_ text: String, to buffer: inout ByteBuffer) {
        let bytes = Array(text.utf8.prefix(Int(UInt16.max)))
        self.append(count: bytes.count, to: &buffer)
        buffer.append(bytes)
    }

    /// Decodes a report written by `stored`; nil for other bytes.
    package init?(stored bytes: ByteView) {
        var fields = RecordReader(bytes)
        guard fields.integer(UInt8.self) >= Self.storedVersion else { return nil }
        self.init(name: fields.text(), version: fields.text())
        self.wakes = fields.number()
        self.isDraining = fields.flag()
        for _ in 0..<fields.count() where !fields.isShort {
            let topic = TopicIndex(rawValue: fields.integer())
            let counts = Dispatcher.WorkerCounts(
                connected: fields.number(),
                slots: fields.number(),
                busy: fields.number()
            )
            self.workers.append(Workers(topic, counts, receivesConditions: fields.flag()))
        }
        for _ in 0..<fields.count() where !fields.isShort {
            let name = fields.text()
            self.digests[name] = fields.integer()
        }
        for _ in 0..<fields.count() where !fields.isShort {
            let topic = TopicIndex(rawValue: fields.integer())
            let (streams, freeSlots) = (fields.number(), fields.number())
            let (takesPushes, namesDevices) = (fields.flag(), fields.flag())
            let slots = FreeSlots(
                topic: topic,
                takesPushes: takesPushes,
                tasks: fields.texts(),
                sessions: fields.texts(),
                resources: fields.texts(),
                namesDevices: namesDevices,
                count: freeSlots
            )
            self.offers.append(StreamOffer(slots: slots, streams: streams))
        }
        for _ in 0..<fields.count() where !fields.isShort {
            let topic = TopicIndex(rawValue: fields.integer())
            let (kind, isOfWorker, worker) = (fields.integer(UInt8.self), fields.flag(), fields.text())
            var counts = DurationCounts()
            // The value is limited so that sums of many rows do not overflow.
            let (sum, longest) = (fields.integer(UInt64.self), fields.integer(UInt64.self))
            counts.add(sum: min(Int64(clamping: sum), 1 << 44), max: min(Int64(clamping: longest), 1 << 44))
            for _ in 0..<fields.count() where !fields.isShort {
                let (bucket, times) = (fields.number(), fields.number())
                if bucket < DurationCounts.bucketCount { counts.add(Int64(times), bucket: bucket) }
            }
            // Kinds of newer gateways are skipped.
            guard let kind = LaunchKind.allCases.first(where: { $0.storedCode == kind }) else { continue }
            let name = isOfWorker ? worker : nil
            self.durations.append(WakeDurationRow(topic: topic, kind: kind, worker: name, counts: counts))
        }
        if fields.isShort { return nil }
    }
}

extension RecordReader {
    fileprivate mutating func number() -> Int { Int(self.integer(UInt32.self)) }

    fileprivate mutating func count() -> Int { Int(self.integer(UInt16.self)) }

    fileprivate mutating func flag() -> Bool { self.integer(UInt8.self) != 0 }

    fileprivate mutating func texts() -> [String] {
        var texts: [String] = []
        for _ in 0..<self.count() where !self.isShort { texts.append(self.text()) }
        return texts
    }
}

extension ClusterView {
    /// - `results`: the results of the statements of a report: two of the report itself, then clock, members, dead,
    ///   ready, due, totals.
    init(results: [PostgresRows], time: inout PolicyTime) {
        let (clock, members, dead) = (results[2], results[3], results[4])
        let (ready, due, totals) = (results[5], results[6], results[7])
        var total = ActivityCounters()
        for row in 0..<totals.count {
            if let counters = ActivityCounters(stored: totals.bytes(row, 0)) { total += counters }
        }
        let now = time.moment(wall: clock.int64(0, 0), shift: clock.int64(0, 1), rows: 0)
        self.init(
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1)),
            members: (0..<members.count).map { row in
                let report = GatewayReport(stored: members.bytes(row, 3)) ?? GatewayReport(name: "", version: "")
                return Member(
                    number: GatewayNumber(rawValue: members.int32(row, 0)),
                    since: members.int64(row, 1),
                    reportedAt: members.int64(row, 2),
                    report: report
                )
            },
            dead: (0..<dead.count).map { GatewayNumber(rawValue: dead.int32($0, 0)) },
            ready: (0..<ready.count).map { row in
                let topic = TopicIndex(rawValue: UInt32(bitPattern: ready.int32(row, 0)))
                return (topic, Instant(milliseconds: ready.int64(row, 1)))
            },
            nextDue: due.count == 1 ? Instant(milliseconds: due.int64(0, 0)) : nil,
            deviceCount: Int(clamping: total.gauges.devices)
        )
    }
}

/// The counts of refused pushes by reason, for one topic. A row has, for each reason, its name (with a length of 1
/// byte) and its count (8 bytes, little-endian). Unknown reasons of newer gateways are retained.
package struct RefusedCounts: PostgresScalar, Hashable {
    package static var typeID: UInt32 { [UInt8].typeID }

    private var counts: [[UInt8]: Int64] = [:]

    /// Creates an empty set of counts.
    package init() {}

    /// Adds the counts of a row.
    ///
    /// - Returns: false if the row is invalid.
    package mutating func add(_ row: ByteView) -> Bool {
        var offset = 0
        while offset < row.count {
            let start = offset + 1
            let end = start + Int(row[offset])
            guard end + 8 <= row.count else { return false }
            self.counts[row[start..<end].array, default: 0] &+= Int64(littleEndian: row.load(Int64.self, at: end))
            offset = end + 8
        }
        return true
    }

    /// Writes a row in the order of the reasons' names.
    package func writeBinary(to buffer: inout ByteBuffer) {
        for (reason, count) in self.counts.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            buffer.append(UInt8(reason.count))
            buffer.append(reason)
            buffer.append(memoryOf: count.littleEndian)
        }
    }
}
