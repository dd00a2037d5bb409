package import Engine
package import Wire

/// Keeps records in memory the way a disk does: it fails on command, and what a failed sync leaves is open.
///
/// One store is one process's view; `reopened` gives the next process's. It notes when its user breaks the rules of
/// `RecordStore`.
package final class SimulatedStore: RecordStore {
    package typealias Records = [RecordKey: [UInt8]]

    private enum State {
        case new, loaded, begun, committing, failed, dead
    }

    /// What is durable for certain.
    package private(set) var durable: Records
    /// The batch of a commit that failed at its sync: at the next start it is there whole, or not at all.
    package private(set) var unresolved: Records?
    /// How many operations there were: a load and a beginning are one each, a commit two, writing and syncing.
    package private(set) var operations = 0
    /// How many commits were asked for, failed ones included.
    package private(set) var commits = 0
    /// How many operations failed.
    package private(set) var faults = 0
    /// The rules its user broke.
    package private(set) var misuses: [String] = []
    /// What its beginning says that it has lost.
    package var loss: StoreLoss?
    /// Runs between writing and syncing, with the commit's number: what happens while a disk is slow.
    package var whileCommitting: (Int) -> Void = { _ in }
    private var failing: Range<Int> = 0..<0
    private var state = State.new

    package init(_ durable: Records = [:]) {
        self.durable = durable
    }

    /// Operation `number`, counted from 0, fails, and all behind it when it is lasting.
    package func failOperation(_ number: Int, isLasting: Bool = false) {
        self.failing = number..<(isLasting ? Int.max : number + 1)
    }

    /// The store as the next process finds it; this one is dead.
    ///
    /// - Parameter keepsUnresolved: whether the batch of a commit that failed at its sync is found.
    package func reopened(keepsUnresolved: Bool) -> SimulatedStore {
        self.state = .dead
        let kept = keepsUnresolved ? self.unresolved ?? [:] : [:]
        return SimulatedStore(self.durable.merging(kept) { _, new in new })
    }

    package func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        if self.state != .new { self.misuses.append("load after \(self.state)") }
        self.state = .loaded
        try self.operate("load")
        for (key, content) in self.durable { try Self.hand(key, content, to: take) }
    }

    package func begin() throws(StoreError) {
        if self.state != .loaded { self.misuses.append("beginning after \(self.state)") }
        self.state = .begun
        try self.operate("beginning")
    }

    package func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        switch self.state {
        case .new, .begun: break
        case .loaded, .committing, .failed, .dead: self.misuses.append("commit after \(self.state)")
        }
        let number = self.commits
        self.commits += 1
        var records = Records()
        func note(key: RecordKey, content: ByteView) {
            if records.updateValue(content.array, forKey: key) != nil { self.misuses.append("\(key) twice in a batch") }
        }
        batch.forEach(note)
        try self.operate("writing of commit \(number)")
        self.state = .committing
        self.unresolved = records
        self.whileCommitting(number)
        try self.operate("sync of commit \(number)")
        guard self.state == .committing else { throw StoreError(message: "the process died in commit \(number)") }
        self.unresolved = nil
        self.durable.merge(records) { _, new in new }
        self.state = .begun
    }

    package func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        if self.state != .failed { self.misuses.append("reload without a failure") }
        try self.operate("reload")
        for (key, content) in self.durable { try Self.hand(key, content, to: take) }
    }

    /// Commits what changed in an engine.
    package func commit(from engine: EmbeddedEngine) throws(StoreError) {
        var batch = RecordBatch()
        engine.takeStep(into: &batch)
        try self.commit(batch)
    }

    private func operate(_ what: String) throws(StoreError) {
        defer { self.operations += 1 }
        guard self.failing.contains(self.operations) else { return }
        self.faults += 1
        self.state = .failed
        throw StoreError(message: "\(what) failed on command")
    }

    private static func hand(
        _ key: RecordKey,
        _ content: [UInt8],
        to take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) {
        // The view's scope passes on no typed error.
        let result: Result<Void, StoreError> = content.withByteView { view in
            do throws(StoreError) {
                return .success(try take(key, view))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }
}
