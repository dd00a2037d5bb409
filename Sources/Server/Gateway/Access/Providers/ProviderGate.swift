package import HTTPTransport
import Platform
package import Wire

/// Authenticates the providers of one loop by their tokens.
///
/// A valid token is verified once. For a later request, the gate compares the token with the connection's last token,
/// or performs one dictionary lookup. An invalid token is verified once per connection. Consecutive requests of a
/// connection share the connection's lookup.
package struct ProviderGate {
    /// The maximum number of verified tokens in the cache. If it is exceeded, the cache is cleared.
    private static let tokensMax = 4096

    /// The number of tokens verified so far.
    package private(set) var verificationCount = 0

    private let source: ProviderKeys
    private let environment: APNSEnvironment?
    private let credentials: ConnectionCounts<Credential>
    private let onRefusal: (ProviderTokenFault) -> Void
    private var generation: UInt64
    private var keys: [String: ProviderKeyFile]
    private let hashKey: HashKey
    /// The verified tokens by the hash of their bytes, under a random key.
    private var tokens: [UInt64: VerifiedToken] = [:]
    private var connections: [ConnectionID: ProviderConnection] = [:]
    /// The connection of the latest lookup.
    private var latest: (id: ConnectionID, shown: ProviderConnection)?

    /// Creates a gate that has not seen any token.
    ///
    /// - `environment`: the environment of the gateway, which a key with an environment must match; nil to accept all
    ///   keys.
    /// - `credentials`: the counts of connections by key.
    /// - `onRefusal`: receives the reason if a token is invalid, once for each connection and token.
    package init(
        _ keys: ProviderKeys,
        environment: APNSEnvironment? = nil,
        credentials: ConnectionCounts<Credential> = ConnectionCounts(connectionsMax: 0),
        onRefusal: @escaping (ProviderTokenFault) -> Void = { _ in }
    ) {
        self.onRefusal = onRefusal
        self.credentials = credentials
        self.source = keys
        self.environment = environment
        var random = RandomBits()
        self.hashKey = HashKey(random.pair())
        (self.generation, self.keys) = keys.current()
    }

    /// Returns the verified token of a request.
    ///
    /// - `authorization`: the value of the header field; nil if it is absent.
    /// - `now`: milliseconds since 1970.
    /// - Returns: the token, which determines the topics of the pushes that the request may send.
    /// - Throws: the reason why the request is refused.
    package mutating func token(
        _ authorization: ByteView?,
        on connection: ConnectionID,
        now: Int64
    ) throws(APNSReason) -> VerifiedToken {
        if self.source.generation != self.generation {
            (self.generation, self.keys) = self.source.current()
            self.tokens.removeAll()
        }
        let known = self.known(connection)
        if let known, let expired = known.expiredToken {
            let text = try? ProviderToken.text(inAuthorization: authorization)
            if let text, self.hashKey.hash(text) != expired { known.hasChangedInVain = true }
            throw .expiredProviderToken
        }
        let text = try ProviderToken.text(inAuthorization: authorization)
        if let last = known?.token, last.generation == self.generation, last.isText(text), !last.isExpired(now: now) {
            return last
        }
        let shown = known ?? ProviderConnection()
        if known == nil { self.connections[connection] = shown }
        let token = try self.verified(text, on: shown, now: now)
        guard !token.isExpired(now: now) else {
            shown.expiredToken = self.hashKey.hash(text)
            throw .expiredProviderToken
        }
        if let own = self.environment, let other = token.key.environment, own != other {
            throw .badEnvironmentKeyIdInToken
        }
        try self.count(token.key, on: shown)
        do throws(APNSReason) { try shown.tokenShown(token, now: now) } catch {
            let key = token.key
            if error == .invalidProviderToken { self.onRefusal(.secondTeam(keyID: key.keyID, team: key.team)) }
            throw error
        }
        return token
    }

    /// Returns true if a connection has shown another token after an expired one. The client then needs another
    /// connection.
    package func hasChangedInVain(_ connection: ConnectionID) -> Bool {
        self.connections[connection]?.hasChangedInVain ?? false
    }

    /// Returns the state of the connection; nil if the connection has shown no token.
    @inline(__always)
    private mutating func known(_ connection: ConnectionID) -> ProviderConnection? {
        if let latest, latest.id.index == connection.index, latest.id.generation == connection.generation {
            return latest.shown
        }
        guard let known = self.connections[connection] else { return nil }
        self.latest = (connection, known)
        return known
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        if self.latest?.id == connection { self.latest = nil }
        let closed = self.connections.removeValue(forKey: connection)
        if let credential = closed?.credential { self.credentials.end(credential) }
    }

    /// Counts a connection under the key of its latest token.
    ///
    /// - Throws: `tooManyRequests` if the key has the maximum number of connections.
    private func count(_ key: ProviderKeyFile, on connection: ProviderConnection) throws(APNSReason) {
        let credential = Credential.providerKey(team: key.team, keyID: key.keyID)
        guard connection.credential != credential else { return }
        guard self.credentials.begin(credential) else { throw .tooManyRequests }
        if let before = connection.credential { self.credentials.end(before) }
        connection.credential = credential
    }

    private mutating func verified(
        _ text: ByteView,
        on connection: ProviderConnection,
        now: Int64
    ) throws(APNSReason) -> VerifiedToken {
        let hash = self.hashKey.hash(text)
        if let token = self.tokens[hash], token.isText(text) { return token }
        try connection.refused.admit(hash, generation: self.generation, now: now)
        self.verificationCount += 1
        let token: VerifiedToken
        do throws(ProviderTokenFault) {
            token = try VerifiedToken(text, keys: self.keys, generation: self.generation)
        } catch {
            connection.refused.append(hash, now: now)
            self.onRefusal(error)
            throw .invalidProviderToken
        }
        if self.tokens.count >= Self.tokensMax { self.tokens.removeAll(keepingCapacity: true) }
        self.tokens[hash] = token
        return token
    }
}

