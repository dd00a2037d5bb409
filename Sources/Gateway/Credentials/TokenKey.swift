import Bytes
import Glibc

/// The key that a state folder's bearer tokens are signed with: `token.key`, one line of 64 hexadecimal digits.
package struct TokenKey: Hashable, Sendable {
    static let name = "token.key"
    static let fileBytesMax = 4096

    /// 32 bytes.
    let bytes: [UInt8]

    /// - Returns: nil when `bytes` are not 32.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// The key of a state folder, made with mode 0600 when there is none.
    ///
    /// - Parameter folder: a folder that is there.
    package static func make(in folder: String) throws(CredentialError) -> TokenKey {
        let path = "\(folder)/\(self.name)"
        if try CredentialFile.stamp(path) == nil { try self.write(to: path, folder) }
        return try self.read(path)
    }

    /// Whether the folder has a key, good or not.
    package static func exists(in folder: String) -> Bool {
        unsafe access("\(folder)/\(self.name)", F_OK) == 0
    }

    static func read(_ path: String) throws(CredentialError) -> TokenKey {
        let lines = try CredentialFile.lines(path, bytesMax: self.fileBytesMax)
        let digits = lines.first.map { $0.utf8.compactMap(\.hexDigitValue) } ?? []
        guard lines.count == 1, lines[0].utf8.count == 64, digits.count == 64 else {
            throw CredentialError(
                message: "\(path) is no key; put back the one that was there, or remove it, which ends every token."
            )
        }
        let bytes = stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        guard let key = TokenKey(bytes: bytes) else { preconditionFailure("64 digits are 32 bytes") }
        return key
    }

    /// Writes beside the file first, so that a key that exists is whole; one that is there by then stays.
    private static func write(to path: String, _ folder: String) throws(CredentialError) {
        let draft = "\(path).\(getpid())"
        unsafe unlink(draft)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CredentialFile.error(path, "cannot be written") }
        defer { unsafe unlink(draft) }
        var random = RandomBits()
        var bytes: [UInt8] = []
        for _ in 0..<2 {
            let (first, second) = random.next()
            for word in [first, second] { bytes += (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
        }
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try CredentialFile.finish(descriptor, writing: digits, path)
        guard unsafe link(draft, path) == 0 || errno == EEXIST else {
            throw CredentialFile.error(path, "cannot be written")
        }
        try CredentialFile.sync(folder: folder)
    }
}
