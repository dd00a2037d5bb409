import Engine
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

/// A journal on a simulated disk: used until a fault occurs, killed, reopened, used and killed again.
///
/// The parameters determine the whole trial.
struct FaultTrial {
    /// The end of a process's life.
    enum Death: CaseIterable {
        /// The process continues and reopens the file.
        case close
        case kill
        case powerLoss
    }

    let fault: SimulatedDisk.Fault
    let isLasting: Bool
    let number: Int
    let seed: UInt64
    /// True if the journal exists before faults begin.
    let isOld: Bool
    /// The operation, in the life after the fault, at which a second power loss occurs.
    let secondLoss: Int?

    let disk: SimulatedDisk
    private var workload: FaultWorkload
    private var promises = FaultPromises()
    /// The errors found, in order.
    private(set) var wrongs: [String] = []
    /// The operation that met the fault; empty if none did.
    private var firstFault = ""
    private(set) var counts: [Count: Int] = [:]

    /// The events that occurred, so that a test can require each of them.
    enum Count: Hashable, CaseIterable {
        case openFailed, loadFailed, beginningFailed, commitFailed, checkpointFailed
        case foundUncertainBatch, lostUncertainBatch
        case compacted, checkpointed
    }

    init(
        _ fault: SimulatedDisk.Fault,
        isLasting: Bool,
        number: Int,
        seed: UInt64,
        isOld: Bool,
        secondLoss: Int? = nil
    ) {
        self.fault = fault
        self.isLasting = isLasting
        self.number = number
        self.seed = seed
        self.isOld = isOld
        self.secondLoss = secondLoss
        // Every other disk is exact: nothing happens on it that was not requested.
        self.disk = SimulatedDisk(seed: seed % 2 == 0 ? 0 : seed)
        self.workload = FaultWorkload(seed: seed)
    }

    private var name: String {
        "\(self.fault) \(self.isLasting ? "lasting " : "")at operation \(self.number), seed \(self.seed)"
            + "\(self.isOld ? ", old file" : ""), \(self.firstFault)"
            + (self.secondLoss.map { ", then a loss of power at operation \($0)" } ?? "")
    }

    private(set) var metSecondLoss = false
    /// True once the life with the fault has ended.
    private var isFaultNoted = false

    var metFault: Bool { !self.firstFault.isEmpty }

    private mutating func wrong(_ what: String) { self.wrongs.append("\(self.name): \(what)") }

    mutating func run() {
        if self.isOld {
            self.live(commits: self.secondLoss == nil ? 12 : 4, mayFail: false)
            self.die(.powerLoss, seed: self.seed)
        }
        self.disk.failOperation(self.number, self.fault, isLasting: self.isLasting, seed: self.seed)
        self.live(commits: self.secondLoss == nil ? 14 : 5, mayFail: true)
        self.noteFault()
        self.isFaultNoted = true
        let isUncertain = self.promises.possible.count > 1
        let before = self.promises.current
        self.disk.count(.changes)
        let deaths = Death.allCases
        self.die(deaths[(self.number + Int(self.seed)) % deaths.count], seed: self.seed &+ 1)
        if let secondLoss = self.secondLoss {
            self.disk.failOperation(secondLoss, .powerLoss, seed: self.seed)
            self.live(commits: 2, mayFail: true)
            self.metSecondLoss = self.disk.metFault
            self.disk.count(.changes)
            self.die(.powerLoss, seed: self.seed)
        }
        self.live(commits: 3, mayFail: false)
        if isUncertain {
            let kept = self.firstFound == before
            self.counts[kept ? .lostUncertainBatch : .foundUncertainBatch, default: 0] += 1
        }
        self.die(.powerLoss, seed: self.number % 2 == 0 ? 0 : self.seed &+ 2)
        self.live(commits: 1, mayFail: false)
        self.checkIntegrity()
    }

    private mutating func noteFault() {
        if !self.isFaultNoted, self.disk.metFault { self.firstFault = self.disk.firstFault }
    }

    /// The records that the last life found at its start.
    private var firstFound: SimulatedStore.Records = [:]

