import Glibc
import Platform

/// The key that a state folder's bearer tokens are signed with: `token.key`, one line of 64 hexadecimal digits.
package struct TokenKey: Hashable, Sendable {
    static let name = "token.key"

    /// 32 bytes.
    let bytes: [UInt8]

    /// - Returns: nil when `bytes` are not 32.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// The 32 bytes of a secret.
    private init(secret bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The key of a state folder, made with mode 0600 when there is none.
    ///
    /// - Parameter folder: a folder that is there.
    package static func make(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).make())
    }

    /// Whether the folder has a key, good or not.
    package static func exists(in folder: String) -> Bool {
        FileSystem.exists("\(folder)/\(self.name)")
    }

    /// The key of a state folder that has one.
    static func read(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).read())
    }

    private static func file(in folder: String) -> SecretFile {
        SecretFile(self.name, in: folder, removal: "which ends every token")
    }
}

/// The ids of a state folder's revoked tokens: `token.revoked`, one line each.
package enum RevokedTokens {
    static let name = "token.revoked"
    /// About half a million revocations.
    static let fileBytesMax = 16 << 20

    /// Revokes a token, which need not have been issued here; again is as good.
    ///
    /// - Parameters:
    ///   - id: what `BearerToken.isID` takes.
    ///   - folder: a folder that is there.
    package static func add(_ id: String, in folder: String) throws(CredentialError) {
        let path = "\(folder)/\(self.name)"
        let isNew = try CredentialFile.stamp(path) == nil
        if !isNew, try self.read(path).contains(id) { return }
        // No link is followed: the folder may belong to a user who may do less than this one.
        let flags = O_APPEND | O_NOFOLLOW
        // A line that a full disk cut short ends here, and does not swallow this one.
        try CredentialFile.write(isNew ? id : "\n\(id)", to: path, flags, for: path)
        if isNew { try CredentialFile.sync(folder: folder) }
    }

    static func read(_ path: String) throws(CredentialError) -> Set<String> {
        Set(try CredentialFile.lines(path, bytesMax: self.fileBytesMax))
    }
}
