import Engine
import Platform
import Wire

/// The identity and the newest row of a journal. A start compares it with the journal.
///
/// A mark is never ahead of the durable rows. After a crash of the process, it is at most one commit behind. After a
/// power failure, it may lack the commits since its last sync.
struct JournalMark: Hashable {
    /// The text "WkGMark" and the version.
    private static let magic: UInt64 = 0x576B_474D_6172_6B01
    static let bytes = 64

    /// The number of the mark. The mark file has several copies; the one with the highest number is valid.
    var number: UInt64
    /// The journal's random number, which distinguishes it from other journals and from its backups.
    var journal: UInt64
    /// The id of the newest row and its checksum; the id is 0 if there was no row.
    var row: Int64
    var checksum: Int64
    /// The number of commits since the journal began to count them.
    var commits: Int64
    /// The start of the newest commit, in milliseconds since 1970; 0 if there was none.
    var time: Int64

    /// Returns the first mark of a journal whose newest row is at `position`; nil for a journal without rows.
    static func first(number: UInt64, _ position: JournalPosition?) -> JournalMark {
        var random = RandomBits()
        return JournalMark(
            number: number,
            journal: random.next(),
            row: position?.row ?? 0,
            checksum: position?.checksum ?? 0,
            commits: position?.stamp.commits ?? 0,
            time: position?.stamp.time ?? 0
        )
    }

    func store(to buffer: inout ByteBuffer) {
        buffer.removeAll()
        buffer.append(memoryOf: Self.magic.littleEndian)
        buffer.append(memoryOf: self.number.littleEndian)
        buffer.append(memoryOf: self.journal.littleEndian)
        buffer.append(memoryOf: self.row.littleEndian)
        buffer.append(memoryOf: self.checksum.littleEndian)
        buffer.append(memoryOf: self.commits.littleEndian)
        buffer.append(memoryOf: self.time.littleEndian)
        buffer.append(memoryOf: RowChecksum.of(buffer.view, row: 0).littleEndian)
    }
}

extension JournalMark {
    /// - Returns: nil if the bytes are not a mark or are damaged.
    init?(stored bytes: ByteView) {
        guard bytes.count == Self.bytes, bytes.word(at: 0) == Self.magic else { return nil }
        guard bytes.word(at: 56) == UInt64(bitPattern: RowChecksum.of(bytes[0..<56], row: 0)) else { return nil }
        self.init(
            number: bytes.word(at: 8),
            journal: bytes.word(at: 16),
            row: Int64(bitPattern: bytes.word(at: 24)),
            checksum: Int64(bitPattern: bytes.word(at: 32)),
            commits: Int64(bitPattern: bytes.word(at: 40)),
            time: Int64(bitPattern: bytes.word(at: 48))
        )
    }
}

/// The newest row of a journal: its id, its checksum, and its header.
struct JournalPosition: Hashable {
    let row: Int64
    let checksum: Int64
    let stamp: JournalRow.Stamp
}

/// The file next to a journal with three copies of its mark. Each copy is in a separate sector and page.
///
/// The first copy is written after every commit, without a sync. `sync` writes and syncs the second and the third copy
/// alternately. Whichever write a power failure interrupts, one copy remains intact and is not ahead of the journal.
///
/// `@unchecked Sendable`: only the committing thread uses `running`. `syncing` guards `durable` and `nextPlace`, and
/// `lock` guards `mark`.
final class JournalMarkFile: @unchecked Sendable {
    private static let placeBytes = 4096
    private static let places = 3

    /// Returns the path of the mark of the journal at `path`.
    static func path(of path: String) -> String { path + "-mark" }

    private let path: String
    private let running: SQLiteFile
    private var buffer = ByteBuffer()
    private let syncing = Monitor()
    private let durable: SQLiteFile
    private var nextPlace = 1
    private let lock = Monitor()
    private var mark: JournalMark