    private func die(_ death: Death, seed: UInt64) {
        switch death {
        case .close: break
        case .kill: self.disk.killProcess()
        case .powerLoss: self.disk.losePower(seed: seed)
        }
    }

    /// Runs one life of the process.
    private mutating func live(commits: Int, mayFail: Bool) {
        let journal: FaultSubject
        do {
            journal = try FaultSubject(self.disk)
        } catch {
            if !mayFail || !self.disk.metFault { self.wrong("open failed: \(error.message)") }
            self.counts[.openFailed, default: 0] += 1
            return
        }
        do {
            self.firstFound = try journal.store.loadAll()
        } catch {
            if !mayFail || !self.disk.metFault { self.wrong("load failed: \(error.message)") }
            self.counts[.loadFailed, default: 0] += 1
            return
        }
        if let fault = self.promises.found(self.firstFound) { return self.wrong(fault) }
        do {
            if let loss = try journal.store.beginTellingLoss() { self.wrong("a loss was accepted: \(loss.summary)") }
            self.promises.begun()
        } catch {
            if !mayFail || !self.disk.metFault { self.wrong("beginning failed: \(error.message)") }
            self.counts[.beginningFailed, default: 0] += 1
            return
        }
        for _ in 0..<commits {
            guard self.commit(journal) else {
                if !mayFail || !self.disk.metFault { self.wrong("a commit failed without fault") }
                return self.checkFailed(journal)
            }
            guard journal.isCheckpointDue || self.workload.once(in: 5) else { continue }
            do {
                try journal.checkpoint()
                self.counts[.checkpointed, default: 0] += 1
            } catch {
                if !mayFail || !self.disk.metFault { self.wrong("a checkpoint failed without fault: \(error.message)") }
                self.counts[.checkpointFailed, default: 0] += 1
                return self.checkFailed(journal)
            }
        }
    }

    private mutating func commit(_ journal: FaultSubject) -> Bool {
        let batch = self.workload.batch()
        do {
            try journal.store.commit(batch)
            self.promises.committed(batch)
            if journal.store.copiedBytesOfLastCommit > 0 { self.counts[.compacted, default: 0] += 1 }
            return true
        } catch {
            self.promises.failed(batch)
            self.counts[.commitFailed, default: 0] += 1
            return false
        }
    }

    /// Checks that a failed journal accepts no commits, leaves the disk alone, and still returns the durable records.
    private mutating func checkFailed(_ journal: FaultSubject) {
        self.noteFault()
        // The journal of a dead process cannot be checked.
        let isDead = self.fault == .kill || self.fault == .powerLoss || self.secondLoss != nil
        guard !isDead else { return }
        guard journal.store.failure != nil else { return self.wrong("the journal forgot that it failed") }
        self.disk.count(.changes)
        for _ in 0..<2 where (try? journal.store.commit(self.workload.batch())) != nil {
            self.wrong("a commit succeeded after a failure")
        }
        do {
            let read = try journal.reload()
            if read != self.promises.current { self.wrong("a reload differs from the commits") }
        } catch {
            self.wrong("a reload failed: \(error.message)")
        }
        if self.disk.operations > 0 { self.wrong("the disk was written after a failure") }
    }

    private mutating func checkIntegrity() {
        do {
            let database = try SQLiteDatabase(path: FaultSubject.path, mode: .readWrite, vfs: self.disk.vfsName)
            let verdict = try database.text("PRAGMA integrity_check")
            if verdict != "ok" { self.wrong("SQLite says \(verdict ?? "nothing")") }
        } catch {
            self.wrong("SQLite says \(error.message)")
        }
    }
}

