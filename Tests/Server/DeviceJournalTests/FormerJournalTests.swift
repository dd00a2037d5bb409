import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit

@Suite("The copy of a journal of an older format", .timeLimit(.minutes(15)))
struct FormerJournalTests {
    private static let name = "journal.sqlite.format-1"

    /// A journal of format 1, as a process leaves it that is killed.
    private static func folder() throws -> (folder: JournalFolder, records: [RecordKey: [UInt8]]) {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            for number in 0..<20 { try journal.commit([(.device(number), Array(repeating: UInt8(number), count: 99))]) }
            try journal.commit([(.device(3), [1, 2, 3])])
        }
        let records = try folder.read()
        try OldJournal.rewrite(folder.path)
        return (folder, records)
    }

    /// Opens the journal; whether it was taken over, and with which copy.
    private static func begin(_ folder: JournalFolder) throws -> [String] {
        let journal = try Journal(path: folder.path)
        var copies: [String] = []
        journal.onTakeover = { copies.append($0) }
        try journal.load { _, _ in }
        _ = try journal.begin()
        try journal.commit([(.device(20), [7])])
        return copies
    }

    @Test("It is made before the journal is taken over, holds what that held, and goes with the next one that begins")
    func kept() throws {
        let (folder, records) = try Self.folder()
        #expect(try Self.begin(folder) == [folder.path(Self.name)])
        #expect(FormerJournal.path(of: folder.path, format: 1) == folder.path(Self.name))
        #expect(folder.names.filter { $0.hasPrefix(Self.name) } == [Self.name])
        #expect(try folder.read(Self.name) == records)
        #expect(try folder.read().count == records.count + 1)

        // The one file is a state by itself: of the older format, and taken over as the original was.
        let other = try JournalFolder()
        try FileManager.default.copyItem(atPath: folder.path(Self.name), toPath: other.path)
        #expect(try SQLiteDatabase(path: other.path, mode: .fileAlone).integer("PRAGMA user_version") == 1)
        #expect(try other.open().1 == records)

        #expect(try Self.begin(folder).isEmpty)
        #expect(!folder.names.contains { $0.hasPrefix(Self.name) })
        #expect(try folder.read().count == records.count + 1)
    }

    @Test("A journal that is refused, or is not begun on, leaves it there, and a loss that is given up does, too")
    func notBegun() throws {
        let (folder, records) = try Self.folder()
        #expect(try Self.begin(folder).count == 1)
        do {
            let journal = try Journal(path: folder.path)
            try journal.load { _, _ in }
        }
        #expect(folder.names.contains(Self.name))
        let log = URL(filePath: folder.path + "-wal")
        try FileManager.default.removeItem(at: log)
        #expect(try folder.refusal() != nil)
        #expect(folder.names.contains(Self.name))
        #expect(try folder.open(acceptsLoss: true).2 != nil)
        #expect(try folder.read(Self.name) == records)
        #expect(try Self.begin(folder).isEmpty)
        #expect(!folder.names.contains(Self.name))
    }

    @Test("Where it cannot be made the journal is not taken over, and stays as it was")
    func impossible() throws {
        let (folder, records) = try Self.folder()
        try FileManager.default.createDirectory(atPath: folder.path(Self.name), withIntermediateDirectories: false)
        let before = try folder.read()
        let message = try #require(try folder.refusal())
        #expect(message.contains("\(folder.path) has format 1, and cannot be copied to \(folder.path(Self.name))"))
        #expect(!folder.names.contains("journal.sqlite-mark"))
        try FileManager.default.removeItem(atPath: folder.path(Self.name))
        #expect(try folder.read() == before)
        #expect(try folder.open().1 == records)
        #expect(folder.names.contains(Self.name))
    }

    @Test("What a start left of it that was cut off is made anew")
    func cutOff() throws {
        let (folder, records) = try Self.folder()
        try Data(repeating: 65, count: 50_000).write(to: URL(filePath: folder.path(Self.name)))
        try Data(repeating: 66, count: 50_000).write(to: URL(filePath: folder.path(Self.name + "-journal")))
        #expect(try Self.begin(folder).count == 1)
        #expect(folder.names.filter { $0.hasPrefix(Self.name) } == [Self.name])
        #expect(try folder.read(Self.name) == records)
    }
}
