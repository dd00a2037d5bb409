package import Engine
package import Policy
package import Wire

/// What a gateway keeps besides its devices, and what of that the next commit has to store.
package final class GatewayRecords {
    /// How long refused pushes may stay unwritten, in milliseconds.
    private static let rejectionsInterval: Int64 = 1000

    /// When the counters began, in milliseconds since 1970.
    package internal(set) var countingSince: Int64
    /// What this start gave up of what was once committed, which is not kept; nil when nothing was missing.
    let acceptedLoss: StoreLoss?
    package internal(set) var rejections: Rejections
    /// What all gateways on a shared store have refused, as of their last count; nil where there is but one.
    var rejectionsOfAll: Rejections?
    /// Which launch policies were in force when.
    package internal(set) var policies: PolicyVersions
    private var arePoliciesChanged = false
    /// The state says, or is about to say, that workers were asked who they are.
    private var wereWorkersAsked: Bool
    private var isAskingNew = false
    private var rejectionsStoredAt: Int64 = 0

    package init(
        countingSince: Int64,
        acceptedLoss: StoreLoss? = nil,
        rejections: Rejections = Rejections(),
        policies: PolicyVersions = PolicyVersions(),
        wereWorkersAsked: Bool = false
    ) {
        self.countingSince = countingSince
        self.acceptedLoss = acceptedLoss
        self.rejections = rejections
        self.policies = policies
        self.wereWorkersAsked = wereWorkersAsked
    }

    /// The refused pushes that are shown.
    var rejectionsShown: Rejections { self.rejectionsOfAll ?? self.rejections }

    /// A push was refused.
    ///
    /// - `topic`: nil when it named none that is known.
    package func countRejected(_ reason: Int, _ topic: TopicIndex?, by count: Int64 = 1) {
        self.rejections.count(reason, topic, by: count)
    }

    /// The policies of a configuration are in force from `now` on.
    package func begin(_ configuration: EngineConfiguration, at now: Instant) {
        if self.policies.begin(configuration, at: now) { self.arePoliciesChanged = true }
    }

    /// Workers are asked who they are from here on.
    package func workersAsked() {
        guard !self.wereWorkersAsked else { return }
        self.wereWorkersAsked = true
        self.isAskingNew = true
    }

    /// Whether something has to be stored, `monotonic` being the time in milliseconds.
    package func hasChanges(at monotonic: Int64) -> Bool {
        self.arePoliciesChanged || self.isAskingNew || self.areRejectionsDue(at: monotonic)
    }

    /// Nothing stays unwritten for a while any more.
    package func hurry() { self.rejectionsStoredAt = 0 }

    /// Takes what has to be stored, `monotonic` being the time in milliseconds.
    package func takeChanges(into batch: inout RecordBatch, at monotonic: Int64) {
        self.takePolicies(into: &batch)
        if self.isAskingNew {
            self.storeAsking(into: &batch)
            self.isAskingNew = false
        }
        if self.areRejectionsDue(at: monotonic) {
            self.rejections.takeChanges(into: &batch)
            self.rejectionsStoredAt = monotonic
        }
    }

    /// Takes what a start stores whatever has changed.
    ///
    /// - `isAsking`: workers are asked who they are.
    package func takeBeginning(into batch: inout RecordBatch, isAsking: Bool) {
        batch.append(RecordKey(.origin)) { $0.append(memoryOf: self.countingSince.littleEndian) }
        if isAsking { self.storeAsking(into: &batch) }
        self.takePolicies(into: &batch)
    }

    private func areRejectionsDue(at monotonic: Int64) -> Bool {
        self.rejections.hasChanges && monotonic - self.rejectionsStoredAt >= Self.rejectionsInterval
    }

    private func takePolicies(into batch: inout RecordBatch) {
        guard self.arePoliciesChanged else { return }
        batch.append(RecordKey(.policies)) { self.policies.store(to: &$0) }
        self.arePoliciesChanged = false
    }

    private func storeAsking(into batch: inout RecordBatch) {
        batch.append(.workersAsked) { $0.append(memoryOf: self.countingSince.littleEndian) }
    }
}

/// What a gateway keeps on a store that it shares with others.
extension GatewayRecords {
    /// Refused pushes of this gateway that are not stored, by topic, as a shared store keeps them.
    func takeRejections() -> [(topic: UInt32, content: [UInt8])] {
        var batch = RecordBatch()
        self.rejections.takeChanges(into: &batch)
        var taken: [(topic: UInt32, content: [UInt8])] = []
        func take(_ key: RecordKey, _ content: ByteView) { taken.append((key.index, content.array)) }
        batch.forEach(take)
        return taken
    }

    /// What all gateways have refused is this, each row one gateway's count of one topic.
    ///
    /// A row that cannot be read is not counted.
    func showRejections(_ rows: [(topic: UInt32, content: [UInt8])]) {
        var sum = Rejections()
        for (topic, content) in rows {
            var row = Rejections()
            guard content.withByteView({ row.restore(topic, $0) }) else { continue }
            sum.addRow(row)
        }
        self.rejectionsOfAll = sum
    }
}

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
