package import APNSProtocol
package import Bytes
package import HTTPTransport

/// Asks the providers of one loop for proof.
///
/// A token is verified once; afterwards it costs a comparison with the connection's last one, or one look-up.
package struct ProviderGate {
    /// The most verified tokens kept; when there are more, all are forgotten and verified again.
    private static let tokensMax = 4096

    private let source: ProviderKeys
    private var generation: UInt64
    private var keys: [String: ProviderKeyFile]
    /// By the hash of their bytes, whose seed nobody outside knows.
    private var tokens: [Int: VerifiedToken] = [:]
    private var connections: [ConnectionID: ProviderConnection] = [:]

    package init(_ keys: ProviderKeys) {
        self.source = keys
        (self.generation, self.keys) = keys.current()
    }

    /// Asks for the token of a request.
    ///
    /// - Parameters:
    ///   - authorization: the value of the header field; nil when it is absent.
    ///   - now: milliseconds since 1970.
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
        let known = self.connections[connection]
        if let known, known.isUnusable { throw .expiredProviderToken }
        let text = try ProviderToken.text(inAuthorization: authorization)
        if let last = known?.token, last.generation == self.generation, last.isText(text), !last.isExpired(now: now) {
            return last
        }
        let token = try self.verified(text)
        let shown = known ?? ProviderConnection()
        self.connections[connection] = shown
        guard !token.isExpired(now: now) else {
            shown.isUnusable = true
            throw .expiredProviderToken
        }
        try shown.tokenShown(token, now: now)
        return token
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        self.connections[connection] = nil
    }

    private mutating func verified(_ text: ByteView) throws(APNSReason) -> VerifiedToken {
        var hasher = Hasher()
        unsafe hasher.combine(bytes: text.buffer)
        let hash = hasher.finalize()
        if let token = self.tokens[hash], token.isText(text) { return token }
        let token = try VerifiedToken(text, keys: self.keys, generation: self.generation)
        if self.tokens.count >= Self.tokensMax { self.tokens.removeAll(keepingCapacity: true) }
        self.tokens[hash] = token
        return token
    }
}
