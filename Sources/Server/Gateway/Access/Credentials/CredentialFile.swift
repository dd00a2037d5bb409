import Glibc
import Platform
package import Wire

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
            throw CredentialError(message: "\(path) is not a regular file; replace it with one.")
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
        guard let bytes else { throw CredentialError(message: "\(path) is not a regular file; replace it with one.") }
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

/// A secret of 32 bytes in a file of the state folder, made once with mode 0600: one line of 64 hexadecimal digits.
struct SecretFile {
    static let bytesMax = 4096

    private let path: String
    private let folder: String
    /// What becomes of things when the file is removed, as a clause.
    private let removal: String

    /// - Parameters:
    ///   - folder: a folder that is there.
    ///   - removal: what becomes of things when the file is removed, as a clause.
    init(_ name: String, in folder: String, removal: String) {
        self.path = "\(folder)/\(name)"
        self.folder = folder
        self.removal = removal
    }

    /// The secret, made when there is none.
    ///
    /// - Throws: when others may use the file, when it holds no secret, and when it cannot be made.
    func make() throws(CredentialError) -> [UInt8] {
        if try CredentialFile.stamp(self.path) == nil { try self.write(Self.draw()) }
        return try self.read()
    }

    /// The secret; nil when there is none.
    ///
    /// - Throws: when others may use the file, and when it holds no secret.
    func find() throws(CredentialError) -> [UInt8]? {
        try CredentialFile.stamp(self.path) == nil ? nil : try self.read()
    }

    /// Makes the file, with a secret that `draw` gave.
    ///
    /// - Throws: when it cannot be made, and when another one is there by then.
    func save(_ secret: [UInt8]) throws(CredentialError) {
        try self.write(secret)
        guard try self.read() == secret else {
            throw CredentialError(message: "\(self.path) was made by another program just now; start WakeGate again.")
        }
    }

    /// A secret that nobody else has.
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

    /// Writes beside the file first, so that a secret that exists is whole; one that is there by then stays.
    private func write(_ secret: [UInt8]) throws(CredentialError) {
        let draft = "\(self.path).\(getpid())"
        try? FileSystem.remove(draft)
        defer { try? FileSystem.remove(draft) }
        let digits = secret.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try CredentialFile.write(digits, to: draft, O_EXCL, for: self.path)
        do throws(SystemError) { try FileSystem.link(draft, orRenameTo: self.path) } catch {
            guard error.number == EEXIST else { throw CredentialFile.error(self.path, "cannot be written", error) }
        }
        try CredentialFile.sync(folder: self.folder)
    }
}

/// The files of a state folder without which a copy of it would let in, or show, what the folder does not.
package enum SecretFiles {
    /// The names of the files, each with the most bytes it has.
    private static let files = [
        (name: TokenKey.name, bytesMax: SecretFile.bytesMax),
        (name: RevokedTokens.name, bytesMax: RevokedTokens.fileBytesMax),
        (name: IssuedTokens.name, bytesMax: IssuedTokens.fileBytesMax),
        (name: HistoryKey.name, bytesMax: SecretFile.bytesMax),
    ]

    package static var names: [String] { self.files.map(\.name) }

    /// Copies those that there are, each with mode 0600.
    ///
    /// - Throws: when one of them cannot be read or written, or others may use it.
    package static func copy(from folder: String, to copy: String) throws(CredentialError) {
        for file in self.files {
            _ = try CredentialFile.copy("\(folder)/\(file.name)", to: "\(copy)/\(file.name)", bytesMax: file.bytesMax)
        }
    }
}

/// The key that a state folder's history numbers devices and pushes with: `history.key`, 32 bytes of which it takes 16.
///
/// Whoever knew it could register a device under whose number another device's history stands.
package enum HistoryKey {
    static let name = "history.key"

    /// The key of a state folder; where there is none it is drawn, and `save` makes the file with mode 0600. A history
    /// that is there was then written under another key, and begins anew.
    ///
    /// - Parameter folder: a folder that is there.
    /// - Throws: when the file that is there cannot be used.
    package static func prepare(
        in folder: String
    ) throws(CredentialError) -> (key: HashKey, save: @Sendable () throws(CredentialError) -> Void) {
        let file = SecretFile(self.name, in: folder, removal: "with which the history begins anew")
        if let secret = try file.find() { return (self.key(secret), {}) }
        let secret = SecretFile.draw()
        return (self.key(secret), { () throws(CredentialError) in try file.save(secret) })
    }

    private static func key(_ secret: [UInt8]) -> HashKey {
        secret.withByteView { HashKey(($0.word(at: 0), $0.word(at: 8))) }
    }

    /// A key for a history that nobody keeps.
    package static func passing() -> HashKey {
        var random = RandomBits()
        return HashKey(random.pair())
    }
}

/// The secret that a webhook shares with its receiver.
package enum WebhookSecret {
    /// The fewest bytes: 128 bits, as no shorter key is worth signing with.
    static let bytesMin = 16
    static let bytesMax = 1024

    /// Reads a secret: everything in the file but the newline at its end.
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
