import Engine
import Foundation
import Glibc
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("A file that is not as it was written is refused, by name")
struct DamageTests {
    /// A journal of several rows, closed, with everything in the file and nothing in the log.
    private static func folder(rows: Int = 6) throws -> JournalFolder {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            for row in 0..<rows {
                try journal.commit((0..<20).map { (.device(row * 10 + $0), Array(repeating: UInt8(row), count: 300)) })
            }
        }
        do {
            let database = try SQLiteDatabase(path: folder.path, mode: .readWrite)
            _ = try database.text("PRAGMA journal_mode = DELETE")
            _ = try database.text("PRAGMA journal_mode = WAL")
        }
        return folder
    }

    @Test(
        "A row that was changed, cut, lost or put elsewhere is refused with the file, the fault and the remedy",
        arguments: [
            (
                "UPDATE rows SET content = substr(content, 1, 500) || x'00' || substr(content, 502) WHERE id = 3",
                "row 3"
            ),
            ("UPDATE rows SET content = substr(content, 1, length(content) - 1) WHERE id = 1", "row 1"),
            ("UPDATE rows SET content = x'' WHERE id = 6", "row 6"),
            ("UPDATE rows SET checksum = checksum + 1 WHERE id = 2", "row 2"),
            ("UPDATE rows SET content = CAST('text' AS TEXT) WHERE id = 2", "row 2"),
            (
                "UPDATE rows SET (checksum, content) = (SELECT checksum, content FROM rows WHERE id = 4) WHERE id = 5",
                "row 5"
            ),
            ("DELETE FROM rows WHERE id = 4", "row 4 is missing"),
            ("DELETE FROM rows WHERE id = 1", "oldest row"),
            ("DELETE FROM rows WHERE id < 6", "oldest row"),
            ("INSERT INTO rows SELECT 7, checksum, content FROM rows WHERE id = 6", "row 7"),
            ("DROP TABLE rows", "no such table"),
        ]
    )
    func changedRow(sql: String, fault: String) throws {
        let folder = try Self.folder()
        #expect(try folder.refusal() == nil)
        try folder.change(sql)
        let message = try #require(try folder.refusal())
        #expect(message.contains(folder.path))
        #expect(message.contains(fault), "\(message)")
        #expect(message.contains("is damaged"), "\(message)")
        #expect(message.hasSuffix("."))
    }

    @Test("A row of another journal is refused, though it is whole and at its own place", arguments: [2, 3, 5])
    func foreignRow(row: Int) throws {
        let (folder, other) = (try Self.folder(), try Self.folder())
        try folder.change(
            """
            ATTACH '\(other.path)' AS other;
            UPDATE rows SET (checksum, content) = (SELECT checksum, content FROM other.rows WHERE id = \(row))
                WHERE id = \(row);
            """
        )
        #expect(try other.refusal() == nil)
        let message = try #require(try folder.refusal())
        #expect(message.contains("row \(row) is not the one that row \(row + 1) was written behind"), "\(message)")
    }

    @Test(
        "A mark that a loss of power tore in its first place is read in another",
        arguments: [14, 30, 38, 46, 63]
    )
    func tornMark(offset: Int) throws {
        let folder = try Self.folder()
        let path = URL(filePath: folder.path + "-mark")
        var bytes = try Data(contentsOf: path)
        bytes[offset] ^= 0x40
        try bytes.write(to: path)
        #expect(try folder.refusal() == nil)
    }

    @Test(
        "What is no file in the place of one is refused by name, and keeps nobody waiting",
        arguments: ["", "-wal", "-shm"],
        [true, false]
    )
    func noFile(name: String, isFolder: Bool) throws {
        let folder = try Self.folder()
        let path = folder.path + name
        unsafe unlink(path)
        #expect(unsafe (isFolder ? mkdir(path, 0o700) : mkfifo(path, 0o600)) == 0)
        let message = try #require(try folder.refusal())
        #expect(message.hasPrefix("\(path) is no ordinary file."), "\(message)")
    }

    @Test("A file that may not be changed is refused with its name, the cause and the remedy", arguments: ["i", "a"])
    func unchangeable(attribute: String) throws {
        let folder = try Self.folder()
        func change(_ sign: String) throws -> Int32 {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/chattr")
            process.arguments = ["\(sign)\(attribute)", folder.path]
            process.standardError = FileHandle.nullDevice
            try process.start()
            process.waitUntilExit()
            return process.terminationStatus
        }
        // Not every file system has attributes, and not every user may set them.
        guard FileManager.default.fileExists(atPath: "/usr/bin/chattr"), try change("+") == 0 else { return }
        let message = try folder.refusal()
        #expect(try change("-") == 0)
        #expect(message?.hasPrefix("\(folder.path) cannot be written (Operation not permitted).") == true)
        #expect(message?.contains("chattr -\(attribute)") == true)
        #expect(try folder.refusal() == nil)
    }

    @Test("Whichever bytes of the file are changed, it is refused or holds what it held", arguments: 0..<4)
    func changedBytes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = try Self.folder()
        let good = try Data(contentsOf: URL(filePath: folder.path))
        let expected = try folder.open().1
        var refusals = 0
        for _ in 0..<150 {
            var bytes = good
            for _ in 0..<random.number(in: 1...4) {
                bytes[random.number(below: bytes.count)] ^= UInt8(1 << random.number(below: 8))
            }
            for name in folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
            try bytes.write(to: URL(filePath: folder.path))
            do {
                #expect(try folder.open().1 == expected, "seed \(seed)")
            } catch let error as StoreError {
                refusals += 1
                #expect(error.message.contains(folder.path), "\(error.message)")
            }
        }
        #expect(refusals > 50)
    }

    @Test("A file that was cut off is refused", arguments: [1, 100, 16384, 30000, 40000])
    func truncated(bytes: Int) throws {
        let folder = try Self.folder()
        let handle = try #require(FileHandle(forWritingAtPath: folder.path))
        let end = try handle.seekToEnd()
        #expect(end > UInt64(bytes))
        try handle.truncate(atOffset: UInt64(bytes))
        try handle.close()
        let message = try #require(try folder.refusal())
        #expect(message.contains(folder.path))
    }

    @Test("A log without its file is not deleted")
    func logAlone() throws {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            try journal.commit([(.device(1), [1])])
        }
        let good = try Data(contentsOf: URL(filePath: folder.path))
        for content in [nil, Data()] {
            try? FileManager.default.removeItem(atPath: folder.path)
            try content?.write(to: URL(filePath: folder.path))
            let message = try #require(try folder.refusal())
            #expect(message.contains("\(folder.path)-wal is not"), "\(message)")
        }
        try good.write(to: URL(filePath: folder.path))
        #expect(try folder.open().1 == [.device(1): [1]])
    }

    @Test("Another format is refused with both numbers and the remedy, and the file does not change")
    func otherFormat() throws {
        let folder = try Self.folder()
        try folder.change("PRAGMA user_version = 3")
        let newer = try #require(try folder.refusal())
        #expect(newer.contains("\(folder.path) has format 3, and this build reads format 2. Install"))
        try folder.change("PRAGMA user_version = 1")
        let older = try #require(try folder.refusal())
        #expect(older.contains("\(folder.path) has format 1, and this build reads format 2. Start commit 50ad6a39"))
        try folder.change("PRAGMA user_version = 2")
        #expect(try folder.open().1.count == 70)
    }

    @Test("A file of another program is refused and left alone")
    func foreignFile() throws {
        let folder = try JournalFolder()
        for sql in ["CREATE TABLE other (a)", "PRAGMA application_id = 77", "PRAGMA user_version = 1"] {
            try? FileManager.default.removeItem(atPath: folder.path)
            do {
                let database = try SQLiteDatabase(path: folder.path, mode: .create)
                try database.execute(sql)
            }
            let before = try Data(contentsOf: URL(filePath: folder.path))
            let message = try #require(try folder.refusal())
            #expect(message.contains("\(folder.path) is not a journal of WakeGate."))
            #expect(try Data(contentsOf: URL(filePath: folder.path)) == before)
            #expect(folder.names == ["journal.sqlite"])
        }
        try Data(repeating: 65, count: 5000).write(to: URL(filePath: folder.path))
        #expect(try folder.refusal()?.contains("is not a journal of WakeGate.") == true)
    }

    @Test("A folder that is not there is named, with what to check")
    func missingFolder() throws {
        let folder = try JournalFolder()
        #expect {
            try Journal(path: folder.path("none/journal.sqlite")).begin()
        } throws: { error in
            let message = (error as? StoreError)?.message ?? ""
            return message.contains("none/journal.sqlite cannot be opened") && message.contains("its folder exists")
        }
    }

    @Test("A reader refuses what the journal refuses")
    func reader() throws {
        let folder = try Self.folder()
        try folder.change("UPDATE rows SET checksum = 0 WHERE id = 2")
        #expect(throws: StoreError.self) { try folder.read() }
    }

    @Test("What compaction copies is checked first: damage never gets a good checksum")
    func damageBeforeCompaction() throws {
        let folder = try Self.folder()
        var limits = JournalLimits()
        limits.compactionFloorBytes = 0
        let (journal, _) = try folder.open(limits: limits)
        try folder.change("UPDATE rows SET content = substr(content, 1, 100) || x'FF' || substr(content, 102)")
        #expect {
            for _ in 0..<100 { try journal.commit([(.device(69), Array(repeating: 1, count: 3000))]) }
        } throws: { error in
            (error as? StoreError)?.message.contains("the checksum of row 1 is wrong") == true
        }
        #expect(journal.failure != nil)
    }
}
