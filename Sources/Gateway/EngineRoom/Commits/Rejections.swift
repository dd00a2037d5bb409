import APNSProtocol
package import Bytes
package import DeviceEngine

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
