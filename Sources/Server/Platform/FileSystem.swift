internal import CFiles
internal import Glibc
package import Wire

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
        case ENOTDIR: "no such file: a part of its path is not a folder"
        case EACCES, EPERM: "permission denied"
        case EISDIR: "it is a folder"
        case EMEDIUMTYPE: "it is not a regular file, and nothing else is replaced"
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

/// A file that is open for as long as this value is there.
package struct OpenFile: ~Copyable {
    /// The system's number of it, for calls that this type has not.
    package let descriptor: Int32

    /// - `flags`: the system's, such as `O_RDONLY | O_CLOEXEC`.
    /// - `mode`: the permissions of a file that is made.
    package init(_ path: String, _ flags: Int32, mode: UInt32 = 0) throws(SystemError) {
        self.descriptor = unsafe open(path, flags, mode)
        guard self.descriptor >= 0 else { throw .last }
    }

    deinit { Glibc.close(self.descriptor) }

    /// Leaves the file open, for whoever has its number.
    package consuming func release() -> Int32 {
        let descriptor = self.descriptor
        discard self
        return descriptor
    }

    /// Closes the file.
    ///
    /// - Throws: what was written before and did not get there, as some file systems find out only now.
    package consuming func close() throws(SystemError) {
        guard Glibc.close(self.release()) == 0 else { throw .last }
    }

    package func status() throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe fstat(self.descriptor, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// The bytes from where the file stands to its end.
    ///
    /// - `bytesMax`: the most that are read.
    package func contents(bytesMax: Int) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: min(bytesMax, 65_536))
        while bytes.count < bytesMax {
            do throws(SystemError) {
                let count = try Descriptor.read(self.descriptor, into: &chunk)
                guard count > 0 else { break }
                bytes += chunk[..<min(count, bytesMax - bytes.count)]
            } catch {
                guard error.number == EINTR else { throw error }
            }
        }
        return bytes
    }

    /// Writes all of `bytes` in one call.
    ///
    /// - Throws: also when only some were taken, as of a disk that is full then: `ENOSPC`.
    package func write(_ bytes: [UInt8]) throws(SystemError) {
        guard try Descriptor.write(self.descriptor, bytes) == bytes.count else { throw SystemError(ENOSPC) }
    }

    /// Cuts the file, or fills it with zeros, to so many bytes.
    package func truncate(to bytes: Int) throws(SystemError) {
        try Descriptor.truncate(self.descriptor, to: bytes)
    }

    /// Reserves the space of the first `bytes` bytes, so that writing them does not fail for want of it.
    package func allocate(_ bytes: Int) throws(SystemError) {
        let error = posix_fallocate(self.descriptor, 0, off_t(bytes))
        guard error == 0 else { throw SystemError(error) }
    }

    /// Goes on at a byte.
    package func seek(to byte: Int) throws(SystemError) {
        guard lseek(self.descriptor, off_t(byte), SEEK_SET) >= 0 else { throw .last }
    }

    /// Makes others its owner and its group.
    package func give(to owner: UInt32, _ group: UInt32) throws(SystemError) {
        guard fchown(self.descriptor, owner, group) == 0 else { throw .last }
    }

    /// Has what was written on the disk.
    package func sync() throws(SystemError) {
        guard fsync(self.descriptor) == 0 else { throw .last }
    }
}

