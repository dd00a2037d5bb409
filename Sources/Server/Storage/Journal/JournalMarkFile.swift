import Engine
import Platform
import Wire

/// The file beside a journal that holds its mark, three times, each in a sector and page of its own.
///
/// The first place is written after every commit and synced with the rest. The other two are written in turns, and only
/// to be synced at once: whatever a loss of power tears, one of them is whole, and it was not ahead.
///
/// It is `Sendable` without the compiler's proof: the thread that commits alone uses `running`, `syncing` guards
/// `durable` and `nextPlace`, and `lock` guards `mark`.
final class JournalMarkFile: @unchecked Sendable {
    private static let placeBytes = 4096
    private static let places = 3

    /// The path of the mark of the journal at `path`.
    static func path(of path: String) -> String { path + "-mark" }

    private let path: String
    private let running: SQLiteFile
    private var buffer = ByteBuffer()
    private let syncing = Monitor()
    private let durable: SQLiteFile
    private var nextPlace = 1
    private let lock = Monitor()
    private var mark: JournalMark

    /// Opens the file of a journal whose mark is to be `mark`, and makes that durable.
    ///
    /// - Parameter isNew: whatever the file holds is written over; its name is not made durable.
    init(_ place: JournalPlace, _ mark: JournalMark, isNew: Bool) throws(StoreError) {
        self.path = Self.path(of: place.path)
        self.mark = mark
        let path = self.path
        do throws(SQLiteError) {
            self.running = try SQLiteFile(path: path, mode: isNew ? .create : .readWrite, vfs: place.vfs)
            self.durable = try SQLiteFile(path: path, mode: .readWrite, vfs: place.vfs)
        } catch { throw StoreError(journal: isNew ? place.path : path, error) }
        guard isNew else {
            try self.sync()
            return
        }
        do throws(SQLiteError) {
            // Whole places, so that the file has its size from the start.
            var content = ByteBuffer()
            mark.store(to: &self.buffer)
            for _ in 0..<Self.places {
                content.append(self.buffer.view)
                content.append([UInt8](repeating: 0, count: Self.placeBytes - self.buffer.count))
            }
            try self.running.write(content.view, at: 0)
            try self.running.sync()
        } catch { throw StoreError(journal: place.path, error) }
    }

    /// The newest mark of the journal; nil when the file is missing, or holds no whole one.
    static func read(_ place: JournalPlace) throws(StoreError) -> JournalMark? {
        let path = self.path(of: place.path)
        guard SQLiteFile.exists(path, vfs: place.vfs) else { return nil }
        do throws(SQLiteError) {
            let bytes = try SQLiteFile(path: path, mode: .readOnly, vfs: place.vfs)
                .read(self.places * self.placeBytes, at: 0)
            return bytes.withByteView { bytes in
                (0..<self.places)
                    .compactMap { JournalMark(stored: bytes.slice($0 * self.placeBytes, count: JournalMark.bytes)) }
                    .max { $0.number < $1.number }
            }
        } catch { throw StoreError(journal: path, error) }
    }

    /// Notes what a commit that is durable has added, without a sync.
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

    /// Makes the newest mark durable. Any thread.
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
