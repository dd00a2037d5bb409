import Engine
import WakeGateTestKit
import Wire

/// What a store has promised, kept outside of it: which states may be found at the next start.
struct FaultPromises {
    /// What was loaded and committed since; the user's own view.
    private(set) var current: SimulatedStore.Records = [:]
    /// The states that a start may find. More than one while the outcome of a failed commit is open.
    private(set) var possible: [SimulatedStore.Records] = [[:]]

    mutating func committed(_ batch: SimulatedStore.Records) {
        self.current.merge(batch) { _, new in new }
        self.possible = [self.current]
    }

    /// Whether the batch is found is open; a part of it never is.
    mutating func failed(_ batch: SimulatedStore.Records) {
        self.possible.append(self.current.merging(batch) { _, new in new })
    }

    /// - Returns: what is wrong with what a start has found; nil when it may be found.
    mutating func found(_ records: SimulatedStore.Records) -> String? {
        guard !self.possible.contains(records) else {
            self.current = records
            return nil
        }
        let difference = self.difference(records)
        return
            "found \(records.count) records, which differ from all \(self.possible.count) possible states:\(difference)"
    }

    /// What a start has found, and then begun with, is durable.
    mutating func begun() {
        self.possible = [self.current]
    }

    private func difference(_ records: SimulatedStore.Records) -> String {
        var lines = ""
        for (number, state) in self.possible.enumerated() {
            let missing = state.keys.filter { records[$0] == nil }
            let extra = records.keys.filter { state[$0] == nil }
            let other = records.filter { state[$0.key] != nil && state[$0.key] != $0.value }.keys
            lines += "\n  state \(number): \(missing.count) missing, \(extra.count) too many, \(other.count) different"
        }
        return lines
    }
}

extension RecordStore {
    /// Begins, and says what was given up.
    func beginTellingLoss() throws(StoreError) -> StoreLoss? {
        let loss = self.loss
        try self.begin()
        return loss
    }

    /// Everything it holds; a key that comes twice makes it throw.
    func loadAll() throws(StoreError) -> SimulatedStore.Records {
        var records = SimulatedStore.Records()
        try self.load { (key, content) throws(StoreError) in
            guard records.updateValue(content.array, forKey: key) == nil else {
                throw StoreError(message: "\(key) was handed over twice")
            }
        }
        return records
    }

    func commit(_ records: SimulatedStore.Records) throws(StoreError) {
        var batch = RecordBatch()
        for (key, content) in records.sorted(by: {
            ($0.key.kind.rawValue, $0.key.index) < ($1.key.kind.rawValue, $1.key.index)
        }) {
            batch.append(key) { $0.append(content) }
        }
        try self.commit(batch)
    }
}
