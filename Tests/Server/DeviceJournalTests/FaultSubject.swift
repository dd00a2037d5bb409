import Engine
import Storage
import Synchronization
import WakeGateTestKit
import Wire

/// A journal on a simulated disk, with limits so low that a few commits meet everything it does.
struct FaultSubject {
    static let path = "/journal.sqlite"

    let store: Journal
    private let checkpointer: JournalCheckpointer
    private let due = Due()
    private let vfs: String

    private final class Due: Sendable {
        let isSet = Atomic(false)
    }

    init(_ disk: SimulatedDisk) throws(StoreError) {
        var limits = JournalLimits()
        limits.rowBytesMax = 9000
        limits.compactionFloorBytes = 20_000
        limits.checkpointPages = 8
        limits.restartPages = 14
        limits.restPages = 4
        limits.logPagesMax = 60
        self.vfs = disk.vfsName
        self.store = try Journal(path: Self.path, vfs: disk.vfsName, limits: limits) { folder throws(StoreError) in
            guard disk.syncFolder() else { throw StoreError(message: "The folder of \(folder) cannot be synced.") }
        }
        self.checkpointer = self.store.makeCheckpointer()
        self.store.onCheckpointDue = { [due] in due.isSet.store(true, ordering: .relaxed) }
    }

    /// Whether the journal asked for a checkpoint that was not made yet.
    var isCheckpointDue: Bool { self.due.isSet.load(ordering: .relaxed) }

    func checkpoint() throws(StoreError) {
        self.due.isSet.store(false, ordering: .relaxed)
        try self.checkpointer.checkpoint()
        try self.checkpointer.syncMark()
    }

    /// What was durable when a commit failed.
    func reload() throws(StoreError) -> SimulatedStore.Records {
        var records = SimulatedStore.Records()
        try self.store.reload { key, content in
            records[key] = content.array
        }
        return records
    }
}
