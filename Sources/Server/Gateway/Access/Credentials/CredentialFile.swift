import Glibc
import Platform
package import Wire

/// Reads and writes the small credential files of the state folder.
enum CredentialFile {
    /// The metadata of a file that changes whenever the file changes. It shows a change without reading the file.
    struct Stamp: Hashable {
        let identity: FileStatus.Identity
        let size: Int
        let modified: FileStatus.Moment
        let changed: FileStatus.Moment
    }

    /// Returns the file's current stamp.
    ///
    /// - `isPrivate`: true if only the owner may read or write the file.
    /// - Returns: nil if the file does not exist.
    /// - Throws: if the status cannot be read, or if a private file is accessible to other users.
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
            throw CredentialError(message: "\(path) is not a regular file; put one there.")
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

    /// Returns the file's lines without their newlines. A last line without a newline counts as a line.
    ///
    /// - Throws: if the file cannot be read or is larger than `bytesMax`.
    static func lines(_ path: String, bytesMax: Int) throws(CredentialError) -> [String] {
        let bytes = try self.bytes(path, bytesMax: bytesMax)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Returns the file's bytes.
    ///
    /// - Throws: if the file cannot be read or is larger than `bytesMax`.
    static func bytes(_ path: String, bytesMax: Int) throws(CredentialError) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: bytesMax + 1) } catch {
            throw self.error(path, "cannot be read", error)
        }
        guard let bytes else { throw CredentialError(message: "\(path) is not a regular file; put one there.") }
        guard bytes.count <= bytesMax else {
            throw CredentialError(message: "\(path) is larger than \(bytesMax) bytes; make it smaller.")
        }
        return bytes
    }

    /// Copies a private file to a new path with mode 0600, and syncs the copy to disk.
    ///
    /// - Throws: if the file cannot be read or written, or is accessible to other users.
    static func copy(_ path: String, to copy: String, bytesMax: Int) throws(CredentialError) {
        let bytes = try self.bytes(path, bytesMax: bytesMax)
        do throws(SystemError) {
            let file = try OpenFile(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: 0o600)
            try file.write(bytes)
            try file.sync()
        } catch { throw self.error(copy, "cannot be written", error) }
    }

    /// Opens a file, writes a line and syncs the file to disk.
    ///
    /// If root writes the file, it gets the owner of its folder. The gateway can then read it.
    ///
    /// - `opened`: the path to open. For a draft, it differs from `path`.
    /// - `flags`: flags of `open(2)`.
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

    /// Appends a line to a private file, and syncs it to disk. Creates the file if it does not exist.
    static func append(_ line: String, to path: String, in folder: String) throws(CredentialError) {
        let isNew = try self.stamp(path) == nil
        // A full disk may have truncated the last line. The leading newline ends that line. Symbolic links are refused,
        // because the folder may belong to a user with fewer rights than this process.
        try self.write(isNew ? line : "\n\(line)", to: path, O_APPEND | O_NOFOLLOW, for: path)
        if isNew { try self.sync(folder: folder) }
    }

    /// Replaces the lines of a private file, and syncs them to disk. The file is always complete.
    static func replace(_ path: String, with lines: [String], in folder: String) throws(CredentialError) {
        let draft = "\(path).\(getpid())"
        try? FileSystem.remove(draft)
        defer { try? FileSystem.remove(draft) }
        try self.write(lines.joined(separator: "\n"), to: draft, O_EXCL, for: path)
        do throws(SystemError) { try FileSystem.replaceFile(path, by: draft) } catch {
            throw self.error(path, "cannot be written", error)
        }
        try self.sync(folder: folder)
    }

    /// Syncs the folder's entries to disk.
    static func sync(folder: String) throws(CredentialError) {
        let opened: OpenFile
        do throws(SystemError) { opened = try OpenFile(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } catch {
            throw self.error(folder, "cannot be read", error)
        }
        do throws(SystemError) { try opened.sync() } catch { throw self.error(folder, "cannot be written", error) }
    }

    /// Returns an error with a cause that the system reported.
    static func error(_ path: String, _ what: String, _ cause: SystemError) -> CredentialError {
        CredentialError(message: "\(path) \(what) (\(cause.reason)); \(cause.remedy).")
    }
}

/// A secret of 32 bytes in a file of the state folder with mode 0600. The file has one line of 64 hexadecimal digits.
struct SecretFile {
    static let bytesMax = 4096

    private let path: String
    private let folder: String
    /// The consequence of removing the file, as a clause in error messages.
    private let removal: String

    /// - `folder`: an existing folder.
    /// - `removal`: the consequence of removing the file, as a clause in error messages.
    init(_ name: String, in folder: String, removal: String) {
        self.path = "\(folder)/\(name)"
        self.folder = folder
        self.removal = removal
    }

    /// Returns the secret. Creates it if it does not exist.
    ///
    /// - Throws: if the file is accessible to other users, contains no secret, or cannot be created.
    func make() throws(CredentialError) -> [UInt8] {
        if try CredentialFile.stamp(self.path) == nil { try self.write(Self.draw()) }
        return try self.read()
    }

    /// Returns the secret; nil if it does not exist.
    ///
    /// - Throws: if the file is accessible to other users or contains no secret.
    func find() throws(CredentialError) -> [UInt8]? {
        try CredentialFile.stamp(self.path) == nil ? nil : try self.read()
    }

