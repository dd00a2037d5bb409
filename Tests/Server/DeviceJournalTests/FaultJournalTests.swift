import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit

@Suite("The journal on a disk that fails", .timeLimit(.minutes(15)))
struct FaultJournalTests {
    struct Kind: CustomTestStringConvertible, Sendable {
        let fault: SimulatedDisk.Fault
        let isLasting: Bool
        let isOld: Bool

        var testDescription: String {
            "\(self.isLasting ? "lasting " : "")\(self.fault)\(self.isOld ? ", a file that was there" : "")"
        }

        /// The outcomes that must each occur at least once for the test to be meaningful.
        var outcomes: [FaultTrial.Count] {
            let ordinary: [FaultTrial.Count] = [.beginningFailed, .compacted, .checkpointed]
            return switch self.fault {
            case .noSpace: self.isOld ? [.compacted, .checkpointed] : ordinary + [.commitFailed]
            case .failedRead: ordinary + [.checkpointFailed] + (self.isOld ? [.openFailed, .loadFailed] : [])
            case .powerLoss: ordinary + [.commitFailed, .checkpointFailed]
            case .ioError, .failedSync, .kill:
                ordinary + [.commitFailed, .checkpointFailed, .lostUncertainBatch, .foundUncertainBatch]
            }
        }

        static let all = SimulatedDisk.Fault.allCases.flatMap { fault in
            [false, true].flatMap { isOld in
                // A process can only die once.
                [false, true].filter { !$0 || (fault != .kill && fault != .powerLoss) }.map { isLasting in
                    Kind(fault: fault, isLasting: isLasting, isOld: isOld)
                }
            }
        }
    }

    /// The number of seeds from the environment; `swift test` uses only one.
    private static let seeds = ProcessInfo.processInfo.environment["WAKEGATE_FAULT_SEEDS"].flatMap(Int.init) ?? 1

    @Test(
        "If any operation fails, completed commits are found, and the failed one completely or not at all",
        arguments: Kind.all
    )
    func everyOperation(kind: Kind) {
        var counts: [FaultTrial.Count: Int] = [:]
        var wrongs: [String] = []
        var operations = 0
        for round in 0..<Self.seeds {
            for number in 0... {
                let seed = UInt64(round * 7919 + number % 17)
                var trial = FaultTrial(
                    kind.fault,
                    isLasting: kind.isLasting,
                    number: number,
                    seed: seed,
                    isOld: kind.isOld
                )
                trial.run()
                counts.merge(trial.counts, uniquingKeysWith: +)
                wrongs += trial.wrongs
                guard trial.metFault else { break }
                operations += 1
            }
        }
        #expect(wrongs.isEmpty, "\(wrongs.count): \(wrongs.prefix(3).joined(separator: "\n"))")
        // A full disk only refuses writes that extend a file, and an old log has room.
        #expect(operations > (kind.fault == .noSpace ? 1 : 10))
        let missing = kind.outcomes.filter { counts[$0] == nil }
        #expect(missing.isEmpty, "cases that never happened prove nothing")
    }

    @Test("A start after a failed sync may lose power at any time", arguments: [false, true])
    func startAfterFailedSync(isOld: Bool) {
        var wrongs: [String] = []
        var losses = 0
        for number in 0... {
            var metFault = false
            for second in 0... {
                // An even seed: an exact disk, on which a failed sync has written nothing. With the number it selects
                // the end of the life, so the seed changes more slowly.
                let seed = UInt64(number / 3 % 3) * 2
                var trial = FaultTrial(
                    .failedSync,
                    isLasting: false,
                    number: number,
                    seed: seed,
                    isOld: isOld,
                    secondLoss: second
                )
                trial.run()
                wrongs += trial.wrongs
                metFault = trial.metFault
                guard metFault, trial.metSecondLoss else { break }
                losses += 1
            }
            guard metFault else { break }
        }
        #expect(wrongs.isEmpty, "\(wrongs.count): \(wrongs.prefix(3).joined(separator: "\n"))")
        #expect(losses > 100)
    }
}

@Suite("A store that fails on command", .timeLimit(.minutes(15)))
struct FaultStoreTests {
    @Test("If any operation fails, committed batches are found, and the failed one completely or not at all")
    func everyOperation() throws {
        for isLasting in [false, true] {
            var outcomes: Set<Int> = []
            for number in 0... {
                let isKept = number % 2 == 0
                var store = SimulatedStore()
                store.failOperation(number, isLasting: isLasting)
                var workload = FaultWorkload(seed: UInt64(number))
                var promises = FaultPromises()
                Self.use(store, &workload, &promises)
                guard store.faults > 0 else { break }
                let old = store
                store = store.reopened(keepsUnresolved: isKept)
                #expect(try promises.found(store.loadAll()) == nil, "operation \(number)")
                #expect(try store.beginTellingLoss() == nil)
                try store.commit(workload.batch())
                #expect(old.misuses.isEmpty && store.misuses.isEmpty)
                outcomes.insert(promises.possible.count)
            }
            #expect(outcomes == [1, 2])
        }
    }

