import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit
import Wire

/// A folder for one test's journal, removed with the object.
final class JournalFolder {
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    /// Creates a folder with a closed journal that has one commit for each of the first devices.
    convenience init(commits: Int) throws {
        try self.init()
        let (journal, _) = try self.open()
        for device in 0..<commits { try journal.commit([(.device(device), [1])]) }
    }

    var path: String { self.path("journal.sqlite") }

    var markPath: String { self.path + "-mark" }

    func path(_ name: String) -> String {
        "\(self.folder.path)/\(name)"
    }

    /// The names in the folder.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self.folder.path)) ?? []).sorted()
    }

    /// Returns the contents of every file by name, except the shared memory of connections.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in self.names where !name.hasSuffix("-shm") {
            contents[name] = try Data(contentsOf: URL(filePath: self.path(name)))
        }
        return contents
    }

    /// Opens the journal, loads its records, and begins.
    func open(limits: JournalLimits = JournalLimits()) throws -> (Journal, [RecordKey: [UInt8]]) {
        let (journal, records, loss) = try self.open(limits: limits, acceptsLoss: false)
        precondition(loss == nil, "no loss is accepted unasked")
        return (journal, records)
    }

    /// Opens the journal, loads its records and its loss, and begins.
    func open(
        limits: JournalLimits = JournalLimits(),
        acceptsLoss: Bool
    ) throws -> (Journal, [RecordKey: [UInt8]], StoreLoss?) {
        let journal = try Journal(path: self.path, limits: limits, acceptsLoss: acceptsLoss)
        return (journal, try journal.loadAll(), try journal.beginTellingLoss())
    }

    /// Creates an empty journal whose pages have this size, in bytes. Older builds created pages of 16 KiB.
    func makeJournal(pageBytes: Int) throws {
        do { _ = try self.open() }
        let database = try SQLiteDatabase(path: self.path, mode: .readWrite)
        try database.execute("PRAGMA journal_mode = DELETE; PRAGMA page_size = \(pageBytes); VACUUM")
        try database.execute("PRAGMA journal_mode = WAL")
        #expect(try database.integer("PRAGMA page_size") == Int64(pageBytes))
    }

    /// Opens the journal, commits these records, and closes it.
    func commit(_ records: [(RecordKey, [UInt8])]) throws {
        let (journal, _) = try self.open()
        try journal.commit(records)
    }

    /// Returns the records that a reader finds in `name`.
    func read(_ name: String = "journal.sqlite") throws -> [RecordKey: [UInt8]] {
        var records: [RecordKey: [UInt8]] = [:]
        try JournalLoader.load(path: self.path(name)) { key, bytes in records[key] = bytes.array }
        return records
    }

    /// Changes the file with SQL, as a fault or another program would.
    func change(_ sql: String) throws {
        let database = try SQLiteDatabase(path: self.path, mode: .readWrite)
        try database.execute(sql)
    }

    /// Returns the message with which opening or loading the journal is refused; nil if it succeeds.
    func refusal() throws -> String? {
        do {
            _ = try self.open()
            return nil
        } catch let error as StoreError {
            return error.message
        }
    }
}

extension Journal {
    func commit(_ records: [(RecordKey, [UInt8])]) throws(StoreError) {
        var batch = RecordBatch()
        for (key, bytes) in records { batch.append(key) { $0.append(bytes) } }
        try self.commit(batch)
    }
}

extension RecordKey {
    static func device(_ index: Int) -> RecordKey { RecordKey(.device, UInt32(index)) }
}
