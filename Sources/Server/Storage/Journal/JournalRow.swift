internal import CXXHash
import Engine
package import Wire

/// The content of a row: what this build writes first of all, and then records, one behind the other.
///
/// Byte 0 is the version, all numbers are little-endian: bytes 1...8 are the id of the oldest row when this one was
/// written, 9...16 the checksum of the row before it, 17...24 the journal's number, 25...32 the number of its commit,
/// 33...40 when that began, in milliseconds since 1970. Rows of version 1 have bytes 0...8 alone.
package enum JournalRow {
    static let version: UInt8 = 2
    /// The bytes before the first record of a row of this version.
    package static let headerBytes = 41
    private static let oldHeaderBytes = 9
    /// The place of the journal's number in a row of this version.
    static let journalOffset = 17

    /// What the header of a row says of the row's place.
    package struct Stamp: Hashable {
        /// The checksum of the row before, so that rows of another journal, or of another past, do not fit; nil when it
        /// is not noted.
        package var previous: Int64?
        /// The journal's number; nil when it is not noted.
        var journal: UInt64?
        /// How many commits the journal has had since it counts them, this one included.
        var commits: Int64 = 0
        /// Milliseconds since 1970; nil when it is not noted.
        var time: Int64?

        /// A stamp of what is noted; nothing else is.
        package init(previous: Int64? = nil, journal: UInt64? = nil, commits: Int64 = 0, time: Int64? = nil) {
            self.previous = previous
            self.journal = journal
            self.commits = commits
            self.time = time
        }
    }

    /// Appends the header of a row whose oldest row is said later.
    package static func appendHeader(_ stamp: Stamp, to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        buffer.append(memoryOf: UInt64(0))
        buffer.append(memoryOf: (stamp.previous ?? 0).littleEndian)
        buffer.append(memoryOf: (stamp.journal ?? 0).littleEndian)
        buffer.append(memoryOf: stamp.commits.littleEndian)
        buffer.append(memoryOf: (stamp.time ?? 0).littleEndian)
    }

    /// Writes into the header that `buffer` begins with the id of the oldest row.
    package static func setFirst(_ first: Int64, in buffer: inout ByteBuffer) {
        buffer.overwrite(memoryOf: first.littleEndian, at: 1)
    }

    /// The id of the oldest row when this one was written.
    static func first(of content: ByteView) -> Int64 {
        Int64(littleEndian: content.load(Int64.self, at: 1))
    }

    static func stamp(of content: ByteView) -> Stamp {
        guard content[0] > 1 else { return Stamp() }
        return Stamp(
            previous: Int64(littleEndian: content.load(Int64.self, at: 9)),
            journal: UInt64(littleEndian: content.load(UInt64.self, at: Self.journalOffset)),
            commits: Int64(littleEndian: content.load(Int64.self, at: 25)),
            time: Int64(littleEndian: content.load(Int64.self, at: 33))
        )
    }

    /// The place of the first record of a row.
    static func recordsOffset(of content: ByteView) -> Int {
        content[0] > 1 ? Self.headerBytes : Self.oldHeaderBytes
    }

    /// What is wrong with the row, as a clause; nil when nothing is.
    static func fault(_ content: ByteView, checksum: Int64, row: Int64) -> String? {
        guard RowChecksum.of(content, row: row) == checksum else { return "the checksum of row \(row) is wrong" }
        guard !content.isEmpty, content.count >= Self.recordsOffset(of: content) else {
            return "row \(row) is too short"
        }
        guard 1...Self.version ~= content[0] else {
            return "row \(row) has version \(content[0]), and this build reads versions up to \(Self.version)"
        }
        return nil
    }
}

/// The checksum of a row: its content cannot change, nor take another row's place, without being noticed.
package enum RowChecksum {
    /// The checksum of a row with this content at the place `row`.
    package static func of(_ content: ByteView, row: Int64) -> Int64 {
        let hash = unsafe XXH3_64bits_withSeed(
            content.buffer.baseAddress,
            content.count,
            XXH64_hash_t(bitPattern: row)
        )
        return Int64(bitPattern: hash)
    }
}

/// The statements a journal runs again and again.
struct JournalTable {
    let database: SQLiteDatabase
    private let beginning: SQLiteStatement
    private let insertion: SQLiteStatement
    private let selection: SQLiteStatement
    private let deletion: SQLiteStatement
    private let ending: SQLiteStatement

    init(_ database: SQLiteDatabase) throws(StoreError) {
        self.database = database
        do throws(SQLiteError) {
            self.beginning = try database.prepare("BEGIN IMMEDIATE")
            self.insertion = try database.prepare("INSERT INTO rows (id, checksum, content) VALUES (?1, ?2, ?3)")
            self.selection = try database.prepare("SELECT checksum, content FROM rows WHERE id = ?1")
            self.deletion = try database.prepare("DELETE FROM rows WHERE id < ?1")
            self.ending = try database.prepare("COMMIT")
        } catch { throw StoreError(journal: database.path, error) }
    }

    func begin() throws(StoreError) {
        try self.run(self.beginning)
    }

    /// - Returns: the row's checksum.
    func insert(_ row: Int64, _ content: ByteView) throws(StoreError) -> Int64 {
        let checksum = RowChecksum.of(content, row: row)
        do throws(SQLiteError) {
            try self.insertion.bind(1, row)
            try self.insertion.bind(2, checksum)
            try self.insertion.bind(3, content)
            try self.insertion.run()
        } catch { throw StoreError(journal: self.database.path, error) }
        return checksum
    }

    /// Hands over the content of a row, whose checksum is right.
    func read(_ row: Int64, _ body: (ByteView) throws(StoreError) -> Void) throws(StoreError) {
        defer { self.selection.reset() }
        do throws(SQLiteError) {
            try self.selection.bind(1, row)
            if try !self.selection.step() { throw SQLiteError(kind: .corrupt, code: 0, message: "row \(row) is gone") }
        } catch { throw StoreError(journal: self.database.path, error) }
        let content = self.selection.bytes(1)
        if let fault = JournalRow.fault(content, checksum: self.selection.integer(0), row: row) {
            throw StoreError(damaged: self.database.path, fault)
        }
        try body(content)
    }

    /// Deletes the rows older than `row`.
    func delete(before row: Int64) throws(StoreError) {
        do throws(SQLiteError) {
            try self.deletion.bind(1, row)
            try self.deletion.run()
        } catch { throw StoreError(journal: self.database.path, error) }
    }

    func commit() throws(StoreError) {
        try self.run(self.ending)
    }

    private func run(_ statement: SQLiteStatement) throws(StoreError) {
        do throws(SQLiteError) { try statement.run() } catch { throw StoreError(journal: self.database.path, error) }
    }
}
