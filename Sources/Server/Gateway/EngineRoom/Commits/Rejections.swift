package import Engine
package import Wire

/// Refused pushes by reason, of all topics together and of each topic that is known.
///
/// A record of them is a list of reasons, as the provider API names them, with counts: name (1 byte and its own) and
/// count (8 bytes).
package struct Rejections {
    /// By reason number.
    package private(set) var total = Self.none
    private var byTopic: [UInt32: [Int64]] = [:]
    /// What is to be kept anew, as records are numbered.
    private var changed: Set<UInt32> = []

    package init() {}

    /// Far more than can be refused.
    private static let countMax: Int64 = 1 << 50

    private static let none = Array(repeating: Int64(0), count: APNSReason.count)

    var hasChanges: Bool { !self.changed.isEmpty }

    /// The rejections of one topic, by reason number.
    package subscript(topic: TopicIndex) -> [Int64] { self.byTopic[topic.rawValue] ?? Self.none }

    /// - `topic`: nil when the refused pushes named none that is known.
    package mutating func count(_ reason: Int, _ topic: TopicIndex?, by count: Int64 = 1) {
        self.total[reason] += count
        self.changed.insert(RecordKey.everyTopic)
        guard let topic else { return }
        self.byTopic[topic.rawValue, default: Self.none][reason] += count
        self.changed.insert(topic.rawValue)
    }

    /// What was counted since `earlier`, which these were once.
    func since(_ earlier: Rejections) -> Rejections {
        guard self.total != earlier.total else { return Rejections() }
        var difference = self
        difference.subtract(earlier)
        return difference
    }

    /// Counts what others counted, too.
    mutating func add(_ others: Rejections) { self.change(by: others, &+) }

    /// What was counted for nothing is counted no more.
    mutating func subtract(_ others: Rejections) { self.change(by: others, &-) }

    private mutating func change(by others: Rejections, _ change: (Int64, Int64) -> Int64) {
        func combined(_ left: [Int64], _ right: [Int64]) -> [Int64] { zip(left, right).map { change($0, $1) } }
        guard others.total.contains(where: { $0 != 0 }) else { return }
        self.total = combined(self.total, others.total)
        self.changed.insert(RecordKey.everyTopic)
        for (topic, counts) in others.byTopic where counts.contains(where: { $0 != 0 }) {
            self.byTopic[topic] = combined(self.byTopic[topic] ?? Self.none, counts)
            self.changed.insert(topic)
        }
    }

    /// Counts what one record says, of one topic or of all together.
    mutating func addRow(_ row: Rejections) {
        for (reason, count) in row.total.enumerated() where count != 0 { self.total[reason] &+= count }
        for (topic, counts) in row.byTopic {
            self.byTopic[topic] = zip(self.byTopic[topic] ?? Self.none, counts).map { $0 &+ $1 }
        }
    }

    /// What was taken as records was not kept.
    mutating func wereNotKept(_ indices: some Sequence<UInt32>) { self.changed.formUnion(indices) }

    /// Takes the changes since the last call as records.
    package mutating func takeChanges(into batch: inout RecordBatch) {
        for index in self.changed.sorted() {
            let counts = index == RecordKey.everyTopic ? self.total : self.byTopic[index] ?? Self.none
            batch.append(RecordKey(.rejections, index)) { buffer in
                for reason in APNSReason.allCases where counts[reason.index] != 0 {
                    buffer.append(UInt8(reason.rawValue.utf8.count))
                    buffer.append(reason.rawValue)
                    buffer.append(memoryOf: counts[reason.index].littleEndian)
                }
            }
        }
        self.changed.removeAll(keepingCapacity: true)
    }

    /// Takes a record that `takeChanges` wrote; a reason that is no longer known is not counted.
    ///
    /// - Returns: false when it is none, or counts what nothing comes to.
    package mutating func restore(_ index: UInt32, _ content: ByteView) -> Bool {
        var counts = Self.none
        var offset = 0
        while offset < content.count {
            let start = offset + 1
            let end = start + Int(content[offset])
            guard end + 8 <= content.count else { return false }
            let count = Int64(littleEndian: content.load(Int64.self, at: end))
            guard 0...Self.countMax ~= count else { return false }
            if let reason = APNSReason(rawValue: content[start..<end].string) { counts[reason.index] = count }
            offset = end + 8
        }
        if index == RecordKey.everyTopic { self.total = counts } else { self.byTopic[index] = counts }
        return true
    }
}
