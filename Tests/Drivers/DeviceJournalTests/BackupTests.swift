import Bytes
import DeviceEngine
import DeviceJournal
import Foundation
import Synchronization
import Testing

@Suite("A backup is a journal of its own, made while others commit")
struct BackupTests {
    @Test("It holds one moment between its beginning and its end", .timeLimit(.minutes(15)))
    func whileCommitting() throws {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        let thread = try CheckpointThread(journal)
        defer { thread.stop() }
        // Each commit writes its number to two devices, far apart, and one that only it writes.
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
        let backup = Backup(path: folder.path, copy: folder.path("copy.sqlite"))
        backup.start()
        repeat {
            number += 1
            try commit(number)
        } while !backup.isFinished
        try backup.finish()
        let found = try folder.read("copy.sqlite")
        let held = try #require(found[.device(0)]).reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(before...number ~= held)
        #expect(found[.device(1_000_000)] == found[.device(0)])
        #expect(found.count == held + 2)
        #expect(
            folder.names.filter { $0.hasPrefix("copy") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } == [
                "copy.sqlite", "copy.sqlite-mark",
            ]
        )
        let copy = try Journal(path: folder.path("copy.sqlite"))
        var count = 0
        try copy.load { _, _ in count += 1 }
        #expect(try copy.begin() == nil)
        try copy.commit([(.device(0), [1])])
        #expect(count == held + 2)
    }

    @Test("A file that is there is not written over, and a damaged journal gives no backup")
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
        try folder.change("UPDATE rows SET checksum = 1")
        #expect(throws: StoreError.self) { try JournalBackup.make(of: folder.path, to: folder.path("second.sqlite")) }
        #expect(!folder.names.contains { $0.hasPrefix("second") })
    }

    /// A backup on a thread of its own.
    private final class Backup: Sendable {
        private let path: String
        private let copy: String
        private let result = Mutex<Result<Void, StoreError>?>(nil)

        init(path: String, copy: String) {
            self.path = path
            self.copy = copy
        }

        var isFinished: Bool { self.result.withLock { $0 != nil } }

        func start() {
            let thread = Thread { [self] in
                var result = Result<Void, StoreError>.success(())
                do throws(StoreError) {
                    try JournalBackup.make(of: self.path, to: self.copy)
                } catch { result = .failure(error) }
                self.result.withLock { [result] in $0 = result }
            }
            thread.start()
        }

        func finish() throws {
            try self.result.withLock { $0 }?.get()
        }
    }
}
