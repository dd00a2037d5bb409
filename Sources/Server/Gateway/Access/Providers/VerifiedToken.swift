import HTTPTransport
import Platform
package import Wire

/// A provider's token whose signature was found to be good.
package final class VerifiedToken {
    /// The key it is signed with, as it was then.
    package let key: ProviderKeyFile
    /// The number of the keys' state in which it was verified.
    let generation: UInt64
    private let bytes: ByteBuffer
    private let token: ProviderToken

    /// Verifies the token that `text` is.
    ///
    /// - Throws: when it cannot be read, its key is not known, is another team's, or did not sign it.
    init(
        _ text: ByteView,
        keys: [String: ProviderKeyFile],
        generation: UInt64
    ) throws(ProviderTokenFault) {
        guard let token = try? ProviderToken(text) else { throw .unreadable }
        guard let key = keys[token.keyID] else { throw .unknownKey(keyID: token.keyID, team: token.team) }
        guard key.team == token.team else { throw .otherTeam(keyID: token.keyID, team: token.team) }
        guard key.key.verifies(text[0..<token.signedCount], signature: token.signature.bytes) else {
            throw .otherKey(keyID: token.keyID, team: token.team)
        }
        self.key = key
        self.generation = generation
        var bytes = ByteBuffer()
        bytes.append(text)
        self.bytes = bytes
        self.token = token
    }

    /// Whether it is the token `text`.
    func isText(_ text: ByteView) -> Bool {
        self.bytes.view.equalsLong(text)
    }

    func isSame(as other: VerifiedToken) -> Bool {
        self.bytes.view == other.bytes.view
    }

    /// Whether its key may push to `topic`. Asked of the token, as a key that is handed out is a copy of many parts.
    package func admits(topic: ByteView) -> Bool {
        self.key.admits(topic: topic)
    }

    /// - Parameter now: milliseconds since 1970.
    func isExpired(now: Int64) -> Bool {
        self.token.isExpired(now: now)
    }
}
