import Engine
import Foundation
import Storage
import Synchronization
import Testing

@Suite("A journal's files are those that a start will find", .timeLimit(.minutes(15)))
struct FileWatchTests {
    private static let changes: [(String, @Sendable (JournalFolder) throws -> Void)] = [
        ("log removed", { try FileManager.default.removeItem(atPath: $0.path + "-wal") }),
        ("log cut off", { #expect(unsafe truncate($0.path + "-wal", 0) == 0) }),
        ("file removed", { try FileManager.default.removeItem(atPath: $0.path) }),
        ("mark removed", { try FileManager.default.removeItem(atPath: $0.markPath) }),
        (
            "file replaced",
            { folder in
                let content = try Data(contentsOf: URL(filePath: folder.path))
                try content.write(to: URL(filePath: folder.path), options: .atomic)
            }
        ),
    ]

    @Test("A file that is removed, cut or replaced at run time fails the store by name", arguments: changes.indices)
    func takenAway(index: Int) throws {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        try journal.commit([(.device(1), [1])])
        let failed = DispatchSemaphore(value: 0)
        let thread = try CheckpointThread(journal) { _ in failed.signal() }
        defer { thread.stop() }
        let (name, change) = Self.changes[index]
        try change(folder)
        failed.wait()
        let failure = try #require(journal.failure, "\(name)")
        #expect(failure.message.contains(folder.path) && failure.message.contains("while WakeGate runs"))
        #expect(throws: failure) { try journal.commit([(.device(2), [2])]) }
    }

    @Test("A journal behind a symbolic link uses the files next to the target, and a dangling link is refused")
    func link() throws {
        let folder = try JournalFolder()
        try folder.commit([(.device(1), [1])])
        let other = try JournalFolder()
        try FileManager.default.createSymbolicLink(atPath: other.path, withDestinationPath: folder.path)
        do {
            let (journal, found) = try other.open()
            #expect(found == [.device(1): [1]])
            try journal.commit([(.device(2), [2])])
        }
        #expect(other.names == ["journal.sqlite"])
        try Data().write(to: URL(filePath: folder.path + "-wal"))
        #expect(try other.refusal()?.contains("1 rows of 1 commits are missing") == true)
        for name in folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        #expect(try other.refusal()?.contains("symbolic link that leads to no file") == true)
    }

    @Test("A log or mark next to a symbolic link, not to its target, is refused by name", arguments: ["-wal", "-mark"])
    func besideLink(end: String) throws {
        let (folder, other) = (try JournalFolder(), try JournalFolder())
        try folder.commit([(.device(1), [1])])
        try FileManager.default.moveItem(atPath: folder.path, toPath: other.path)
        try FileManager.default.moveItem(atPath: folder.path + end, toPath: other.path + end)
        let rest = end == "-wal" ? "-mark" : "-wal"
        try FileManager.default.createSymbolicLink(atPath: folder.path, withDestinationPath: other.path)
        let message = try #require(try folder.refusal())
        #expect(message.hasPrefix("\(folder.path)\(rest) lies next to a symbolic link"), "\(message)")
        #expect(message.contains("\(other.path)\(rest). Put it back there"), "\(message)")
        try FileManager.default.moveItem(atPath: folder.path + rest, toPath: other.path + rest)
        #expect(try folder.open().1 == [.device(1): [1]])
    }

    @Test("A log or a mark that is a link itself is refused by name", arguments: ["-wal", "-mark"], [true, false])
    func linked(end: String, isDangling: Bool) throws {
        let (folder, other) = (try JournalFolder(), try JournalFolder())
        try folder.commit([(.device(1), [1])])
        try FileManager.default.moveItem(atPath: folder.path + end, toPath: other.path + end)
        let target = other.path + (isDangling ? "-nothing" : end)
        try FileManager.default.createSymbolicLink(atPath: folder.path + end, withDestinationPath: target)
        let message = try #require(try folder.refusal())
        #expect(message.hasPrefix("\(folder.path)\(end) is a symbolic link"), "\(message)")
        #expect(message.contains("Replace the link with the file."), "\(message)")
    }

    @Test("A rollback journal of another program is refused by name, and the journal stays unchanged")
    func rollback() throws {
        let folder = try JournalFolder()
        try folder.commit([(.device(1), [1])])
        try Data(repeating: 7, count: 600).write(to: URL(filePath: folder.path + "-journal"))
        let before = try folder.contents()
        let message = try #require(try folder.refusal())
        #expect(message.hasPrefix("\(folder.path)-journal is not of WakeGate"), "\(message)")
        #expect(message.contains("move the file away"))
        #expect(try folder.contents() == before)
        try FileManager.default.removeItem(atPath: folder.path + "-journal")
        #expect(try folder.open().1 == [.device(1): [1]])
    }

    @Test("A start that was interrupted while it created the file is completed", arguments: [8192, 16_384])
    func interruptedCreation(pageBytes: Int) throws {
        let folder = try JournalFolder()
        do { _ = try folder.open() }
        try FileManager.default.removeItem(atPath: folder.path + "-wal")
        try Data(repeating: 0, count: pageBytes).write(to: URL(filePath: folder.path))
        // SQLite's rollback journal of a file that had no page: magic, no records, a nonce, no pages, and two sizes.
        let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        let header = magic + [UInt8](repeating: 0, count: 12) + [0, 0, 2, 0, 0, 0, UInt8(pageBytes >> 8), 0]
        let sector = Data(header + [UInt8](repeating: 0, count: 512 - header.count))
        try sector.write(to: URL(filePath: folder.path + "-journal"))
        #expect(try folder.open().1.isEmpty)
        #expect(!folder.names.contains("journal.sqlite-journal"))
    }

    @Test("A journal without files is new, and missing if a later file of the gateway exists")
    func missing() throws {
        let folder = try JournalFolder()
        let dependentFile = folder.path("history.sqlite")
        func begin(acceptsLoss: Bool = false) throws -> StoreLoss? {
            let journal = try Journal(path: folder.path, dependentFile: dependentFile, acceptsLoss: acceptsLoss)
            try journal.load { _, _ in }
            return try journal.beginTellingLoss()
        }
        // An empty file does not count as a history.
        try Data().write(to: URL(filePath: dependentFile))
        #expect(try begin() == nil)
        try Data([1]).write(to: URL(filePath: dependentFile))
        #expect(try begin() == nil)
        for name in folder.names where name.hasPrefix("journal") {
            try FileManager.default.removeItem(atPath: folder.path(name))
        }
        #expect(Journal.fault(path: folder.path, dependentFile: dependentFile) != nil)
        let error = try #require(throws: StoreError.self) { try begin() }
        #expect(error.message.contains("it is missing, and \(dependentFile)"), "\(error.message)")
        #expect(error.message.contains("--accept-loss"), "\(error.message)")
        #expect(folder.names == ["history.sqlite"])
        #expect(try begin(acceptsLoss: true)?.file == folder.path)
        #expect(try begin() == nil)
    }

    @Test("A log that belongs to another journal by file and mark is refused, even with accepted loss")
    func foreignLog() throws {
        let folder = try JournalFolder()
        let other = try JournalFolder()
        for device in 0..<5 {
            // Each reopening moves the previous commits from the log into the file.
            let (journal, _) = try folder.open()
            try journal.commit([(.device(device), [1])])
        }
        let (journal, _) = try other.open()
        for device in 0..<9 { try journal.commit([(.device(device), [2])]) }
        let log = folder.path + "-wal"
        try FileManager.default.removeItem(atPath: log)
        try FileManager.default.copyItem(atPath: other.path + "-wal", toPath: log)
        let before = try folder.contents()
        for acceptsLoss in [false, true] {
            #expect {
                _ = try folder.open(acceptsLoss: acceptsLoss)
            } throws: {
                let message = ($0 as? StoreError)?.message ?? ""
                return message.contains("its log, \(log), is of another journal") && message.contains("move that one")
            }
            #expect(try folder.contents() == before)
        }
        try FileManager.default.removeItem(atPath: log)
        let (_, records, loss) = try folder.open(acceptsLoss: true)
        #expect(records.values.allSatisfy { $0 == [1] } && records.count >= 4 && loss?.rows == Int64(5 - records.count))
    }

    @Test("A log and a mark of different journals are reported as different")
    func differentJournals() throws {
        let (folder, other) = (try JournalFolder(commits: 5), try JournalFolder(commits: 3))
        let log = folder.path + "-wal"
        try FileManager.default.removeItem(atPath: log)
        try FileManager.default.copyItem(atPath: other.path + "-wal", toPath: log)
        let message = try #require(try folder.refusal())
        let words = "its log, \(log), and its mark, \(folder.markPath), are of different journals"
        #expect(message.contains(words) && message.contains("--accept-loss"), "\(message)")
    }

    @Test("A missing or damaged mark, or one of another journal, is refused, and nothing is changed")
    func mark() throws {
        let (folder, other) = (try JournalFolder(commits: 5), try JournalFolder(commits: 3))
        let good = try Data(contentsOf: URL(filePath: folder.markPath))
        let marks = [nil, Data(), Data(count: good.count), try Data(contentsOf: URL(filePath: other.markPath))]
        for content in marks {
            try? FileManager.default.removeItem(atPath: folder.markPath)
            try content?.write(to: URL(filePath: folder.markPath))
            let before = try folder.contents()
            let message = try #require(try folder.refusal())
            #expect(message.contains(folder.markPath) && message.contains("--accept-loss"), "\(message)")
            #expect(try folder.contents() == before)
        }
        try good.write(to: URL(filePath: folder.markPath))
        #expect(try folder.open().1.count == 5)
    }
}
