import Glibc

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
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CredentialFile.error(path, "cannot be written") }
        // A line that a full disk cut short ends here, and does not swallow this one.
        try CredentialFile.finish(descriptor, writing: isNew ? id : "\n\(id)", path)
        if isNew { try CredentialFile.sync(folder: folder) }
    }

    static func read(_ path: String) throws(CredentialError) -> Set<String> {
        Set(try CredentialFile.lines(path, bytesMax: self.fileBytesMax))
    }
}
