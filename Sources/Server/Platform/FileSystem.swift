internal import CFiles
internal import Glibc
package import Wire

/// Operations on the names of files and folders.
package enum FileSystem {
    /// Returns the status of the file at `path`, following symbolic links.
    package static func status(_ path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// Returns the status of `path` itself, which may be a symbolic link.
    package static func linkStatus(_ path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// Returns true if `path` exists and this user can see it, following symbolic links.
    package static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// Returns the reason why this process may not read `path`, as a clause; nil if reading is allowed.
    package static func unreadable(_ path: String) -> String? {
        unsafe access(path, R_OK) == 0 ? nil : SystemError.last.reason
    }

    /// - `rights`: a combination of `R_OK`, `W_OK` and `X_OK`.
    /// - Throws: the reason why this process does not have all of these rights.
    package static func checkAccess(_ path: String, _ rights: Int32) throws(SystemError) {
        guard unsafe access(path, rights) == 0 else { throw .last }
    }

    /// Returns the absolute path of the file at `path`, with all symbolic links resolved.
    package static func target(of path: String) throws(SystemError) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard unsafe realpath(path, &buffer) != nil else { throw .last }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns a path with all bytes percent-encoded except letters, digits, `/`, `.`, `-` and `_`.
    package static func percentEncoded(_ path: String) -> String {
        path.utf8.reduce(into: "") { encoded, byte in
            if byte.isLetterOrDigit(or: "/.-_") {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
    }

    /// - `mode`: the permissions, reduced by the process's umask.
    package static func makeFolder(_ path: String, mode: UInt32) throws(SystemError) {
        guard unsafe mkdir(path, mode) == 0 else { throw .last }
    }

    /// Removes a file name. The file itself is removed with its last name.
    package static func remove(_ path: String) throws(SystemError) {
        guard unsafe unlink(path) == 0 else { throw .last }
    }

    /// Removes an empty folder.
    package static func removeFolder(_ path: String) throws(SystemError) {
        guard unsafe rmdir(path) == 0 else { throw .last }
    }

    /// Renames a file, and replaces a file that has the new name.
    ///
    /// If a user chooses the new name, use `replaceFile(_:by:)`.
    package static func rename(_ path: String, to other: String) throws(SystemError) {
        guard unsafe Glibc.rename(path, other) == 0 else { throw .last }
    }

    /// Renames the file `draft` to `path`, which must not exist or must be an ordinary file.
    ///
    /// A symbolic link to an ordinary file is replaced; its target is kept.
    /// - Throws: `SystemError.notOrdinaryFile` if `path` is a device, a pipe or a socket, or a symbolic link to one of
    ///   these or to a missing file.
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

    /// Gives a file an additional name, which must not exist. If the file system has no hard links, renames the file
    /// instead.
    ///
    /// - Throws: `EEXIST` if the name exists.
    package static func link(_ path: String, orRenameTo other: String) throws(SystemError) {
        do throws(SystemError) {
            try self.link(path, to: other)
        } catch {
            guard Self.linkFaults.contains(error.number) else { throw error }
            try self.rename(path, toUnused: other)
        }
    }

    /// The errors if the file system has no hard links or the file has too many.
    private static let linkFaults = [EPERM, EOPNOTSUPP, ENOSYS, EMLINK]
    /// The errors if the file system or the kernel cannot rename without replacing.
    private static let renameFaults = [EINVAL, EOPNOTSUPP, ENOSYS]

    private static func rename(_ path: String, toUnused other: String) throws(SystemError) {
        guard unsafe wakegate_rename_to_unused(path, other) != 0 else { return }
        let error = SystemError.last
        guard self.renameFaults.contains(error.number) else { throw error }
        // An empty file reserves the name, and is then replaced.
        _ = try OpenFile(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
        do throws(SystemError) {
            try self.rename(path, to: other)
        } catch {
            try? self.remove(other)
            throw error
        }
    }

    /// Gives a file an additional name, which must not exist.
    package static func link(_ path: String, to other: String) throws(SystemError) {
        guard unsafe Glibc.link(path, other) == 0 else { throw .last }
    }

    /// Adds a watch for changes of `path` to `inotify`, a descriptor of `inotify_init1`.
    ///
    /// - `events`: the system's flags, such as `IN_CREATE`.
    /// - Returns: the number of the watch, the same for a path that is already watched; -1 on failure.
    package static func watch(_ path: String, _ events: UInt32, on inotify: Int32) -> Int32 {
        unsafe inotify_add_watch(inotify, path, events)
    }

    /// Syncs a folder. New names and renamings then survive a loss of power.
    package static func syncFolder(_ path: String) throws(SystemError) {
        try OpenFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync()
    }

    /// Syncs a folder, if its file system can sync folders. Some network file systems cannot.
    package static func syncFolderIfPossible(_ path: String) throws(SystemError) {
        do throws(SystemError) { try self.syncFolder(path) } catch {
            guard error.number == EINVAL else { throw error }
        }
    }

    /// Returns the number of bytes that this process may still write to the file system of `path`.
    package static func freeBytes(at path: String) throws(SystemError) -> Int64 {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { throw .last }
        return Int64(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).0)
    }

    /// Returns the names in a folder that do not begin with a dot, in no order.
    ///
    /// - `countMax`: the maximum number of names to read.
    /// - Returns: nil if the folder does not exist or may not be read.
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

/// The system's status of a file.
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

    /// The identity of a file, the same for all its names. Files that exist at the same time have different identities.
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
    /// The times of the last change of the content, and of the last change of the content or the metadata.
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

/// An error of a system call.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system's error number, such as `ENOENT`.
    package let number: Int32

    package init(_ number: Int32) {
        self.number = number
    }

    /// The path names a device, a pipe or a socket instead of an ordinary file. Linux uses the number only for optical
    /// disks.
    package static let notOrdinaryFile = SystemError(EMEDIUMTYPE)

    /// The error of the last failed call on this thread.
    static var last: SystemError { SystemError(errno) }

    /// The system's message, such as `No such file or directory`.
    package var message: String {
        self == .notOrdinaryFile ? self.reason : unsafe String(cString: strerror(self.number))
    }

    package var description: String { self.message }

    /// The reason why a file cannot be used, as a clause within a sentence, such as `no such file`.
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

    /// The remedy for this error of a file, as a clause.
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

/// An open file, which is closed when this value ends.
package struct OpenFile: ~Copyable {
    /// The descriptor, for system calls without a method here.
    package let descriptor: Int32

    /// - `flags`: the system's flags, such as `O_RDONLY | O_CLOEXEC`.
    /// - `mode`: the permissions of a new file.
    package init(_ path: String, _ flags: Int32, mode: UInt32 = 0) throws(SystemError) {
        self.descriptor = unsafe open(path, flags, mode)
        guard self.descriptor >= 0 else { throw .last }
    }

    deinit { Glibc.close(self.descriptor) }

    /// Returns the descriptor and leaves the file open.
    package consuming func release() -> Int32 {
        let descriptor = self.descriptor
        discard self
        return descriptor
    }

    /// Closes the file.
    ///
    /// - Throws: errors of earlier writes, which some file systems report only at the close.
    package consuming func close() throws(SystemError) {
        guard Glibc.close(self.release()) == 0 else { throw .last }
    }

    package func status() throws(SystemError) -> FileStatus {
        var status = stat()
        guard unsafe fstat(self.descriptor, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// Returns the bytes from the current position to the end of the file.
    ///
    /// - `bytesMax`: the maximum number of bytes to read.
    package func contents(bytesMax: Int) throws(SystemError) -> [UInt8] {
        try Descriptor.contents(self.descriptor, bytesMax: bytesMax)
    }

    /// Writes all of `bytes` in one call.
    ///
    /// - Throws: `ENOSPC` if only some bytes were written, as on a full disk.
    package func write(_ bytes: [UInt8]) throws(SystemError) {
        guard try Descriptor.write(self.descriptor, bytes) == bytes.count else { throw SystemError(ENOSPC) }
    }

    /// Truncates the file, or extends it with zeros, to `bytes` bytes.
    package func truncate(to bytes: Int) throws(SystemError) {
        try Descriptor.truncate(self.descriptor, to: bytes)
    }

    /// Reserves space for the first `bytes` bytes. Writing them then cannot fail for lack of space.
    package func allocate(_ bytes: Int) throws(SystemError) {
        let error = posix_fallocate(self.descriptor, 0, off_t(bytes))
        guard error == 0 else { throw SystemError(error) }
    }

    /// Moves the current position to a byte.
    package func seek(to byte: Int) throws(SystemError) {
        guard lseek(self.descriptor, off_t(byte), SEEK_SET) >= 0 else { throw .last }
    }

    /// Changes the owner and the group.
    package func give(to owner: UInt32, _ group: UInt32) throws(SystemError) {
        guard fchown(self.descriptor, owner, group) == 0 else { throw .last }
    }

    /// Makes the content durable.
    package func sync() throws(SystemError) {
        guard fsync(self.descriptor) == 0 else { throw .last }
    }
}

/// Calls on descriptors that other code owns. A call interrupted by a signal fails with `EINTR`.
package enum Descriptor {
    /// Makes the content durable.
    package static func sync(_ descriptor: Int32) throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw .last }
    }

    /// Truncates the file, or extends it with zeros, to `bytes` bytes.
    package static func truncate(_ descriptor: Int32, to bytes: Int) throws(SystemError) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw .last }
    }

    /// Closes the descriptor.
    package static func close(_ descriptor: Int32) {
        _ = Glibc.close(descriptor)
    }

    /// Reads up to `buffer.count` bytes into the beginning of `buffer`.
    ///
    /// - Returns: the number of bytes; 0 at the end.
    package static func read(_ descriptor: Int32, into buffer: inout [UInt8]) throws(SystemError) -> Int {
        let count = unsafe buffer.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        guard count >= 0 else { throw .last }
        return count
    }

    /// Returns the bytes from the current position to the end.
    ///
    /// - `bytesMax`: the maximum number of bytes to read.
    package static func contents(_ descriptor: Int32, bytesMax: Int) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: min(bytesMax, 65_536))
        while bytes.count < bytesMax {
            do throws(SystemError) {
                let count = try self.read(descriptor, into: &chunk)
                guard count > 0 else { break }
                bytes += chunk[..<min(count, bytesMax - bytes.count)]
            } catch {
                guard error.number == EINTR else { throw error }
            }
        }
        return bytes
    }

    /// - Returns: the number of bytes written.
    package static func write(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes.buffer.baseAddress, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// - Returns: the number of bytes written.
    package static func write(_ descriptor: Int32, _ bytes: [UInt8]) throws(SystemError) -> Int {
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        guard count >= 0 else { throw .last }
        return count
    }

    /// Opens a placeholder for each closed standard descriptor. Otherwise a file or socket opened later would get the
    /// descriptor and receive the standard output.
    package static func holdStandardOnes() {
        while true {
            let descriptor = unsafe open("/dev/null", O_RDONLY)
            guard descriptor > STDERR_FILENO || descriptor < 0 else { continue }
            if descriptor >= 0 { self.close(descriptor) }
            return
        }
    }

    /// Writes all of `bytes`, and waits as long as needed.
    ///
    /// - Throws: `SystemError` if the rest cannot be written.
    package static func writeWhole(_ descriptor: Int32, _ bytes: ByteView) throws(SystemError) {
        var rest = bytes
        while !rest.isEmpty {
            do throws(SystemError) {
                rest = rest.dropFirst(try self.write(descriptor, rest))
            } catch {
                switch error.number {
                case EINTR: continue
                // Another process that shares the terminal or pipe has made it non-blocking.
                case EAGAIN: self.wait(for: descriptor, .writable, milliseconds: -1)
                case _: throw error
                }
            }
        }
    }

    /// The readiness to wait for.
    package enum Readiness: Hashable, Sendable {
        case readable
        case writable
    }

    /// A descriptor to wait for, and the result.
    package struct Wait: Hashable, Sendable {
        package let descriptor: Int32
        package let readiness: Readiness
        /// True if the descriptor is ready, or if it failed and cannot become ready.
        package fileprivate(set) var isOver = false

        package init(_ descriptor: Int32, _ readiness: Readiness) {
            self.descriptor = descriptor
            self.readiness = readiness
        }

        fileprivate var entry: pollfd {
            pollfd(fd: self.descriptor, events: Int16(self.readiness == .readable ? POLLIN : POLLOUT), revents: 0)
        }
    }

    /// Waits until one of the descriptors is ready, a signal arrives, or the time is up.
    ///
    /// - `milliseconds`: the longest wait; -1 for no limit.
    /// - Returns: true if a descriptor is ready, or if it failed and cannot become ready.
    @discardableResult
    package static func wait(for waits: inout [Wait], milliseconds: Int32) -> Bool {
        var entries = waits.map(\.entry)
        guard unsafe poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return false }
        for (index, entry) in entries.enumerated() { waits[index].isOver = entry.revents != 0 }
        return true
    }

    /// Waits until the descriptor is ready, a signal arrives, or the time is up.
    ///
    /// - `milliseconds`: the longest wait; -1 for no limit.
    /// - Returns: true if the descriptor is ready, or if it failed and cannot become ready.
    @discardableResult
    package static func wait(for descriptor: Int32, _ readiness: Readiness, milliseconds: Int32) -> Bool {
        var entry = Wait(descriptor, readiness).entry
        return unsafe poll(&entry, 1, milliseconds) > 0
    }
}

extension Descriptor {
    /// Opens a pipe whose ends never block, and which child processes do not inherit.
    ///
    /// - Throws: an error if the process has no descriptor left.
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
