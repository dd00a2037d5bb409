package import Engine
package import Storage

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
