package import HTTPTransport
import Platform
package import Wire

/// Asks the providers of one loop for proof.
///
/// A good token is verified once; afterwards it costs a comparison with the connection's last one, or one look-up. One
/// that is no good is verified once a connection. A connection that asks again and again, as requests come together, is
/// looked up once.
package struct ProviderGate {
    /// The most verified tokens kept; when there are more, all are forgotten and verified again.
    private static let tokensMax = 4096

    /// How many tokens were read and verified.
    package private(set) var verificationCount = 0

    private let source: ProviderKeys
    private let environment: APNSEnvironment?
    private let credentials: ConnectionCounts<Credential>
    private let onRefusal: (ProviderTokenFault) -> Void
    private var generation: UInt64
    private var keys: [String: ProviderKeyFile]
    private let hashKey: HashKey
    /// The verified tokens by the hash of their bytes, whose key nobody outside knows.
    private var tokens: [UInt64: VerifiedToken] = [:]
    private var connections: [ConnectionID: ProviderConnection] = [:]
    /// The connection that was looked up last.
    private var latest: (id: ConnectionID, shown: ProviderConnection)?

    /// A gate that has seen no provider yet.
    ///
    /// - `environment`: the gateway's own, which keys that have one must share; nil to take all.
    /// - `credentials`: the connections of each key.
    /// - `onRefusal`: hears why a token is not good, once a connection for each.
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

    /// Asks for the token of a request.
    ///
    /// - `authorization`: the value of the header field; nil when it is absent.
    /// - `now`: milliseconds since 1970.
    /// - Returns: the token, which says where it may push to.
    /// - Throws: the reason for which the request is refused.
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

    /// Returns true if a connection that has shown an expired token has since shown another one: its client needs
    /// another connection.
    package func hasChangedInVain(_ connection: ConnectionID) -> Bool {
        self.connections[connection]?.hasChangedInVain ?? false
    }

    /// What the connection has shown; nil when it has shown nothing.
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

    /// Counts a connection under the key it shows; one that shows several in turn counts under the last.
    ///
    /// - Throws: `tooManyRequests` when there are as many of that key as there may be.
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
