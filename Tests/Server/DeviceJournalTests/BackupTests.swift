import Engine
import Foundation
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("A backup is a separate journal, made during commits")
struct BackupTests {
    @Test("A backup holds the state of one point in time between its start and its end", .timeLimit(.minutes(15)))
    func whileCommitting() throws {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        let thread = try CheckpointThread(journal)
        defer { thread.stop() }
        // Each commit writes its number to two devices that are far apart, and to one that no other commit writes.
        func commit(_ number: Int) throws {
            let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
            let padding = Array(repeating: UInt8(number & 255), count: 1000)
            try journal.commit([(.device(0), bytes), (.device(1_000_000), bytes), (.device(1 + number), padding)])
        }
        var number = 0
        while number < 2000 {
            number += 1
            try commit(number)
        }
        let before = number
        let result = Mutex<Result<Void, any Error>?>(nil)
        let (path, target) = (folder.path, folder.path("copy.sqlite"))
        Thread.detachNewThread {
            let made: Result<Void, any Error> = Result { try JournalBackup.make(of: path, to: target) }
            result.withLock { $0 = made }
        }
        repeat {
            number += 1
            try commit(number)
        } while result.withLock { $0 == nil }
        try result.withLock { $0 }?.get()
        let found = try folder.read("copy.sqlite")
        let held = try #require(found[.device(0)]).reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(before...number ~= held)
        #expect(found[.device(1_000_000)] == found[.device(0)])
        #expect(found.count == held + 2)
        #expect(
            folder.names.filter { $0.hasPrefix("copy") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } == [
                "copy.sqlite"
            ]
        )
        let copy = try Journal(path: folder.path("copy.sqlite"))
        var count = 0
        try copy.load { _, _ in count += 1 }
        #expect(try copy.beginTellingLoss() == nil)
        try copy.commit([(.device(0), [1])])
        #expect(count == held + 2)
    }

    @Test("A backup does not overwrite a file, and a damaged journal is not backed up")
    func refusals() throws {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        try journal.commit([(.device(0), [1])])
        let copy = folder.path("copy.sqlite")
        try JournalBackup.make(of: folder.path, to: copy)
        #expect(throws: StoreError(message: "\(copy) is there already. Name another file for the backup.")) {
            try JournalBackup.make(of: folder.path, to: copy)
        }
        #expect(throws: StoreError.self) {
            try JournalBackup.make(of: folder.path, to: folder.path("none/copy.sqlite"))
        }
        // A dangling symbolic link also counts as an existing file.
        let link = folder.path("link.sqlite")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.path("nowhere"))
        #expect(throws: StoreError.self) { try JournalBackup.make(of: folder.path, to: link) }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == folder.path("nowhere"))
        try folder.change("UPDATE rows SET checksum = 1")
        #expect(throws: StoreError.self) { try JournalBackup.make(of: folder.path, to: folder.path("second.sqlite")) }
        #expect(!folder.names.contains { $0.hasPrefix("second") })
    }

    /// Returns a journal with six commits, a backup of the first five, and a folder with that backup as its journal.
    private static func restored() throws -> (original: JournalFolder, copy: JournalFolder) {
        let (original, copy) = (try JournalFolder(), try JournalFolder())
        let (journal, _) = try original.open()
        for device in 0..<5 { try journal.commit([(.device(device), Array(repeating: 3, count: 500))]) }
        try JournalBackup.make(of: original.path, to: copy.path)
        try journal.commit([(.device(5), [1])])
        return (original, copy)
    }

    @Test("The one file of a backup is complete: a start on it finds every record, and later commits are protected")
    func oneFile() throws {
        let (_, folder) = try Self.restored()
        #expect(folder.names == ["journal.sqlite"])
        let (journal, found) = try folder.open()
        #expect(found.count == 5)
        try journal.commit([(.device(7), [1])])
        for name in ["-wal", "-mark"] { try FileManager.default.removeItem(atPath: folder.path + name) }
        let before = try folder.contents()
        #expect(try #require(try folder.refusal()).contains("is missing"))
        #expect(try folder.contents() == before)
    }

    @Test("A start on a backup may die at any time, and the next one finds everything", arguments: 0..<3)
    func deathInStart(seed: UInt64) throws {
        let (_, folder) = try Self.restored()
        let content = try Data(contentsOf: URL(filePath: folder.path))
        for operation in 0... {
            let disk = SimulatedDisk(seed: seed)
            try Self.put(content, on: disk)
            disk.failOperation(operation, operation % 2 == 0 ? .powerLoss : .kill, seed: seed)
            _ = try? disk.startJournal()
            guard disk.metFault else { return #expect(operation > 5) }
            disk.count(.changes)
            #expect(try disk.startJournal().count == 5, "operation \(operation)")
        }
    }

    private static func put(_ content: Data, on disk: SimulatedDisk) throws {
        var buffer = ByteBuffer()
        buffer.append(Array(content))
        let file = try SQLiteFile(path: "/journal.sqlite", mode: .create, vfs: disk.vfsName)
        try file.write(buffer.view, at: 0)
        try file.sync()
        _ = disk.syncFolder()
    }

    @Test("A backup next to the log or mark of another journal is refused, and nothing is changed", arguments: 1...3)
    func mixed(files: Int) throws {
        let (original, folder) = try Self.restored()
        for (bit, name) in [(1, "-wal"), (2, "-mark")] where files & bit != 0 {
            try FileManager.default.copyItem(atPath: original.path + name, toPath: folder.path + name)
        }
        let before = try folder.contents()
        let message = try #require(try folder.refusal())
        #expect(message.contains("\(folder.path) is a backup") && message.contains("-mark away"), "\(message)")
        #expect(try folder.contents() == before)
    }

    @Test("A truncated backup is refused with its size, and nothing is changed", arguments: [1, 100, 20_000])
    func cut(count: Int) throws {
        let (_, folder) = try Self.restored()
        let whole = try Data(contentsOf: URL(filePath: folder.path))
        try whole.dropLast(count).write(to: URL(filePath: folder.path))
        let before = try folder.contents()
        let message = try #require(try folder.refusal())
        let words = "it is cut off after \(whole.count - count) of \(whole.count) bytes"
        #expect(message.contains(words) && message.contains("--accept-loss"), "\(message)")
        #expect(try folder.contents() == before)
    }

    @Test("A damaged backup is refused or has its full content", arguments: FileDamage.allCases)
    func damaged(damage: FileDamage) throws {
        let (_, folder) = try Self.restored()
        let whole = try Data(contentsOf: URL(filePath: folder.path))
        var random = SeededGenerator(seed: 3)
        for round in 0..<10 {
            for name in folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
            guard let content = damage.applied(to: whole, older: nil, foreign: nil, &random) else { return }
            try content.write(to: URL(filePath: folder.path))
            do {
                #expect(try folder.open().1.count == 5, "\(damage), round \(round)")
            } catch let error as StoreError {
                #expect(error.message.contains(folder.path), "\(error.message)")
            }
        }
    }
}
