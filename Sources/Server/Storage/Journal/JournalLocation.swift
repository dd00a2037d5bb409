import Engine
import Glibc
import Platform

/// The location of a journal and of the files next to it.
struct JournalLocation {
    /// The path of the journal's database file, with all symbolic links resolved. The log and the mark are in the same
    /// folder.
    let path: String
    /// The path in the configuration.
    let configuredPath: String
    /// The name of SQLite's file system layer; nil for the default one.
    let vfs: String?
    /// The file of the delivery log, which is created after the journal; nil if there is none. If it exists, the
    /// journal must exist too.
    let dependentFile: String?
    private let customSync: ((String) throws(StoreError) -> Void)?

    /// - `dependentFile`: the file of the delivery log, which is created after the journal.
    /// - `syncFolder`: syncs the folder that contains a file; nil for the default implementation.
    /// - Throws: an error if the path is a symbolic link without a target.
    init(
        _ path: String,
        vfs: String? = nil,
        dependentFile: String? = nil,
        syncFolder: ((String) throws(StoreError) -> Void)? = nil
    ) throws(StoreError) {
        self.path = vfs == nil ? try Self.target(path) : path
        self.configuredPath = path
        self.vfs = vfs
        self.dependentFile = dependentFile
        self.customSync = syncFolder
    }

    var logPath: String { self.path + "-wal" }
    var markPath: String { JournalMarkFile.path(of: self.path) }
    /// SQLite's rollback journal. It exists only while SQLite creates the file.
    var rollbackPath: String { self.path + "-journal" }

    /// Returns the path with all symbolic links resolved; the path itself if no file exists.
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

    /// Returns the size of a file in bytes; nil if there is none.
    func size(_ path: String) -> Int? {
        // Does not open the file, because closing it would release the locks of SQLite's connections in this process.
        guard self.vfs == nil else { return try? SQLiteFile(path: path, mode: .readOnly, vfs: self.vfs).size() }
        return (try? FileSystem.status(path))?.size
    }

    func syncFolder() throws(StoreError) {
        if let customSync { try customSync(self.path) } else { try JournalFile.syncFolder(of: self.path) }
    }
}

/// Checks that the files of a journal are writable before SQLite opens them. SQLite opens a file without write
/// permission as read-only, and its later errors do not name the cause.
///
/// The process must not have the files open, because closing a file releases all of the process's locks on it.
enum JournalAccess {
    /// - Throws: `StoreError` with the name and the reason if a file is not a regular file or is not writable.
    static func check(_ location: JournalLocation) throws(StoreError) {
        try self.checkKinds(location)
        for path in self.paths(location) { try self.checkFile(path) }
    }

    /// - Throws: `StoreError` if a file is not a regular file, or if the log or the mark is not next to the journal.
    ///   Opening a FIFO would block.
    static func checkKinds(_ location: JournalLocation) throws(StoreError) {
        for path in self.paths(location) + [location.rollbackPath] {
            guard let status = try? FileSystem.linkStatus(path), status.kind != .file else { continue }
            if status.kind == .link {
                throw StoreError(
                    message: "\(path) is a symbolic link, which only \(location.configuredPath) itself may be. Replace "
                        + "the link with the file."
                )
            }
            throw StoreError(message: "\(path) is not a regular file. Move it away, or name another state folder.")
        }
        guard location.configuredPath != location.path else { return }
        for end in ["-wal", "-mark"] {
            try self.checkNotBesideLink(location.configuredPath + end, location.path + end, location)
        }
    }

    /// - Throws: an error if the log or the mark is next to a symbolic link instead of its target.
    private static func checkNotBesideLink(_ path: String, _ target: String, _ location: JournalLocation)
        throws(StoreError)
    {
        guard (try? FileSystem.linkStatus(path)) != nil else { return }
        let (status, other) = (try? FileSystem.status(path), try? FileSystem.status(target))
        guard status == nil || status?.identity != other?.identity else { return }
        throw StoreError(
            message: "\(path) lies next to a symbolic link, and is looked for next to the file it leads to, as "
                + "\(target). Put it back there if it belongs to that file, or move it away."
        )
    }

    private static func paths(_ location: JournalLocation) -> [String] {
        [location.path, location.logPath, location.path + "-shm", location.markPath]
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

/// Detects that a file of an open journal was removed, replaced or truncated.
///
/// The next start would not find writes to a file that was removed or replaced.
struct JournalFileWatch {
    private let paths: [String]
    private var known: [String: FileStatus.Identity] = [:]
    /// The largest size of each file so far, in bytes.
    private var bytes: [String: Int] = [:]

    /// - Parameter location: the location of a journal whose files all exist.
    init(_ location: JournalLocation) {
        self.paths = location.vfs == nil ? [location.path, location.logPath, location.markPath] : []
        for path in self.paths {
            guard let (identity, size) = Self.identityAndSize(path) else { continue }
            self.known[path] = identity
            self.bytes[path] = size
        }
    }

    /// Returns an error if a file was removed or replaced, or is shorter than before; nil if all are intact. In normal
    /// operation, these files never shrink.
    mutating func fault() -> StoreError? {
        for path in self.paths {
            guard let (identity, size) = Self.identityAndSize(path) else { return Self.error(path, "is gone") }
            guard self.known[path, default: identity] == identity else { return Self.error(path, "was replaced") }
            let before = self.bytes[path, default: 0]
            guard size >= before else { return Self.error(path, "was cut off from \(before) to \(size) bytes") }
            self.known[path] = identity
            self.bytes[path] = size
        }
        return nil
    }

    private static func identityAndSize(_ path: String) -> (FileStatus.Identity, Int)? {
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