    /// Creates the file with a secret that `draw` returned.
    ///
    /// - Throws: if the file cannot be created, or if another process has created it in the meantime.
    func save(_ secret: [UInt8]) throws(CredentialError) {
        try self.write(secret)
        guard try self.read() == secret else {
            throw CredentialError(message: "\(self.path) was made by another program just now; start WakeGate again.")
        }
    }

    /// Returns a random secret of 32 bytes.
    static func draw() -> [UInt8] {
        var random = RandomBits()
        return random.bytes(32)
    }

    func read() throws(CredentialError) -> [UInt8] {
        let lines = try CredentialFile.lines(self.path, bytesMax: Self.bytesMax)
        let digits = lines.first.map { $0.utf8.compactMap(\.hexDigitValue) } ?? []
        guard lines.count == 1, lines[0].utf8.count == 64, digits.count == 64 else {
            throw CredentialError(
                message: "\(self.path) is not a key; put back the one that was there, or remove it, \(self.removal)."
            )
        }
        return stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// Writes a draft and then links it under the file's name. The file is therefore always complete. Does not replace
    /// an existing file.
    private func write(_ secret: [UInt8]) throws(CredentialError) {
        let draft = "\(self.path).\(getpid())"
        try? FileSystem.remove(draft)
        defer { try? FileSystem.remove(draft) }
        try CredentialFile.write(secret.hex, to: draft, O_EXCL, for: self.path)
        do throws(SystemError) { try FileSystem.link(draft, orRenameTo: self.path) } catch {
            guard error.number == EEXIST else { throw CredentialFile.error(self.path, "cannot be written", error) }
        }
        try CredentialFile.sync(folder: self.folder)
    }
}

/// The secret files of a state folder. A copied folder without these files would admit callers or reveal data.
package enum SecretFiles {
    /// The names of the files and the maximum size of each in bytes.
    private static let files = [
        (name: TokenKey.name, bytesMax: SecretFile.bytesMax),
        (name: RevokedTokens.name, bytesMax: RevokedTokens.fileBytesMax),
        (name: IssuedTokens.name, bytesMax: IssuedTokens.fileBytesMax),
        (name: HistoryKey.name, bytesMax: SecretFile.bytesMax),
    ]

    package static var names: [String] { self.files.map(\.name) }

    /// Copies the files that exist, each with mode 0600.
    ///
    /// - Throws: if a file cannot be read or written, or is accessible to other users.
    package static func copy(from folder: String, to copy: String) throws(CredentialError) {
        for (name, bytesMax) in self.files where try CredentialFile.stamp("\(folder)/\(name)") != nil {
            try CredentialFile.copy("\(folder)/\(name)", to: "\(copy)/\(name)", bytesMax: bytesMax)
        }
    }
}

/// The key for the numbers of devices and pushes in a state folder's history. The file `history.key` has 32 bytes, of
/// which 16 are used.
///
/// An attacker who knows this key could register a device whose number in the history collides with that of another
/// device.
package enum HistoryKey {
    static let name = "history.key"

    /// Returns the key of a state folder. If the file does not exist, returns a new key, and `save` creates the file
    /// with mode 0600. An existing history has then been written with another key and starts anew.
    ///
    /// - Parameter folder: an existing folder.
    /// - Throws: if the existing file cannot be used.
    package static func prepare(
        in folder: String
    ) throws(CredentialError) -> (key: HashKey, save: @Sendable () throws(CredentialError) -> Void) {
        let file = SecretFile(self.name, in: folder, removal: "with which the history begins anew")
        if let secret = try file.find() { return (self.key(secret), {}) }
        let secret = SecretFile.draw()
        return (self.key(secret), { () throws(CredentialError) in try file.save(secret) })
    }

    static func key(_ secret: [UInt8]) -> HashKey {
        secret.withByteView { HashKey(($0.word(at: 0), $0.word(at: 8))) }
    }

    /// Returns a key for a history that is not stored.
    package static func passing() -> HashKey {
        var random = RandomBits()
        return HashKey(random.pair())
    }
}

/// The secret shared by a webhook and its receiver.
package enum WebhookSecret {
    /// The minimum size in bytes. Signatures with a key of fewer than 128 bits are not secure.
    static let bytesMin = 16
    static let bytesMax = 1024

    /// Reads a secret: the contents of the file without the final newline.
    ///
    /// - Throws: `CredentialError` that names the file and the remedy.
    package static func read(_ path: String) throws(CredentialError) -> [UInt8] {
        let status: FileStatus
        do throws(SystemError) { status = try FileSystem.status(path) } catch {
            throw CredentialFile.error(path, "cannot be read", error)
        }
        guard status.permissions & 0o007 == 0 else {
            throw CredentialError(message: "everybody may use \(path); run: chmod o= \(path)")
        }
        let lines = try CredentialFile.lines(path, bytesMax: self.bytesMax)
        guard lines.count == 1, lines[0].utf8.count >= self.bytesMin else {
            throw CredentialError(
                message: "\(path) is not one line of \(self.bytesMin) to \(self.bytesMax) bytes; "
                    + "run: openssl rand -hex 32 > \(path)"
            )
        }
        return Array(lines[0].utf8)
    }
}

extension [UInt8] {
    /// The bytes as lower-case hexadecimal digits, two per byte.
    var hex: String { self.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
