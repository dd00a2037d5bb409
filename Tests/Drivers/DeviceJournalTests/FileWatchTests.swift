import DeviceEngine
import DeviceJournal
import Foundation
import Synchronization
import Testing

@Suite("A journal's files are what a start will find", .timeLimit(.minutes(15)))
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

    @Test("Taken away, cut or replaced while it runs, they fail the store by name", arguments: changes.indices)
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

    @Test("Behind a symbolic link they are those beside its target, and a link that leads nowhere is refused")
    func link() throws {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            try journal.commit([(.device(1), [1])])
        }
        let other = try JournalFolder()
        try FileManager.default.createSymbolicLink(atPath: other.path, withDestinationPath: folder.path)
        do {
            let (journal, found) = try other.open()
            #expect(found == [.device(1): [1]])
            try journal.commit([(.device(2), [2])])
        }
        #expect(other.names == ["journal.sqlite"])
        try Data().write(to: URL(filePath: folder.path + "-wal"))
        #expect(try other.refusal()?.contains("1 rows of 1 commits are missing") != nil)
        for name in folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        #expect(try other.refusal()?.contains("symbolic link that leads to no file") == true)
    }

    @Test("A mark that is missing, damaged, or another journal's is refused, and nothing is changed")
    func mark() throws {
        let folder = try JournalFolder()
        let other = try JournalFolder()
        for place in [folder, other] {
            let (journal, _) = try place.open()
            for device in 0..<(place === folder ? 5 : 3) { try journal.commit([(.device(device), [1])]) }
        }
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
