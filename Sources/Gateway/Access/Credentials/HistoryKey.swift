package import Bytes
import Platform

/// The key that a state folder's history numbers devices and pushes with: `history.key`, 32 bytes of which it takes 16.
///
/// Whoever knew it could register a device under whose number another device's history stands.
package enum HistoryKey {
    static let name = "history.key"

    /// The key of a state folder, made with mode 0600 when there is none; the history that is there was then written
    /// under another one, and begins anew.
    ///
    /// - Parameter folder: a folder that is there.
    package static func make(in folder: String) throws(CredentialError) -> HashKey {
        let file = SecretFile(self.name, in: folder, removal: "with which the history begins anew")
        let secret = try file.make()
        return secret.withByteView { HashKey(($0.word(at: 0), $0.word(at: 8))) }
    }

    /// A key for a history that nobody keeps.
    package static func passing() -> HashKey {
        var random = RandomBits()
        return HashKey(random.pair())
    }
}