/// A provider's token whose signature was verified.
package final class VerifiedToken {
    /// The key that signed the token, in its version at the verification.
    package let key: ProviderKeyFile
    /// The generation of the keys with which the token was verified.
    let generation: UInt64
    private let bytes: ByteBuffer
    private let token: ProviderToken

    /// Verifies the token `text`.
    ///
    /// - Throws: if the token cannot be parsed; if its key is unknown, belongs to another team, or did not sign it.
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

    /// Returns true if the token's text is `text`.
    func isText(_ text: ByteView) -> Bool {
        self.bytes.view.equalsLong(text)
    }

    func isSame(as other: VerifiedToken) -> Bool {
        self.bytes.view == other.bytes.view
    }

    /// Returns true if the token's key may push to `topic`. This method avoids a copy of the key, which has many
    /// members.
    package func admits(topic: ByteView) -> Bool {
        self.key.admits(topic: topic)
    }

    /// - Parameter now: milliseconds since 1970.
    func isExpired(now: Int64) -> Bool {
        self.token.isExpired(now: now)
    }
}

/// The invalid tokens that one connection has shown.
///
/// An invalid token is verified once per connection and generation of the keys, because a verification costs as much as
/// twenty pushes. If a connection shows many invalid tokens, it is limited to one verification per second.
struct RefusedTokens {
    /// The maximum number of stored hashes. A client has one or two invalid tokens.
    private static let hashesMax = 4
    /// The number of failed verifications after which the rate limit applies.
    private static let burst = 32
    /// The minimum interval between verifications under the rate limit, in milliseconds.
    private static let spacing: Int64 = 1000

    /// The hashes of the tokens, under a random key. The oldest hash is dropped first.
    private var hashes: [UInt64] = []
    private var count = 0
    private var lastAt: Int64 = 0
    /// The generation of the keys with which the tokens were refused.
    private var generation: UInt64 = 0

    /// Admits a token to the verification.
    ///
    /// - `now`: milliseconds since 1970.
    /// - Throws: `invalidProviderToken` if the token's verification has failed before; `tooManyProviderTokenUpdates` if
    ///   the rate limit prevents the verification. The token may then be valid.
    mutating func admit(_ hash: UInt64, generation: UInt64, now: Int64) throws(APNSReason) {
        if generation != self.generation {
            self = RefusedTokens()
            self.generation = generation
        }
        guard !self.hashes.contains(hash) else { throw .invalidProviderToken }
        // If the clock was set back, the wait must not become longer.
        guard self.count < Self.burst || abs(now - self.lastAt) >= Self.spacing else {
            throw .tooManyProviderTokenUpdates
        }
    }

