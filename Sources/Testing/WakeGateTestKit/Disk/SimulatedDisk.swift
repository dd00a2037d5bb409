internal import CSimulatedDisk
import Synchronization

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
            preconditionFailure("SQLite takes no file system layer of this name, or there is no memory")
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
