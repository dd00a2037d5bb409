internal import CSimulatedDisk
package import Engine
package import Storage
import Synchronization
package import Wire

/// A disk in memory below SQLite. Tests make it fail or lose power.
///
/// A power loss drops unsynced data, completely or in part, as a seed determines. As on Linux, a failed sync drops its
/// data, and the next sync succeeds without writing that data. Any thread may use the disk.
@safe
package final class SimulatedDisk: @unchecked Sendable {  // The C code has its own lock.
    /// The kinds of operations that can be counted and can fail.
    package struct Operations: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let write = Self(rawValue: UInt32(WAKEGATE_DISK_WRITE))
        package static let truncate = Self(rawValue: UInt32(WAKEGATE_DISK_TRUNCATE))
        package static let sync = Self(rawValue: UInt32(WAKEGATE_DISK_SYNC))
        /// Opening a file that did not exist.
        package static let create = Self(rawValue: UInt32(WAKEGATE_DISK_CREATE))
        package static let delete = Self(rawValue: UInt32(WAKEGATE_DISK_DELETE))
        package static let read = Self(rawValue: UInt32(WAKEGATE_DISK_READ))
        /// The operations that need space: writes beyond a file's end, new files, and shared memory of connections.
        package static let grow = Self(rawValue: UInt32(WAKEGATE_DISK_GROW))

        /// All operations that change the disk.
        package static let changes: Self = [.write, .truncate, .sync, .create, .delete, .grow]
    }

    /// The fault of a planned operation.
    package enum Fault: Hashable, Sendable, CaseIterable {
        /// ENOSPC from an operation that needs space.
        case noSpace
        /// EIO from any operation that changes the disk.
        case ioError
        /// EIO from a sync.
        case failedSync
        /// EIO from a read.
        case failedRead
        /// A power loss in the middle of the operation.
        case powerLoss
        /// The death of the process before the operation. Its earlier writes remain in the page cache.
        case kill

        /// The operations that can have the fault.
        package var operations: Operations {
            switch self {
            case .noSpace: .grow
            case .failedSync: .sync
            case .failedRead: .read
            case .ioError, .powerLoss, .kill: .changes
            }
        }

        fileprivate var code: Int32 {
            switch self {
            case .noSpace: Int32(WAKEGATE_DISK_NO_SPACE)
            case .ioError, .failedSync, .failedRead: Int32(WAKEGATE_DISK_IO_ERROR)
            case .powerLoss: Int32(WAKEGATE_DISK_POWER_LOSS)
            case .kill: Int32(WAKEGATE_DISK_KILL)
            }
        }
    }

    private static let count = Atomic(0)

    /// The name of the file system layer for opening databases.
    package let vfsName: String
    private let disk: OpaquePointer

    /// - Parameter seed: determines the sectors that are written before a sync, and the completed part of a failed
    ///   write or sync; 0 for none.
    package init(seed: UInt64 = 0) {
        let number = Self.count.add(1, ordering: .relaxed).newValue
        self.vfsName = "simulated-disk-\(number)"
        guard let disk = unsafe wakegate_disk_make(self.vfsName, seed) else {
            preconditionFailure("SQLite refuses a file system layer of this name, or memory is short")
        }
        unsafe self.disk = disk
        self.count(.changes)
    }

    deinit {
        unsafe wakegate_disk_free(self.disk)
    }

    // MARK: Faults

    /// Makes an operation fail with `fault`, after `number` further operations have succeeded. A lasting fault also
    /// affects all later operations.
    ///
    /// - `operations`: the operations that count; nil for the operations that can have the fault.
    /// - `seed`: determines the effect of a power loss, as in `losePower`.
    package func failOperation(
        _ number: Int,
        _ fault: Fault,
        isLasting: Bool = false,
        operations: Operations? = nil,
        seed: UInt64 = 0
    ) {
        let operations = operations ?? fault.operations
        unsafe wakegate_disk_plan(self.disk, Int64(number), operations.rawValue, fault.code, isLasting, seed)
    }

    /// Removes the planned fault, and starts to count these operations from 0.
    package func count(_ operations: Operations) {
        unsafe wakegate_disk_plan(self.disk, -1, operations.rawValue, 0, false, 0)
    }

    /// The number of operations counted since the last call of `failOperation` or `count`.
    package var operations: Int { unsafe Int(wakegate_disk_operations(self.disk)) }

    /// True if an operation has failed with the planned fault.
    package var metFault: Bool { unsafe wakegate_disk_faults(self.disk) > 0 }

    /// A description of the first operation that failed with the planned fault; empty if none has.
    package var firstFault: String {
        var text = [CChar](repeating: 0, count: 256)
        unsafe text.withUnsafeMutableBufferPointer { text in
            unsafe wakegate_disk_describe_fault(self.disk, text.baseAddress, text.count)
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Death

    /// Simulates a power loss. Open files become unusable, and unsynced data is lost.
    ///
    /// - Parameter seed: 0 to lose all unsynced data; otherwise determines the sectors that survive, completely or in
    ///   part.
    package func losePower(seed: UInt64 = 0) {
        unsafe wakegate_disk_crash(self.disk, seed, false)
    }

    /// Simulates the death of the process. Open files become unusable, and written data remains in the page cache.
    package func killProcess() {
        unsafe wakegate_disk_crash(self.disk, 0, true)
    }

    // MARK: Files

    /// Syncs the folder. File names are then durable; a sync of a file does not do this.
    ///
    /// - Returns: false if the sync failed.
    package func syncFolder() -> Bool { unsafe wakegate_disk_sync_folder(self.disk) }

    /// Returns the size of a file in bytes; nil if the file does not exist.
    package func size(of path: String) -> Int? {
        let size = unsafe wakegate_disk_file_size(self.disk, path)
        return size < 0 ? nil : Int(size)
    }

    /// Flips the bits of `mask` in one byte of a file, including its durable content.
    ///
    /// - Returns: true if the file has a byte at this offset.
    @discardableResult
    package func damage(_ path: String, at offset: Int, mask: UInt8 = 0xFF) -> Bool {
        var byte: UInt8 = 0
        guard unsafe wakegate_disk_peek(self.disk, path, Int64(offset), &byte, 1) else { return false }
        byte ^= mask
        return unsafe wakegate_disk_poke(self.disk, path, Int64(offset), &byte, 1)
    }
}

/// The kinds of death of a simulated gateway.
package enum SimulatedDeath: CaseIterable, Sendable {
    case kill, powerLoss
}

/// The storage of a gateway's records, which outlives the gateway's processes.
package protocol SimulatedMedium: AnyObject {
    func open() throws(StoreError) -> any RecordStore

    /// Opens the history next to the records; nil if the medium has none.
    func openHistory() -> HistoryFile?

    /// The record up to which the history is durable. The store may delete the events up to it.
    var retention: EventRetention { get }

    /// Plans a fault of a later operation. The generator determines the operation and the fault.
    func planFault(_ generator: inout SeededGenerator)

    /// Removes all planned faults.
    func clearFaults()

    func die(_ death: SimulatedDeath, _ generator: inout SeededGenerator)

    /// The rules of `RecordStore` that callers have violated.
    var misuses: [String] { get }
}

/// Records in memory. It is fast, and checks the rules of `RecordStore`.
package final class MemoryMedium: SimulatedMedium {
    private var store = SimulatedStore()
    private var isOpen = false
    package private(set) var misuses: [String] = []
    package let retention = EventRetention()

    package init() {}

    package func openHistory() -> HistoryFile? { nil }

    package func open() throws(StoreError) -> any RecordStore {
        // A failed load leaves the store open without a call of `die`, so the store is reopened here.
        if self.isOpen { self.store = self.store.reopened(keepsUnresolved: false) }
        self.isOpen = true
        return self.store
    }

    package func planFault(_ generator: inout SeededGenerator) {
        self.store.failOperation(self.store.operations + generator.number(below: 6), isLasting: generator.once(in: 2))
    }

    package func clearFaults() { self.store.failOperation(.max - 1) }

    package func die(_ death: SimulatedDeath, _ generator: inout SeededGenerator) {
        self.misuses += self.store.misuses
        self.store = self.store.reopened(keepsUnresolved: generator.once(in: 2))
        self.isOpen = false
    }
}

/// The journal on a failing disk. Its limits cause frequent compactions and checkpoints.
package final class DiskMedium: SimulatedMedium {
    private let disk: SimulatedDisk
    package let misuses: [String] = []
    package private(set) var retention = EventRetention()

    package init(seed: UInt64) {
        self.disk = SimulatedDisk(seed: seed)
    }

    package func open() throws(StoreError) -> any RecordStore {
        var limits = JournalLimits()
        limits.rowBytesMax = 2000
        limits.compactionFloorBytes = 6000
        limits.checkpointBytes = 64 << 10
        limits.restartBytes = 112 << 10
        limits.restBytes = 32 << 10
        limits.logBytesMax = 480 << 10
        let journal = try Journal(path: "/journal.sqlite", vfs: self.disk.vfsName, limits: limits) {
            [disk] _ throws(StoreError) in
            guard disk.syncFolder() else { throw StoreError(message: "The folder cannot be synced.") }
        }
        self.retention = EventRetention()
        journal.retention = self.retention
        return journal
    }

    package func openHistory() -> HistoryFile? {
        HistoryFile(
            path: "/history.sqlite",
            key: EngineRig.historyKey,
            limits: HistoryLimits(bytesMax: 4 << 20),
            vfs: self.disk.vfsName
        ) { _ in }
    }

    package func planFault(_ generator: inout SeededGenerator) {
        let fault = generator.pick(
            [.ioError, .noSpace, .failedSync, .failedSync, .powerLoss, .kill] as [SimulatedDisk.Fault]
        )
        self.disk.failOperation(
            generator.number(below: fault == .failedSync ? 4 : 12),
            fault,
            isLasting: generator.once(in: 2),
            seed: generator.once(in: 4) ? 0 : generator.next()
        )
    }

    package func clearFaults() { self.disk.count(.changes) }

    package func die(_ death: SimulatedDeath, _ generator: inout SeededGenerator) {
        switch death {
        case .kill: self.disk.killProcess()
        case .powerLoss: self.disk.losePower(seed: generator.once(in: 4) ? 0 : generator.next())
        }
    }
}

/// A store that keeps records in memory and fails like a disk. Tests choose the operations that fail. The result of a
/// failed sync is undetermined.
///
/// A store belongs to one process; `reopened` returns the store of the next process. A store records violations of the
/// rules of `RecordStore`.
package final class SimulatedStore: RecordStore {
    package typealias Records = [RecordKey: [UInt8]]

    private enum State {
        case new, loaded, begun, committing, failed, dead
    }

    /// The records that are durable in any case.
    package private(set) var durable: Records
    /// The batch of a commit whose sync failed. At the next start, it exists completely or not at all.
    package private(set) var unresolved: Records?
    /// The number of operations. A load or a call of `begin` counts once, and a commit twice: for writing and for
    /// syncing.
    package private(set) var operations = 0
    /// The number of commits requested, including failed ones.
    package private(set) var commits = 0
    /// The number of failed operations.
    package private(set) var faults = 0
    /// The descriptions of violated rules.
    package private(set) var misuses: [String] = []
    /// The loss that `begin` reports.
    package var loss: StoreLoss?
    /// A function that runs between writing and syncing, with the commit's number. It simulates events during a slow
    /// commit.
    package var whileCommitting: (Int) -> Void = { _ in }
    /// A function that runs before each record of a reload.
    package var whileReloading: () -> Void = {}
    private var failing: Range<Int> = 0..<0
    private var state = State.new

    package init(_ durable: Records = [:]) {
        self.durable = durable
    }

    /// Makes operation `number` fail. The first operation of the store has number 0. A lasting fault also affects all
    /// later operations.
    package func failOperation(_ number: Int, isLasting: Bool = false) {
        self.failing = number..<(isLasting ? Int.max : number + 1)
    }

    /// Returns the store that the next process opens. This store is unusable afterwards.
    ///
    /// - Parameter keepsUnresolved: true if the batch of a commit whose sync failed becomes durable.
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
        for (key, content) in self.durable {
            self.whileReloading()
            try Self.hand(key, content, to: take)
        }
    }

    /// Commits the changes of an engine.
    package func commit(from engine: DeviceEngine) throws(StoreError) {
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
        // The closure cannot throw a typed error, so it returns a result.
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