    private static func use(_ store: SimulatedStore, _ workload: inout FaultWorkload, _ promises: inout FaultPromises) {
        guard let found = try? store.loadAll() else { return }
        #expect(promises.found(found) == nil)
        do { try store.begin() } catch { return }
        for _ in 0..<5 {
            let batch = workload.batch()
            do {
                try store.commit(batch)
                promises.committed(batch)
            } catch {
                return promises.failed(batch)
            }
        }
    }

    @Test("Wrong use of the store is recorded")
    func misuses() throws {
        let store = SimulatedStore()
        var workload = FaultWorkload(seed: 1)
        _ = try store.loadAll()
        try store.begin()
        try store.commit(workload.batch())
        #expect(store.misuses.isEmpty)
        try store.begin()
        #expect(store.misuses == ["beginning after begun"])
        _ = try store.loadAll()
        #expect(store.misuses.last == "load after begun")
        try store.commit(workload.batch())
        #expect(store.misuses.last == "commit after loaded")
        store.failOperation(store.operations)
        #expect(throws: StoreError.self) { try store.commit(workload.batch()) }
        #expect(store.unresolved == nil)
        try? store.commit(workload.batch())
        #expect(store.misuses.last == "commit after failed")
        _ = store.reopened(keepsUnresolved: false)
        try? store.commit(workload.batch())
        #expect(store.misuses.last == "commit after dead")
    }

    @Test("A batch whose sync failed is found when the disk kept it")
    func unresolved() throws {
        for keeps in [false, true] {
            let store = SimulatedStore()
            store.failOperation(1)
            #expect(throws: StoreError.self) { try store.commit([RecordKey(.clock): [1]]) }
            let next = store.reopened(keepsUnresolved: keeps)
            #expect(try next.loadAll() == (keeps ? [RecordKey(.clock): [1]] : [:]))
        }
    }

    @Test("A broken promise is detected")
    func brokenPromises() {
        var promises = FaultPromises()
        promises.committed([RecordKey(.clock): [1], RecordKey(.device, 1): [2]])
        promises.failed([RecordKey(.clock): [3], RecordKey(.device, 1): [4]])
        #expect(promises.found([RecordKey(.clock): [1]]) != nil)
        #expect(promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [2]]) != nil)
        #expect(promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [4]]) == nil)
        #expect(promises.found([RecordKey(.clock): [1], RecordKey(.device, 1): [2]]) == nil)
        promises.committed([RecordKey(.device, 2): [5]])
        #expect(
            promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [4], RecordKey(.device, 2): [5]]) != nil
        )
        #expect(
            promises.found([RecordKey(.clock): [1], RecordKey(.device, 1): [2], RecordKey(.device, 2): [5]]) == nil
        )
    }
}

@Suite("A start that accepts a loss, and is cut off", .timeLimit(.minutes(15)))
struct AcceptedLossDeathTests {
    /// The number of last operations of a start in which the lost data has already been given up.
    private static let lastOperations = 4

    private func begin(_ disk: SimulatedDisk, acceptsLoss: Bool) throws -> StoreLoss? {
        let journal = try Journal(
            path: FaultSubject.path,
            vfs: disk.vfsName,
            acceptsLoss: acceptsLoss,
            syncFolder: { folder throws(StoreError) in
                guard disk.syncFolder() else { throw StoreError(message: "The folder of \(folder) cannot be synced.") }
            }
        )
        try journal.load { _, _ in }
        return try journal.beginTellingLoss()
    }

    /// Creates a journal of six commits whose log cannot be read. The first three, or none, are in the file.
    private func makeLoss(_ disk: SimulatedDisk, isCopied: Bool) throws {
        let subject = try FaultSubject(disk)
        _ = try subject.store.loadAll()
        try subject.store.begin()
        for number in 0..<6 {
            try subject.store.commit([RecordKey(.clock): [UInt8(number)]])
            if isCopied, number == 2 { try subject.checkpoint() }
        }
        disk.killProcess()
        for offset in 0..<32 { disk.damage("\(FaultSubject.path)-wal", at: offset) }
    }

    @Test(
        "A loss that is not accepted completely is found again at the next start",
        arguments: [SimulatedDisk.Fault.kill, .powerLoss, .ioError, .noSpace],
        [false, true]
    )
    func cutOff(fault: SimulatedDisk.Fault, isCopied: Bool) throws {
        var firstGivenUp: Int?
        var operations = 0
        for number in 0... {
            let disk = SimulatedDisk()
            try self.makeLoss(disk, isCopied: isCopied)
            #expect(throws: StoreError.self) { try self.begin(disk, acceptsLoss: false) }
            disk.failOperation(number, fault)
            let loss = try? self.begin(disk, acceptsLoss: true)
            guard disk.metFault else {
                #expect(loss != nil)
                break
            }
            operations = number + 1
            disk.killProcess()
            disk.count(.changes)
            if firstGivenUp == nil, (try? self.begin(disk, acceptsLoss: false)) != nil { firstGivenUp = number }
        }
        #expect(operations > 0)
        #expect(operations - (firstGivenUp ?? operations) <= Self.lastOperations, "\(operations) operations")
    }
}
