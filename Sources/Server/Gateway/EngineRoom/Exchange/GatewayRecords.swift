package import Engine
package import Policy
package import Wire

/// The records of a gateway other than devices, and the changes that the next commit must store.
package final class GatewayRecords {
    /// The maximum time for which refused pushes may stay unwritten, in milliseconds.
    private static let rejectionsInterval: Int64 = 1000

    /// The start of counting, in milliseconds since 1970.
    package internal(set) var countingSince: Int64
    /// The committed data that was missing at this start and that the operator accepted as lost; nil if none was
    /// missing. Not stored.
    let acceptedLoss: StoreLoss?
    package internal(set) var rejections: Rejections
    /// The refused pushes of all gateways on a shared store, as last counted; nil for a gateway with its own store.
    var rejectionsOfAll: Rejections?
    /// The launch policies and the times at which they took effect.
    package internal(set) var policies: PolicyVersions
    private var arePoliciesChanged = false
    /// True if the state records, or will record, that workers must authenticate.
    private var wasWorkerAuthenticationRequired: Bool
    private var isAskingNew = false
    private var rejectionsStoredAt: Int64 = 0

    package init(
        countingSince: Int64,
        acceptedLoss: StoreLoss? = nil,
        rejections: Rejections = Rejections(),
        policies: PolicyVersions = PolicyVersions(),
        wasWorkerAuthenticationRequired: Bool = false
    ) {
        self.countingSince = countingSince
        self.acceptedLoss = acceptedLoss
        self.rejections = rejections
        self.policies = policies
        self.wasWorkerAuthenticationRequired = wasWorkerAuthenticationRequired
    }

    /// The refused pushes to show in answers.
    var rejectionsShown: Rejections { self.rejectionsOfAll ?? self.rejections }

    /// Counts a refused push.
    ///
    /// - `topic`: nil if the push named no known topic.
    package func countRejected(_ reason: Int, _ topic: TopicIndex?, by count: Int64 = 1) {
        self.rejections.count(reason, topic, by: count)
    }

    /// Activates the policies of a configuration at `now`.
    package func begin(_ configuration: EngineConfiguration, at now: Instant) {
        if self.policies.begin(configuration, at: now) { self.arePoliciesChanged = true }
    }

    /// Records that workers must authenticate from now on.
    package func requireWorkerAuthentication() {
        guard !self.wasWorkerAuthenticationRequired else { return }
        self.wasWorkerAuthenticationRequired = true
        self.isAskingNew = true
    }

    /// Returns true if changes must be stored now; `monotonic` is the time in milliseconds.
    package func hasChanges(at monotonic: Int64) -> Bool {
        self.arePoliciesChanged || self.isAskingNew || self.areRejectionsDue(at: monotonic)
    }

    /// Makes the counts of refused pushes due for storage immediately.
    package func flushNow() { self.rejectionsStoredAt = 0 }

    /// Appends the changes that must be stored now; `monotonic` is the time in milliseconds.
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

    /// Appends the records that every start stores, even if they are unchanged.
    ///
    /// - `isAsking`: true if workers must authenticate.
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
        batch.append(.workerAuthentication) { $0.append(memoryOf: self.countingSince.littleEndian) }
    }
}

/// Support for a shared store.
extension GatewayRecords {
    /// Removes and returns the unstored counts of this gateway's refused pushes by topic, in the format of a shared
    /// store.
    func takeRejections() -> [(topic: UInt32, content: [UInt8])] {
        var batch = RecordBatch()
        self.rejections.takeChanges(into: &batch)
        var taken: [(topic: UInt32, content: [UInt8])] = []
        func take(_ key: RecordKey, _ content: ByteView) { taken.append((key.index, content.array)) }
        batch.forEach(take)
        return taken
    }

    /// Sets the refused pushes of all gateways. Each row has the counts of one topic on one gateway. Invalid rows are
    /// skipped.
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

/// The numbers of refused pushes by reason, in total and for each known topic.
///
/// The record of a topic is a list of reasons with counts. Each has the length of the reason's name in the provider API
/// (1 byte), the name, and the count (8 bytes).
package struct Rejections {
    /// The totals, by reason number.
    package private(set) var total = Self.none
    private var byTopic: [UInt32: [Int64]] = [:]
    /// The indices of the records that must be written. The index of a topic's record is its number.
    private var changed: Set<UInt32> = []

    package init() {}

    /// The largest plausible count.
    private static let countMax: Int64 = 1 << 50

    private static let none = Array(repeating: Int64(0), count: APNSReason.count)

    var hasChanges: Bool { !self.changed.isEmpty }

    /// The refused pushes of one topic, by reason number.
    package subscript(topic: TopicIndex) -> [Int64] { self.byTopic[topic.rawValue] ?? Self.none }

    /// Counts refused pushes.
    ///
    /// - `topic`: nil if the pushes named no known topic.
    package mutating func count(_ reason: Int, _ topic: TopicIndex?, by count: Int64 = 1) {
        self.total[reason] += count
        self.changed.insert(RecordKey.everyTopic)
        guard let topic else { return }
        self.byTopic[topic.rawValue, default: Self.none][reason] += count
        self.changed.insert(topic.rawValue)
    }

    /// Returns the pushes counted since `earlier`, a previous state of this value.
    func since(_ earlier: Rejections) -> Rejections {
        guard self.total != earlier.total else { return Rejections() }
        var difference = self
        difference.subtract(earlier)
        return difference
    }

    /// Subtracts the counts of another value.
    mutating func subtract(_ others: Rejections) {
        guard others.total.contains(where: { $0 != 0 }) else { return }
        self.total = zip(self.total, others.total).map { $0 &- $1 }
        self.changed.insert(RecordKey.everyTopic)
        for (topic, counts) in others.byTopic where counts.contains(where: { $0 != 0 }) {
            self.byTopic[topic] = zip(self.byTopic[topic] ?? Self.none, counts).map { $0 &- $1 }
            self.changed.insert(topic)
        }
    }

    /// Adds the counts of one stored record, which belongs to one topic or has the totals.
    mutating func addRow(_ row: Rejections) {
        for (reason, count) in row.total.enumerated() where count != 0 { self.total[reason] &+= count }
        for (topic, counts) in row.byTopic {
            self.byTopic[topic] = zip(self.byTopic[topic] ?? Self.none, counts).map { $0 &+ $1 }
        }
    }

    /// Marks records as changed again, because they were not stored.
    mutating func wereNotStored(_ indices: some Sequence<UInt32>) { self.changed.formUnion(indices) }

    /// Appends records of the counts that have changed since the last call.
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

    /// Restores a record that `takeChanges` wrote. Skips unknown reasons.
    ///
    /// - Returns: false if the record is malformed or contains an impossible count.
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
