import Glibc
import Platform

/// Reading and writing the small files of the state folder that credentials hang on.
enum CredentialFile {
    /// What tells one state of a file from another without reading it.
    struct Stamp: Hashable {
        let identity: FileStatus.Identity
        let size: Int
        let modified: FileStatus.Moment
        let changed: FileStatus.Moment
    }

    /// The file's present stamp.
    ///
    /// - Returns: nil when there is no such file.
    /// - Parameter isPrivate: whether nobody else may read or write it.
    /// - Throws: when that cannot be found out, and when others may use a private file.
    static func stamp(_ path: String, isPrivate: Bool = true) throws(CredentialError) -> Stamp? {
        let status: FileStatus
        do throws(SystemError) { status = try FileSystem.status(path) } catch {
            guard error.number == ENOENT else { throw self.error(path, "cannot be read", error) }
            guard isPrivate, (try? FileSystem.linkStatus(path)) != nil else { return nil }
            throw CredentialError(
                message: "\(path) is a symbolic link that leads to no file; put back what it leads to, or remove it."
            )
        }
        guard !isPrivate || status.kind == .file else {
            throw CredentialError(message: "\(path) is no ordinary file; put one in its place.")
        }
        guard !isPrivate || status.permissions & 0o077 == 0 else {
            throw CredentialError(message: "Others may use \(path); run: chmod 600 \(path)")
        }
        return Stamp(
            identity: status.identity,
            size: status.size,
            modified: status.modified,
            changed: status.changed
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
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: bytesMax + 1) } catch {
            throw self.error(path, "cannot be read", error)
        }
        guard let bytes else { throw CredentialError(message: "\(path) is no ordinary file; put one in its place.") }
        guard bytes.count <= bytesMax else {
            throw CredentialError(message: "\(path) is larger than \(bytesMax) bytes; make it smaller.")
        }
        return bytes
    }

    /// Copies a private file to where none is, for its owner alone, and has the copy on the disk.
    ///
    /// - Returns: whether there is such a file.
    /// - Throws: when it cannot be read or written, or others may use it.
    static func copy(_ path: String, to copy: String, bytesMax: Int) throws(CredentialError) -> Bool {
        guard try self.stamp(path) != nil else { return false }
        let bytes = try self.bytes(path, bytesMax: bytesMax)
        do throws(SystemError) {
            let file = try OpenFile(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: 0o600)
            try file.write(bytes)
            try file.sync()
        } catch { throw self.error(copy, "cannot be written", error) }
        return true
    }

    /// Opens a file, writes a line to it and has it on the disk.
    ///
    /// What root writes belongs to whom the folder of `path` belongs: the gateway must be able to read it.
    ///
    /// - Parameters:
    ///   - opened: the file, which need not have the name yet.
    ///   - flags: the system's.
    static func write(_ line: String, to opened: String, _ flags: Int32, for path: String) throws(CredentialError) {
        do throws(SystemError) {
            let file = try OpenFile(opened, flags | O_WRONLY | O_CREAT | O_CLOEXEC, mode: 0o600)
            try file.write(Array("\(line)\n".utf8))
            if geteuid() == 0 {
                let folder = try FileSystem.status(path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".")
                try file.give(to: folder.owner, folder.group)
            }
            try file.sync()
        } catch { throw self.error(path, "cannot be written", error) }
    }

    /// Has the folder's names on the disk.
    static func sync(folder: String) throws(CredentialError) {
        let opened: OpenFile
        do throws(SystemError) { opened = try OpenFile(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } catch {
            throw self.error(folder, "cannot be read", error)
        }
        do throws(SystemError) { try opened.sync() } catch { throw self.error(folder, "cannot be written", error) }
    }

    /// An error with the cause that the system gave.
    static func error(_ path: String, _ what: String, _ cause: SystemError) -> CredentialError {
        CredentialError(message: "\(path) \(what) (\(cause.reason)); \(cause.remedy).")
    }
}
