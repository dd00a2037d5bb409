internal import CSimulatedDisk
package import Engine
package import Storage
import Synchronization
package import Wire

/// A disk in memory below SQLite, which fails and loses power on command.
///
/// What is not synced is lost with the power, or a part of it, as a seed decides. A failed sync loses what it was to
/// write, as on Linux: the next one succeeds and does not write it either. Safe to use from several threads.
@safe
package final class SimulatedDisk: @unchecked Sendable {  // The C side guards itself with a lock of its own.
    /// Kinds of operations that a plan counts.
    package struct Operations: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let write = Self(rawValue: UInt32(WAKEGATE_DISK_WRITE))
        package static let truncate = Self(rawValue: UInt32(WAKEGATE_DISK_TRUNCATE))
        package static let sync = Self(rawValue: UInt32(WAKEGATE_DISK_SYNC))
        /// Opening a file that was not there.
        package static let create = Self(rawValue: UInt32(WAKEGATE_DISK_CREATE))
        package static let delete = Self(rawValue: UInt32(WAKEGATE_DISK_DELETE))
        package static let read = Self(rawValue: UInt32(WAKEGATE_DISK_READ))
        /// What needs room: writes beyond a file's end, new files, memory that connections share.
        package static let grow = Self(rawValue: UInt32(WAKEGATE_DISK_GROW))

        /// All that change something.
        package static let changes: Self = [.write, .truncate, .sync, .create, .delete, .grow]
    }

    /// What a planned operation meets.
    package enum Fault: Hashable, Sendable, CaseIterable {
        /// ENOSPC; it counts only what needs room.
        case noSpace
        /// EIO on anything that changes something.
        case ioError
        /// EIO on a sync.
        case failedSync
        /// EIO on a read.
        case failedRead
        /// The power is lost in the middle of the operation.
        case powerLoss
        /// The process dies before the operation; what it wrote stays in the page cache.
        case kill

        /// The operations it counts.
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

    /// The name to open databases with.
    package let vfsName: String
    private let disk: OpaquePointer

    /// - Parameter seed: decides what happens between syncs: which sectors are written early, how much a failed write
    ///   or sync has done. With 0 nothing of the kind happens.
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

    /// Operation `number`, counted from now and from 0, meets `fault`, and all behind it when it is lasting.
    ///
    /// - `operations`: those that are counted; nil for those the fault concerns.
    /// - `seed`: what a loss of power leaves, as in `losePower`.
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

    /// Fails nothing any more, and counts these operations from now on.
    package func count(_ operations: Operations) {
        unsafe wakegate_disk_plan(self.disk, -1, operations.rawValue, 0, false, 0)
    }

    /// Operations counted since the last plan.
    package var operations: Int { unsafe Int(wakegate_disk_operations(self.disk)) }

    /// Whether an operation met the planned fault.
    package var metFault: Bool { unsafe wakegate_disk_faults(self.disk) > 0 }

    /// The first operation that met the planned fault, in words; empty when none did.
    package var firstFault: String {
        var text = [CChar](repeating: 0, count: 256)
        unsafe text.withUnsafeMutableBufferPointer { text in
            unsafe wakegate_disk_describe_fault(self.disk, text.baseAddress, text.count)
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Death

    /// The power is lost: open files are dead, and what was not synced is gone.
    ///
    /// - Parameter seed: with 0 all of it is gone; otherwise the seed decides which sectors are there, and which torn.
    package func losePower(seed: UInt64 = 0) {
        unsafe wakegate_disk_crash(self.disk, seed, false)
    }

    /// The process is killed: open files are dead, and what was written stays in the page cache.
    package func killProcess() {
        unsafe wakegate_disk_crash(self.disk, 0, true)
    }

    // MARK: Files

    /// Makes the names of files durable, which a sync of a file alone does not.
    ///
    /// - Returns: false when it failed.
    package func syncFolder() -> Bool { unsafe wakegate_disk_sync_folder(self.disk) }

    /// The bytes of a file; nil when there is none.
    package func size(of path: String) -> Int? {
        let size = unsafe wakegate_disk_file_size(self.disk, path)
        return size < 0 ? nil : Int(size)
    }

    /// Flips the bits of `mask` in one byte of a file, on the platter too.
    ///
    /// - Returns: whether the file has that byte.
    @discardableResult
    package func damage(_ path: String, at offset: Int, mask: UInt8 = 0xFF) -> Bool {
        var byte: UInt8 = 0
        guard unsafe wakegate_disk_peek(self.disk, path, Int64(offset), &byte, 1) else { return false }
        byte ^= mask
        return unsafe wakegate_disk_poke(self.disk, path, Int64(offset), &byte, 1)
    }
}

/// How a simulated gateway dies.
package enum SimulatedDeath: CaseIterable, Sendable {
    case kill, powerLoss
}

/// What a gateway's records lie on, across its lives.
package protocol SimulatedMedium: AnyObject {
    func open() throws(StoreError) -> any RecordStore

    /// The history beside the records; nil when the medium has no room for it.
    func openHistory() -> HistoryFile?

    /// What the records need not keep any more for the history, since the store was opened.
    var retention: EventRetention { get }

    /// One of the operations to come fails, which and how the generator decides.
    func planFault(_ generator: inout SeededGenerator)

    /// No operation fails any more.
    func clearFaults()

    func die(_ death: SimulatedDeath, _ generator: inout SeededGenerator)

    /// An operation met the planned fault.
    var metFault: Bool { get }

    /// The planned fault was the death of whoever uses it.
    var isDead: Bool { get }

    /// The rules of a store that its users broke.
    var misuses: [String] { get }
}

/// Records in memory: quick, and strict with its user.
package final class MemoryMedium: SimulatedMedium {
    private var store = SimulatedStore()
    private var isOpen = false
    package private(set) var misuses: [String] = []
    package let isDead = false
    package let metFault = false
    package let retention = EventRetention()

    package init() {}

    package func openHistory() -> HistoryFile? { nil }

    package func open() throws(StoreError) -> any RecordStore {
        // A store that could not be loaded was opened, too.
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

/// The journal on a disk that fails, with limits so low that it compacts and makes checkpoints all the time.
package final class DiskMedium: SimulatedMedium {
    private let disk: SimulatedDisk
    private var fault = SimulatedDisk.Fault.ioError
    package let misuses: [String] = []
    package private(set) var retention = EventRetention()

    package init(seed: UInt64) {
        self.disk = SimulatedDisk(seed: seed)
    }

    package func open() throws(StoreError) -> any RecordStore {
        var limits = JournalLimits()
        limits.rowBytesMax = 2000
        limits.compactionFloorBytes = 6000
        limits.checkpointPages = 8
        limits.restartPages = 14
        limits.restPages = 4
        limits.logPagesMax = 60
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
        self.fault = fault
        self.disk.failOperation(
            generator.number(below: fault == .failedSync ? 4 : 12),
            fault,
            isLasting: generator.once(in: 2),
            seed: generator.once(in: 4) ? 0 : generator.next()
        )
    }

    package func clearFaults() { self.disk.count(.changes) }

    package var metFault: Bool { self.disk.metFault }

    package var isDead: Bool { self.disk.metFault && (self.fault == .kill || self.fault == .powerLoss) }

    package func die(_ death: SimulatedDeath, _ generator: inout SeededGenerator) {
        switch death {
        case .kill: self.disk.killProcess()
        case .powerLoss: self.disk.losePower(seed: generator.once(in: 4) ? 0 : generator.next())
        }
    }
}

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