/// A journal on a simulated disk, with limits so low that a few commits reach all of them.
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
        limits.checkpointBytes = 64 << 10
        limits.restartBytes = 112 << 10
        limits.restBytes = 32 << 10
        limits.logBytesMax = 480 << 10
        self.vfs = disk.vfsName
        self.store = try Journal(path: Self.path, vfs: disk.vfsName, limits: limits) { folder throws(StoreError) in
            guard disk.syncFolder() else { throw StoreError(message: "The folder of \(folder) cannot be synced.") }
        }
        self.checkpointer = self.store.makeCheckpointer()
        self.store.onCheckpointDue = { [due] in due.isSet.store(true, ordering: .relaxed) }
    }

    /// True if the journal has requested a checkpoint that was not made yet.
    var isCheckpointDue: Bool { self.due.isSet.load(ordering: .relaxed) }

    func checkpoint() throws(StoreError) {
        self.due.isSet.store(false, ordering: .relaxed)
        try self.checkpointer.checkpoint()
        try self.checkpointer.syncMark()
    }

    /// Returns the records that were durable when a commit failed.
    func reload() throws(StoreError) -> SimulatedStore.Records {
        var records = SimulatedStore.Records()
        try self.store.reload { key, content in
            records[key] = content.array
        }
        return records
    }
}

/// The promises of a store, recorded outside of it: the states that the next start may find.
struct FaultPromises {
    /// The records loaded and committed since, as the user sees them.
    private(set) var current: SimulatedStore.Records = [:]
    /// The states that a start may find. There are several while the outcome of a failed commit is unknown.
    private(set) var possible: [SimulatedStore.Records] = [[:]]

    mutating func committed(_ batch: SimulatedStore.Records) {
        self.current.merge(batch) { _, new in new }
        self.possible = [self.current]
    }

    /// Records a failed batch. A start may find all of it or nothing, but never a part.
    mutating func failed(_ batch: SimulatedStore.Records) {
        self.possible.append(self.current.merging(batch) { _, new in new })
    }

    /// - Returns: the error in the records that a start has found; nil if they are possible.
    mutating func found(_ records: SimulatedStore.Records) -> String? {
        guard !self.possible.contains(records) else {
            self.current = records
            return nil
        }
        let difference = self.difference(records)
        return
            "found \(records.count) records, which differ from all \(self.possible.count) possible states:\(difference)"
    }

    /// Records that a start's records are durable.
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
    /// Begins, and returns the data that was given up.
    func beginTellingLoss() throws(StoreError) -> StoreLoss? {
        let loss = self.loss
        try self.begin()
        return loss
    }
}

extension SimulatedDisk {
    /// Starts on the journal of this disk.
    ///
    /// - Returns: the records found.
    func startJournal() throws -> SimulatedStore.Records {
        let journal = try Journal(path: FaultSubject.path, vfs: self.vfsName) { _ in _ = self.syncFolder() }
        let found = try journal.loadAll()
        try journal.begin()
        return found
    }
}

/// Batches like those of an engine, generated from one seed.
struct FaultWorkload {
    private var generator: SeededGenerator
    private let deviceCount: Int

    init(seed: UInt64, deviceCount: Int = 20) {
        self.generator = SeededGenerator(seed: seed)
        self.deviceCount = deviceCount
    }

    mutating func once(in count: Int) -> Bool { self.generator.once(in: count) }

    mutating func batch() -> SimulatedStore.Records {
        var records: SimulatedStore.Records = [RecordKey(.clock): self.content(16)]
        // Some batches have many rows.
        let isLarge = self.generator.once(in: 6)
        for _ in 0..<(isLarge ? 12 : self.generator.number(in: 1...8)) {
            let key = RecordKey(.device, UInt32(self.generator.number(below: self.deviceCount)))
            let size = isLarge ? 5000 : self.generator.pick([0, 9, 120, 400, 400, 1500, 5000])
            records[key] = self.content(size)
        }
        if self.generator.once(in: 4) { records[RecordKey(.topic, 0)] = self.content(200) }
        if self.generator.once(in: 8) { records[RecordKey(.rejections, RecordKey.everyTopic)] = self.content(40) }
        return records
    }

    /// Returns bytes that no other record of the run has.
    private mutating func content(_ count: Int) -> [UInt8] {
        var word = self.generator.next()
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: word), count: count)
        for place in 0..<min(8, count) {
            bytes[place] = UInt8(truncatingIfNeeded: word)
            word >>= 8
        }
        return bytes
    }
}
