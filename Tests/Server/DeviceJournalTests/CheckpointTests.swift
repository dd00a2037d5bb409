import Engine
import Foundation
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("Checkpoints run concurrently with commits")
struct CheckpointTests {
    /// Low limits, so that checkpoints, compaction and new logs happen often.
    private static var limits: JournalLimits {
        var limits = JournalLimits()
        limits.checkpointBytes = 128 << 10
        limits.waitBytes = 512 << 10
        limits.restartBytes = 1 << 20
        limits.logBytesMax = 4 << 20
        return limits
    }

    private static func logBytes(_ folder: JournalFolder) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: folder.path + "-wal")[.size] as? Int ?? 0
    }

    @Test("The log restarts while another thread copies it, and no record is lost", .timeLimit(.minutes(15)))
    func secondThread() throws {
        let folder = try JournalFolder()
        var model: [RecordKey: [UInt8]] = [:]
        do {
            let (journal, _) = try folder.open(limits: Self.limits)
            let thread = try CheckpointThread(journal)
            defer { thread.stop() }
            for turn in 0..<1500 {
                let records = (0..<40).map {
                    (RecordKey.device((turn * 37 + $0) % 900), Array(repeating: UInt8(turn & 255), count: 400))
                }
                try journal.commit(records)
                for (key, value) in records { model[key] = value }
            }
            // 1,500 commits of three pages are 37 MB. The limit, a commit and a checkpoint are 5 MB.
            #expect(try Self.logBytes(folder) < 6 << 20)
        }
        #expect(try folder.open().1 == model)
    }

    @Test("Without a second thread commits copy the log themselves", arguments: [8192, 16_384])
    func noThread(pageBytes: Int) throws {
        let folder = try JournalFolder()
        try folder.makeJournal(pageBytes: pageBytes)
        var limits = Self.limits
        // A deletion of rows is a large commit.
        limits.deletionBytes = .max
        let (journal, _) = try folder.open(limits: limits)
        for turn in 0..<300 { try journal.commit([(.device(turn % 50), Array(repeating: 1, count: 3000))]) }
        #expect(try Self.logBytes(folder) < 200 << 10)
    }

    @Test("A checkpoint that fails fails the store: nothing is committed after it, and nothing is lost")
    func failedCheckpoint() throws {
        let disk = SimulatedDisk()
        let asked = Mutex(0)
        let journal = try Journal(path: "/journal.sqlite", vfs: disk.vfsName, limits: Self.limits) { _ in }
        try journal.begin()
        let checkpointer = journal.makeCheckpointer()
        journal.onCheckpointDue = { asked.withLock { $0 += 1 } }
        var turn = 0
        while asked.withLock({ $0 }) == 0 {
            try journal.commit([(.device(turn), [UInt8](repeating: 5, count: 2000))])
            turn += 1
        }
        // The sync of the file, after that of the log.
        disk.failOperation(1, .failedSync)
        #expect(throws: StoreError.self) { try checkpointer.checkpoint() }
        #expect(disk.metFault)
        disk.count(.changes)
        let failure = try #require(journal.failure)
        #expect(throws: failure) { try journal.commit([(.device(0), [1])]) }
        #expect(throws: failure) { try checkpointer.checkpoint() }
        #expect(disk.operations == 0)
        disk.losePower()
        let reopened = try Journal(path: "/journal.sqlite", vfs: disk.vfsName) { _ in }
        var found = 0
        try reopened.load { _, bytes in found += bytes.count == 2000 ? 1 : 0 }
        #expect(found == turn)
    }

    @Test("A power loss at any operation of the start after a failed sync loses no commit", arguments: 1...12)
    func powerLossInStart(seed: UInt64) throws {
        let old = (0..<60).map { (RecordKey.device($0), [UInt8](repeating: 1, count: 1000)) }
        let new = (30..<300).map { (RecordKey.device($0), [UInt8](repeating: 2, count: 1000)) }
        let before = Dictionary(uniqueKeysWithValues: old)
        let after = before.merging(new) { $1 }
        var losses = 0
        while true {
            let disk = SimulatedDisk()
            do {
                let journal = try Journal(path: "/journal.sqlite", vfs: disk.vfsName) { _ in _ = disk.syncFolder() }
                try journal.begin()
                try journal.commit(old)
                // The next commit is the first of a new log, so that no older frame contains the pages it changes.
                try journal.makeCheckpointer().checkpoint()
                try journal.commit([(.device(0), [UInt8](repeating: 1, count: 1000))])
                try journal.makeCheckpointer().checkpoint()
                disk.failOperation(1, .failedSync)
                #expect(throws: StoreError.self) { try journal.commit(new) }
            }
            // The kernel still returns data that is not on disk.
            disk.killProcess()
            disk.failOperation(losses, .powerLoss, seed: seed)
            let begun = try? disk.startJournal()
            guard disk.metFault else { break }
            disk.count(.changes)
            losses += 1
            let found = try disk.startJournal()
            #expect(found == before || found == after, "seed \(seed), operation \(losses)")
            // The state that a start has begun with is durable, even if its last batch was uncertain before.
            #expect(begun == nil || begun == found, "seed \(seed), operation \(losses)")
        }
        #expect(losses > 10)
    }
}
