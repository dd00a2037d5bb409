import Glibc
import HTTPTransport

/// Reading and writing the small files of the state folder that credentials hang on.
enum CredentialFile {
    /// What tells one state of a file from another without reading it.
    struct Stamp: Hashable {
        let device: dev_t
        let inode: ino_t
        let size: off_t
        let modifiedSeconds: Int
        let modifiedNanoseconds: Int
        let changedSeconds: Int
        let changedNanoseconds: Int
    }

    /// The file's present stamp.
    ///
    /// - Returns: nil when there is no such file.
    /// - Parameter isPrivate: whether nobody else may read or write it.
    /// - Throws: when that cannot be found out, and when others may use a private file.
    static func stamp(_ path: String, isPrivate: Bool = true) throws(CredentialError) -> Stamp? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            guard errno == ENOENT else { throw self.error(path, "cannot be read") }
            guard isPrivate, unsafe lstat(path, &status) == 0 else { return nil }
            throw CredentialError(
                message: "\(path) is a symbolic link that leads to no file; put back what it leads to, or remove it."
            )
        }
        guard !isPrivate || status.st_mode & S_IFMT == S_IFREG else {
            throw CredentialError(message: "\(path) is no ordinary file; put one in its place.")
        }
        guard !isPrivate || status.st_mode & 0o077 == 0 else {
            throw CredentialError(message: "Others may use \(path); run: chmod 600 \(path)")
        }
        return Stamp(
            device: status.st_dev,
            inode: status.st_ino,
            size: status.st_size,
            modifiedSeconds: status.st_mtim.tv_sec,
            modifiedNanoseconds: status.st_mtim.tv_nsec,
            changedSeconds: status.st_ctim.tv_sec,
            changedNanoseconds: status.st_ctim.tv_nsec
        )
    }

    /// The file's lines, without their newlines; an unfinished last line is a line.
    ///
    /// - Throws: when the file cannot be read, or is larger than `bytesMax`.
    static func lines(_ path: String, bytesMax: Int) throws(CredentialError) -> [String] {
        let bytes = try self.bytes(path, bytesMax: bytesMax)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// The file's bytes.
    ///
    /// - Throws: when the file cannot be read, or is larger than `bytesMax`.
    static func bytes(_ path: String, bytesMax: Int) throws(CredentialError) -> [UInt8] {
        let descriptor: Int32
        switch OrdinaryFile.open(path) {
        case .file(let opened): descriptor = opened
        case .notOrdinary: throw CredentialError(message: "\(path) is no ordinary file; put one in its place.")
        case .failed(let error):
            errno = error
            throw self.error(path, "cannot be read")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &chunk, chunk.count)
            guard count >= 0 else { throw self.error(path, "cannot be read") }
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= bytesMax else {
                throw CredentialError(message: "\(path) is larger than \(bytesMax) bytes; make it smaller.")
            }
        }
    }

    /// Copies a private file to where none is, for its owner alone, and has the copy on the disk.
    ///
    /// - Returns: whether there is such a file.
    /// - Throws: when it cannot be read or written, or others may use it.
    static func copy(_ path: String, to copy: String, bytesMax: Int) throws(CredentialError) -> Bool {
        guard try self.stamp(path) != nil else { return false }
        let bytes = try self.bytes(path, bytesMax: bytesMax)
        let descriptor = unsafe open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw self.error(copy, "cannot be written") }
        let count = unsafe write(descriptor, bytes, bytes.count)
        let failure = count == bytes.count && fsync(descriptor) == 0 ? nil : self.error(copy, "cannot be written")
        close(descriptor)
        if let failure { throw failure }
        return true
    }

    /// Writes a line to an open file and has it on the disk; the descriptor is closed in any case.
    ///
    /// What root writes belongs to whom the file's folder belongs: the gateway must be able to read it.
    static func finish(_ descriptor: Int32, writing line: String, _ path: String) throws(CredentialError) {
        let bytes = Array("\(line)\n".utf8)
        let count = unsafe write(descriptor, bytes, bytes.count)
        let isWritten = count == bytes.count && self.giveToOwnerOfFolder(descriptor, path) && fsync(descriptor) == 0
        let failure = isWritten ? nil : self.error(path, "cannot be written")
        close(descriptor)
        if let failure { throw failure }
    }

    private static func giveToOwnerOfFolder(_ descriptor: Int32, _ path: String) -> Bool {
        guard geteuid() == 0 else { return true }
        var folder = stat()
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        return unsafe stat(parent, &folder) == 0 && fchown(descriptor, folder.st_uid, folder.st_gid) == 0
    }

    /// Has the folder's names on the disk.
    static func sync(folder: String) throws(CredentialError) {
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw self.error(folder, "cannot be read") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw self.error(folder, "cannot be written") }
    }

    /// An error with the cause that the system gave last.
    static func error(_ path: String, _ what: String) -> CredentialError {
        let number = errno
        let cause = unsafe String(cString: strerror(number))
        let remedy =
            switch number {
            case ENOSPC, EDQUOT: "free space there"
            case EROFS: "make its file system writable"
            default: "see to its owner and its permissions"
            }
        return CredentialError(message: "\(path) \(what) (\(cause)); \(remedy).")
    }
}
