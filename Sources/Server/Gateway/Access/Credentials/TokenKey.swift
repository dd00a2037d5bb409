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

    /// Revokes a token; again is as good.
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

    /// The ids that were revoked in a state folder.
    package static func read(in folder: String) throws(CredentialError) -> Set<String> {
        let path = "\(folder)/\(self.name)"
        return try CredentialFile.stamp(path) == nil ? [] : try self.read(path)
    }

    static func read(_ path: String) throws(CredentialError) -> Set<String> {
        Set(try CredentialFile.lines(path, bytesMax: self.fileBytesMax))
    }
}

/// Whether workers are asked who they are, as far as the state remembers it.
///
/// A copy of a state that lacks `token.key` would let everybody in where the gateway that made it asked.
package enum WorkersAsked: Hashable, Sendable {
    /// Workers are asked, and have something to show: from now on the state says so.
    case asked
    /// Workers are not asked, as there is no `token.key` in this folder: refused when the state says that they were.
    case notAsked(folder: String)
    /// Nothing is remembered, and nothing refused: `wakegate dev` asks nobody, and where no token was ever issued but
    /// other machines reach the edge, nobody gets in.
    case unrecorded
}
