import Engine
import Glibc
import Platform

/// Where a journal lies, and how its files are reached.
struct JournalPlace {
    /// The journal's own file, behind all symbolic links: the log and the mark lie beside it.
    let path: String
    /// The path by which it was named.
    let name: String
    /// The name of SQLite's file system layer; nil for the machine's own.
    let vfs: String?
    /// A file that is first written when the journal has begun; nil when there is none.
    let follower: String?
    private let folderSync: ((String) throws(StoreError) -> Void)?

    /// - Parameters:
    ///   - follower: a file that is first written when the journal has begun.
    ///   - syncFolder: makes the names in the folder of a file durable; nil for the machine's own way.
    /// - Throws: when the path is a link that leads nowhere.
    init(
        _ path: String,
        vfs: String? = nil,
        follower: String? = nil,
        syncFolder: ((String) throws(StoreError) -> Void)? = nil
    ) throws(StoreError) {
        self.path = vfs == nil ? try Self.target(path) : path
        self.name = path
        self.vfs = vfs
        self.follower = follower
        self.folderSync = syncFolder
    }

    var logPath: String { self.path + "-wal" }
    var markPath: String { JournalMarkFile.path(of: self.path) }
    /// What SQLite keeps for going back, while it makes a journal.
    var rollbackPath: String { self.path + "-journal" }

    /// What a path leads to; the path itself when nothing is there.
    private static func target(_ path: String) throws(StoreError) -> String {
        do throws(SystemError) { return try FileSystem.target(of: path) } catch {
            guard (try? FileSystem.linkStatus(path)) != nil else { return path }
            let reason = error.message
            guard error.number != EACCES else {
                throw StoreError(
                    message: "\(path) is a symbolic link that cannot be followed (\(reason)). Let the user that runs "
                        + "WakeGate into the folders it leads through (`namei -l` shows them), or put the file itself "
                        + "back."
                )
            }
            throw StoreError(
                message: "\(path) is a symbolic link that leads to no file (\(reason)). Put back what it leads to, or "
                    + "remove the link and start once with --accept-loss to begin with no state."
            )
        }
    }

    /// The bytes of a file; nil when there is none.
    func size(_ path: String) -> Int? {
        // Not on the machine: closing a file that SQLite has open would let go of its locks.
        guard self.vfs == nil else { return try? SQLiteFile(path: path, mode: .readOnly, vfs: self.vfs).size() }
        return (try? FileSystem.status(path))?.size
    }

    func syncFolder() throws(StoreError) {
        if let folderSync { try folderSync(self.path) } else { try JournalFile.syncFolder(of: self.path) }
    }
}
