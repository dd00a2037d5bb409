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

/// Finds out, before SQLite opens the files of a journal, why it could not write them: it opens what it may not write
/// for reading, and the failures that come of it later name no cause.
///
/// Nothing may have the files open: closing one lets go of the locks that this process has on it.
enum JournalAccess {
    /// - Throws: `StoreError` that names the file that is no ordinary one, or cannot be written, and why.
    static func check(_ place: JournalPlace) throws(StoreError) {
        try self.checkKinds(place)
        for path in self.paths(place) { try self.checkFile(path) }
    }

    /// - Throws: `StoreError` that names the file that is no ordinary one: a pipe would keep whoever opens it waiting;
    ///   or the one that lies where no start looks for it.
    static func checkKinds(_ place: JournalPlace) throws(StoreError) {
        for path in self.paths(place) + [place.rollbackPath] {
            guard let status = try? FileSystem.linkStatus(path), status.kind != .file else { continue }
            if status.kind == .link {
                throw StoreError(
                    message: "\(path) is a symbolic link, which only \(place.name) itself may be. Replace the link "
                        + "with the file."
                )
            }
            throw StoreError(message: "\(path) is not a regular file. Move it away, or name another state folder.")
        }
        guard place.name != place.path else { return }
        for end in ["-wal", "-mark"] { try self.checkStray(place.name + end, place.path + end, place) }
    }

    /// - Throws: when the log or the mark lies beside a link, and not beside the file that it leads to.
    private static func checkStray(_ path: String, _ target: String, _ place: JournalPlace) throws(StoreError) {
        guard (try? FileSystem.linkStatus(path)) != nil else { return }
        let (status, other) = (try? FileSystem.status(path), try? FileSystem.status(target))
        guard status == nil || status?.identity != other?.identity else { return }
        throw StoreError(
            message: "\(path) lies next to a symbolic link, and is looked for next to the file it leads to, as "
                + "\(target). Put it back there if it belongs to that file, or move it away."
        )
    }

    private static func paths(_ place: JournalPlace) -> [String] {
        [place.path, place.logPath, place.path + "-shm", place.markPath]
    }

    private static func checkFile(_ path: String) throws(StoreError) {
        guard FileSystem.exists(path) else { return }
        do throws(SystemError) {
            _ = try OpenFile(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        } catch {
            let remedy =
                switch error.number {
                case EROFS: "Mount the file system it lies on for writing"
                case EPERM: "Take away its attribute (`lsattr` shows it; `chattr -i` or `chattr -a` removes it)"
                case EMFILE, ENFILE: "Raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
                default: "Make the file writable for the user that runs WakeGate"
                }
            throw StoreError(
                message: "\(path) cannot be written (\(error.message)). \(remedy), or name another state folder."
            )
        }
    }
}

/// Sees whether the files of a journal that is open still have their names, and what was written to them.
///
/// A file that was removed or replaced takes everything that is written to it, and a start finds nothing of that.
struct JournalFileWatch {
    private let paths: [String]
    private var known: [String: FileStatus.Identity] = [:]
    /// The most bytes each file was seen to have.
    private var bytes: [String: Int] = [:]

    /// - Parameter place: of a journal whose files have all been made.
    init(_ place: JournalPlace) {
        self.paths = place.vfs == nil ? [place.path, place.logPath, place.markPath] : []
        for path in self.paths {
            guard let (identity, size) = Self.look(path) else { continue }
            self.known[path] = identity
            self.bytes[path] = size
        }
    }

    /// What became of a file; nil when all are as they were. None of them ever becomes shorter by itself.
    mutating func fault() -> StoreError? {
        for path in self.paths {
            guard let (identity, size) = Self.look(path) else { return Self.error(path, "is gone") }
            guard self.known[path, default: identity] == identity else { return Self.error(path, "was replaced") }
            let before = self.bytes[path, default: 0]
            guard size >= before else { return Self.error(path, "was cut off from \(before) to \(size) bytes") }
            self.known[path] = identity
            self.bytes[path] = size
        }
        return nil
    }

    private static func look(_ path: String) -> (FileStatus.Identity, Int)? {
        (try? FileSystem.status(path)).map { ($0.identity, $0.size) }
    }

    private static func error(_ path: String, _ fault: String) -> StoreError {
        StoreError(
            message:
                "\(path) \(fault) while WakeGate runs, and what is written now would be lost. Put it back, or start "
                + "from a backup (`wakegate backup` makes them), then start WakeGate again."
        )
    }
}