/// Calls on whatever is open under a number, whoever closes it. One that a signal interrupts fails with `EINTR`.
package enum Descriptor {
    /// Has what was written on the disk.
    package static func sync(_ descriptor: Int32) throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw .last }
    }

    /// Cuts the file, or fills it with zeros, to so many bytes.
    package static func truncate(_ descriptor: Int32, to bytes: Int) throws(SystemError) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw .last }
    }

    /// Closes it.
    package static func close(_ descriptor: Int32) {
        _ = Glibc.close(descriptor)
    }

    /// Reads at most as many bytes as `room` has, over its beginning.
    ///
    /// - Returns: how many there were; 0 at the end.
    package static func read(_ descriptor: Int32, into room: inout [UInt8]) throws(SystemError) -> Int {
        let count = unsafe room.withUnsafeMutableBytes { room in
            unsafe Glibc.read(descriptor, room.baseAddress, room.count)
        }
        guard count >= 0 else { throw .last }
        return count
    }

    /// - Returns: how many of the bytes were taken.
    package static func write(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes.buffer.baseAddress, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// - Returns: how many of the bytes were taken.
    package static func write(_ descriptor: Int32, _ bytes: [UInt8]) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// Writes all of `bytes`, however long that takes.
    ///
    /// - Returns: false when nobody takes the rest.
    @discardableResult
    package static func writeAll(_ descriptor: Int32, _ bytes: ByteView) -> Bool {
        do throws(SystemError) {
            try self.writeWhole(descriptor, bytes)
            return true
        } catch {
            return false
        }
    }

    /// Opens nothing to read, and nothing to write, in the place of each standard descriptor that is closed: a file or
    /// a socket that is opened later would get its number, and what is written there.
    package static func holdStandardOnes() {
        while true {
            let descriptor = unsafe open("/dev/null", O_RDONLY)
            guard descriptor > STDERR_FILENO || descriptor < 0 else { continue }
            if descriptor >= 0 { self.close(descriptor) }
            return
        }
    }

    /// Writes all of `bytes`, however long that takes.
    ///
    /// - Throws: `SystemError` when nobody takes the rest.
    package static func writeWhole(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) {
        var rest = bytes
        while !rest.isEmpty {
            do throws(SystemError) {
                rest = rest.dropFirst(try self.write(descriptor, rest))
            } catch {
                switch error.number {
                case EINTR: continue
                // Somebody made the terminal or the pipe, which is theirs as well, not wait.
                case EAGAIN: self.wait(for: descriptor, .writable, milliseconds: -1)
                case _: throw error
                }
            }
        }
    }

    /// What a descriptor is waited for.
    package enum Readiness: Hashable, Sendable {
        case readable
        case writable
    }

    /// A descriptor that is waited for, and what came of it.
    package struct Wait: Hashable, Sendable {
        package let descriptor: Int32
        package let readiness: Readiness
        /// Whether it is ready, or will never be.
        package fileprivate(set) var isOver = false

        package init(_ descriptor: Int32, _ readiness: Readiness) {
            self.descriptor = descriptor
            self.readiness = readiness
        }

        fileprivate var entry: pollfd {
            pollfd(fd: self.descriptor, events: Int16(self.readiness == .readable ? POLLIN : POLLOUT), revents: 0)
        }
    }

    /// Waits until one of the descriptors is ready, a signal comes, or the time is up.
    ///
    /// - `milliseconds`: -1 for ever.
    /// - Returns: whether one is ready, or will never be.
    @discardableResult
    package static func wait(for waits: inout [Wait], milliseconds: Int32) -> Bool {
        var entries = waits.map(\.entry)
        guard unsafe poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return false }
        for (index, entry) in entries.enumerated() { waits[index].isOver = entry.revents != 0 }
        return true
    }

    /// Waits until the descriptor is ready, a signal comes, or the time is up.
    ///
    /// - `milliseconds`: -1 for ever.
    /// - Returns: whether it is ready, or will never be.
    @discardableResult
    package static func wait(for descriptor: Int32, _ readiness: Readiness, milliseconds: Int32) -> Bool {
        var entry = Wait(descriptor, readiness).entry
        return unsafe poll(&entry, 1, milliseconds) > 0
    }
}

extension Descriptor {
    /// Opens a pipe whose ends never block, and which no program that is started inherits.
    ///
    /// - Throws: when the process may open no further descriptors.
    package static func pipe() throws(SystemError) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe Glibc.pipe(&ends) == 0 else { throw .last }
        for end in ends {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        return (ends[0], ends[1])
    }
}