    /// Records a token whose verification failed.
    mutating func append(_ hash: UInt64, now: Int64) {
        if self.hashes.count == Self.hashesMax { self.hashes.removeFirst() }
        self.hashes.append(hash)
        self.count += 1
        self.lastAt = now
    }
}

/// The tokens that a provider's connection has shown.
final class ProviderConnection {
    /// The minimum interval between two changes of the token, in milliseconds.
    static let changeInterval: Int64 = 1_200_000

    /// The hash of the expired token that the connection has shown; nil if it has shown none. As at APNs, the
    /// connection accepts no push after an expired token.
    var expiredToken: UInt64?
    /// True if the connection has shown another token after the expired one. It accepts no token, so the client would
    /// retry forever.
    var hasChangedInVain = false
    /// The invalid tokens that the connection has shown.
    var refused = RefusedTokens()
    /// The credential under which the connection is counted.
    var credential: Credential?
    /// The latest accepted token.
    private(set) var token: VerifiedToken?
    /// The token before `token`. Requests that were sent before the change may still show it.
    private var previous: VerifiedToken?
    /// The time of the latest change of the token, in milliseconds since 1970; nil before the first change.
    private var changedAt: Int64?

    /// Accepts a token if the rules for a connection permit it.
    ///
    /// The first change of the token is permitted at any time. Later changes must be at least 20 minutes apart.
    /// - `now`: milliseconds since 1970.
    /// - Throws: `invalidProviderToken` if the token is of another team, `unrelatedKeyIdInToken` if its key is for
    ///   other topics, and `tooManyProviderTokenUpdates`.
    func tokenShown(_ token: VerifiedToken, now: Int64) throws(APNSReason) {
        if let last = self.token, !last.isSame(as: token) {
            if self.previous?.isSame(as: token) != true {
                guard last.key.team == token.key.team else { throw .invalidProviderToken }
                guard last.key.isRelated(to: token.key) else { throw .unrelatedKeyIdInToken }
                // If the clock was set back, the interval must not become longer.
                if let changedAt, abs(now - changedAt) < Self.changeInterval { throw .tooManyProviderTokenUpdates }
                self.changedAt = now
            }
            self.previous = last
        }
        self.token = token
    }
}

/// The reason why a provider's token is refused. It is logged for operators, but not sent to the provider.
package enum ProviderTokenFault: Error, Hashable, Sendable {
    /// The text is not a JSON web token with a key, a team and a time of issue.
    case unreadable
    case unknownKey(keyID: String, team: String)
    /// The key is known, but belongs to another team.
    case otherTeam(keyID: String, team: String)
    /// The key id and the team match, but the signature is from another key.
    case otherKey(keyID: String, team: String)
    /// The connection already belongs to another team.
    case secondTeam(keyID: String, team: String)

    /// The fields of the log entry. Malformed names are omitted, because the sender could insert any text.
    package var fields: [String: String] {
        var fields = ["cause": self.cause, "remedy": self.remedy]
        switch self {
        case .unreadable: break
        case .unknownKey(let keyID, let team), .otherTeam(let keyID, let team), .otherKey(let keyID, let team),
            .secondTeam(let keyID, let team):
            for (name, value) in [("keyID", keyID), ("team", team)] where ProviderKeyFile.isName(value) {
                fields[name] = value
            }
        }
        return fields
    }

    private var cause: String {
        switch self {
        case .unreadable: "no token that can be read"
        case .unknownKey: "unknown key id"
        case .otherTeam: "another team"
        case .otherKey: "another key"
        case .secondTeam: "another team than the connection's"
        }
    }

    private var remedy: String {
        switch self {
        case .unreadable: "the provider signs a JSON web token by ES256, with kid, iss and iat, and without crit"
        case .unknownKey: "add the key with wakegate key add, or have the provider name one that is there"
        case .otherTeam: "the provider names the team of wakegate key list, or the key is added for the other team"
        case .otherKey: "the provider signs with the key of that id, or that key is removed and added anew"
        case .secondTeam: "the provider uses a connection for each team"
        }
    }
}
