package import Bytes
import Platform

/// The key that a state folder's history numbers devices and pushes with: `history.key`, 32 bytes of which it takes 16.
///
/// Whoever knew it could register a device under whose number another device's history stands.
package enum HistoryKey {
    static let name = "history.key"

    /// The key of a state folder; where there is none it is drawn, and `save` makes the file with mode 0600. The
    /// history that is there was then written under another key, and begins anew.
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
