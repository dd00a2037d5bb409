internal import CFiles
internal import Glibc

/// Names of files and folders: what is there, and what becomes of them.
package enum FileSystem {
    /// What is at `path`, behind all symbolic links.
    package static func status(_ path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// What is at `path` itself, be it a symbolic link.
    package static func linkStatus(_ path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// Whether something is at `path`, behind all symbolic links, as far as this user can tell.
    package static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// Whether this process may read what is at `path`.
    package static func isReadable(_ path: String) -> Bool {
        unsafe access(path, R_OK) == 0
    }

    /// Why this process may not read what is at `path`, as a clause; nil when it may.
    package static func unreadable(_ path: String) -> String? {
        do throws(SystemError) {
            try self.checkAccess(path, R_OK)
            return nil
        } catch {
            return error.reason
        }
    }

    /// - `rights`: of `R_OK`, `W_OK` and `X_OK`.
    /// - Throws: why this process has not all of these rights.
    package static func checkAccess(_ path: String, _ rights: Int32) throws(SystemError) {
        guard unsafe access(path, rights) == 0 else { throw .last }
    }

    /// The absolute path of what `path` leads to, behind all symbolic links.
    package static func target(of path: String) throws(SystemError) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard unsafe realpath(path, &buffer) != nil else { throw .last }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// - `mode`: the permissions, less those that the process takes from all that it makes.
    package static func makeFolder(_ path: String, mode: UInt32) throws(SystemError) {
        guard unsafe mkdir(path, mode) == 0 else { throw .last }
    }

    /// Removes the name of a file.
    package static func remove(_ path: String) throws(SystemError) {
        guard unsafe unlink(path) == 0 else { throw .last }
    }

    /// Removes a folder that is empty.
    package static func removeFolder(_ path: String) throws(SystemError) {
        guard unsafe rmdir(path) == 0 else { throw .last }
    }

    /// Gives what is at `path` another name, in place of what has it.
    ///
    /// Use `replaceFile(_:by:)` where a user chooses the other name.
    package static func rename(_ path: String, to other: String) throws(SystemError) {
        guard unsafe Glibc.rename(path, other) == 0 else { throw .last }
    }

    /// Puts the file `draft` in the place of the ordinary file at `path`, or where nothing is.
    ///
    /// A symbolic link to an ordinary file is replaced, and the file that it leads to stays.
    /// - Throws: `SystemError.notOrdinaryFile` if `path` is a device, a pipe, a socket, or a link that leads to one or
    ///   to nothing.
    package static func replaceFile(_ path: String, by draft: String) throws(SystemError) {
        try self.checkReplaceable(path)
        try self.rename(draft, to: path)
    }

    /// Throws the error with which `replaceFile` would refuse `path`.
    package static func checkReplaceable(_ path: String) throws(SystemError) {
        guard (try? self.linkStatus(path)) != nil else { return }
        switch (try? self.status(path))?.kind {
        case .file: ()
        case .folder: throw SystemError(EISDIR)
        case .link, .other, nil: throw .notOrdinaryFile
        }
    }

    /// Gives a file a name that nothing may have. The file keeps its old name as well, unless the file system has no
    /// hard links: then it is renamed.
    ///
    /// - Throws: `EEXIST` if something has the name.
    package static func link(_ path: String, orRenameTo other: String) throws(SystemError) {
        do throws(SystemError) {
            try self.link(path, to: other)
        } catch {
            guard Self.linkFaults.contains(error.number) else { throw error }
            try self.rename(path, toUnused: other)
        }
    }

    /// The errors of a file system without hard links, and of a file that may have no further one.
    private static let linkFaults = [EPERM, EOPNOTSUPP, ENOSYS, EMLINK]
    /// The errors of a file system, or a kernel, that cannot rename to an unused name alone.
    private static let renameFaults = [EINVAL, EOPNOTSUPP, ENOSYS]

    private static func rename(_ path: String, toUnused other: String) throws(SystemError) {
        guard unsafe wakegate_rename_to_unused(path, other) != 0 else { return }
        let error = SystemError.last
        guard self.renameFaults.contains(error.number) else { throw error }
        // An empty file of ours takes the name, and the file takes its place.
        _ = try OpenFile(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
        do throws(SystemError) {
            try self.rename(path, to: other)
        } catch {
            try? self.remove(other)
            throw error
        }
    }

    /// Gives a file one more name, which nothing may have.
    package static func link(_ path: String, to other: String) throws(SystemError) {
        guard unsafe Glibc.link(path, other) == 0 else { throw .last }
    }

    /// Has changes of what is at `path` told to `inotify`, a descriptor of `inotify_init1`.
    ///
    /// - `events`: the system's, such as `IN_CREATE`.
    /// - Returns: the number under which they are told, the same for a place that is watched already; -1 when there is
    ///   none.
    package static func watch(_ path: String, _ events: UInt32, on inotify: Int32) -> Int32 {
        unsafe inotify_add_watch(inotify, path, events)
    }

    /// Has the names in a folder on the disk.
    package static func syncFolder(_ path: String) throws(SystemError) {
        try OpenFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync()
    }

    /// How many bytes this process may still write to the file system that `path` lies on.
    package static func freeBytes(at path: String) throws(SystemError) -> Int64 {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { throw .last }
        return Int64(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).0)
    }

    /// The names in a folder that begin with no dot, in no order.
    ///
    /// - `countMax`: the most that are read.
    /// - Returns: nil when there is no such folder, or it may not be read.
    package static func names(in path: String, countMax: Int) -> [String]? {
        guard let folder = unsafe opendir(path) else { return nil }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while names.count < countMax, let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { field in
                unsafe field.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }
}

/// What the system says of a file.
package struct FileStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// An ordinary file.
        case file
        case folder
        /// A symbolic link.
        case link
        /// A pipe, a socket or a device.
        case other
    }

    /// Two files that are there at one time have not the same identity, and all names of one file have.
    package struct Identity: Hashable, Sendable {
        package let device: UInt64
        package let inode: UInt64
    }

    /// Seconds and nanoseconds since 1970.
    package struct Moment: Hashable, Sendable {
        package let seconds: Int64
        package let nanoseconds: Int64
    }

    package let kind: Kind
    /// The permissions of the owner, of the group and of others: nine bits.
    package let permissions: UInt32
    package let identity: Identity
    package let size: Int
    package let owner: UInt32
    package let group: UInt32
    /// When the content was written last, and when anything of the file was changed.
    package let modified: Moment
    package let changed: Moment

    init(_ status: stat) {
        self.kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            case S_IFLNK: .link
            case _: .other
            }
        self.permissions = status.st_mode & 0o777
        self.identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        self.size = Int(status.st_size)
        self.owner = status.st_uid
        self.group = status.st_gid
        self.modified = Self.moment(status.st_mtim)
        self.changed = Self.moment(status.st_ctim)
    }

    private static func moment(_ time: timespec) -> Moment {
        Moment(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }
}

/// What the system says of a call of ours that failed.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system's number, such as `ENOENT`.
    package let number: Int32

    package init(_ number: Int32) {
        self.number = number
    }

    /// The path is that of a device, a pipe or a socket where an ordinary file was expected. Linux itself uses the
    /// number for optical disks alone.
    package static let notOrdinaryFile = SystemError(EMEDIUMTYPE)

    /// What the call before this one, on this thread, failed with.
    static var last: SystemError { SystemError(errno) }

    /// The cause in the system's words, such as `No such file or directory`.
    package var message: String {
        self == .notOrdinaryFile ? self.reason : unsafe String(cString: strerror(self.number))
    }

    package var description: String { self.message }

    /// Why a file cannot be used, as a clause within a sentence, such as `no such file`.
    package var reason: String {
        switch self.number {
        case ENOENT: "no such file"
        case ENOTDIR: "no such file: a part of its path is no folder"
        case EACCES, EPERM: "permission denied"
        case EISDIR: "it is a folder"
        case EMEDIUMTYPE: "it is no ordinary file, and nothing else is replaced"
        case _: self.message
        }
    }

    /// What is done about a file that cannot be used for this reason, as a clause.
    package var remedy: String {
        switch self.number {
        case ENOENT, ENOTDIR: "name a file that is there"
        case EISDIR: "name a file"
        case EMEDIUMTYPE: "name another file, or move it away"
        case ENOSPC, EDQUOT: "free space there"
        case EROFS: "make its file system writable"
        case _: "see to its owner and its permissions"
        }
    }
}
