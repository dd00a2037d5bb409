import Glibc

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
        unsafe access("\(folder)/\(self.name)", F_OK) == 0
    }

    /// The key of a state folder that has one.
    static func read(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).read())
    }

    private static func file(in folder: String) -> SecretFile {
        SecretFile(self.name, in: folder, removal: "which ends every token")
    }
}