    /// Opens the mark file of a journal, and makes `mark` durable in it.
    ///
    /// - `isNew`: true to overwrite the file. The caller must then sync the folder.
    init(_ location: JournalLocation, _ mark: JournalMark, isNew: Bool) throws(StoreError) {
        self.path = Self.path(of: location.path)
        self.mark = mark
        let path = self.path
        do throws(SQLiteError) {
            self.running = try SQLiteFile(path: path, mode: isNew ? .create : .readWrite, vfs: location.vfs)
            self.durable = try SQLiteFile(path: path, mode: .readWrite, vfs: location.vfs)
        } catch { throw StoreError(journal: isNew ? location.path : path, error) }
        guard isNew else {
            try self.sync()
            return
        }
        do throws(SQLiteError) {
            // Whole pages are written, because the file should have its final size from the start.
            var content = ByteBuffer()
            mark.store(to: &self.buffer)
            for _ in 0..<Self.places {
                content.append(self.buffer.view)
                content.append([UInt8](repeating: 0, count: Self.placeBytes - self.buffer.count))
            }
            try self.running.write(content.view, at: 0)
            try self.running.sync()
        } catch { throw StoreError(journal: location.path, error) }
    }

    /// Returns the newest mark of the journal; nil if the file is missing or has no valid mark.
    static func read(_ location: JournalLocation) throws(StoreError) -> JournalMark? {
        let path = self.path(of: location.path)
        guard SQLiteFile.exists(path, vfs: location.vfs) else { return nil }
        do throws(SQLiteError) {
            let bytes = try SQLiteFile(path: path, mode: .readOnly, vfs: location.vfs)
                .read(self.places * self.placeBytes, at: 0)
            return bytes.withByteView { bytes in
                (0..<self.places)
                    .compactMap { JournalMark(stored: bytes.slice($0 * self.placeBytes, count: JournalMark.bytes)) }
                    .max { $0.number < $1.number }
            }
        } catch { throw StoreError(journal: path, error) }
    }

    /// Writes the mark of a durable commit and does not sync it.
    func note(row: Int64, checksum: Int64, commits: Int64, time: Int64) throws(StoreError) {
        self.lock.lock()
        self.mark.number += 1
        self.mark.row = row
        self.mark.checksum = checksum
        self.mark.commits = commits
        self.mark.time = time
        self.mark.store(to: &self.buffer)
        self.lock.unlock()
        do throws(SQLiteError) { try self.running.write(self.buffer.view, at: 0) } catch {
            throw StoreError(journal: self.path, error)
        }
    }

    /// Makes the newest mark durable. May be called on any thread.
    func sync() throws(StoreError) {
        self.syncing.lock()
        defer { self.syncing.unlock() }
        self.lock.lock()
        self.mark.number += 1
        let mark = self.mark
        self.lock.unlock()
        do throws(SQLiteError) {
            var buffer = ByteBuffer()
            mark.store(to: &buffer)
            try self.durable.write(buffer.view, at: self.nextPlace * Self.placeBytes)
            try self.durable.sync()
        } catch { throw StoreError(journal: self.path, error) }
        self.nextPlace = self.nextPlace == 1 ? 2 : 1
    }
}

/// The mark inside a backup. A backup has no mark file, so it is a single file.
///
/// The first start on the backup replaces the note with a mark file.
enum JournalNote {
    /// Writes `mark` into a copy that no connection uses, and leaves no other file next to the copy.
    ///
    /// - Throws: `StoreError` if the note cannot be read back.
    static func write(_ mark: JournalMark, in location: JournalLocation) throws(StoreError) {
        try JournalFile.explain(location.path) { () throws(SQLiteError) in
            var buffer = ByteBuffer()
            mark.store(to: &buffer)
            // When the connection closes, it copies the log into the file and removes the log.
            let database = try SQLiteDatabase(path: location.path, mode: .readWrite, vfs: location.vfs)
            try database.execute("BEGIN IMMEDIATE; CREATE TABLE note (mark BLOB NOT NULL)")
            let insertion = try database.prepare("INSERT INTO note VALUES (?1)")
            try insertion.bind(1, buffer.view)
            try insertion.run()
            try database.execute("COMMIT")
        }
        guard Self.read(location) == mark else {
            throw StoreError(damaged: location.path, "what was written to it is not found in it")
        }
    }

    /// Returns the mark in the file itself, without its log; nil if there is none.
    static func read(_ location: JournalLocation) -> JournalMark? {
        // An error means that the file needs its log to be consistent. A file with a log is not a backup.
        guard let database = try? SQLiteDatabase(path: location.path, mode: .fileAlone, vfs: location.vfs),
            let statement = try? database.prepare("SELECT mark FROM note"), (try? statement.step()) == true
        else { return nil }
        return JournalMark(stored: statement.bytes(0))
    }

    /// Removes the note in a separate transaction.
    static func remove(_ database: SQLiteDatabase) throws(SQLiteError) {
        try database.execute("DROP TABLE IF EXISTS note")
    }
}
