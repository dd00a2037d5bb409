import Wire

/// What a connection has shown of its provider.
final class ProviderConnection {
    /// Milliseconds that must pass after one change of the token before the next.
    static let changeInterval: Int64 = 1_200_000

    /// The hash of the expired token that it has shown; nil if it has shown none. As at APNs, the connection takes no
    /// push from then on.
    var expiredToken: UInt64?
    /// True if it has shown another token after the expired one. Clients that retry with fresh tokens would do so
    /// indefinitely, as none is accepted here.
    var hasChangedInVain = false
    /// What the connection showed in vain.
    var refused = RefusedTokens()
    /// What the connection is counted under.
    var credential: Credential?
    /// The token that was taken last.
    private(set) var token: VerifiedToken?
    /// The token before `token`, which requests that were under way at the change may still show.
    private var previous: VerifiedToken?
    /// When the token last changed, in milliseconds since 1970; nil while the first one is in use.
    private var changedAt: Int64?

    /// Takes a token, unless the rules of a connection forbid it.
    ///
    /// The first token is free, and so is one change of it; further changes must be 20 minutes apart.
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `invalidProviderToken` for a second team, `unrelatedKeyIdInToken` for a key of other topics,
    ///   `tooManyProviderTokenUpdates`.
    func tokenShown(_ token: VerifiedToken, now: Int64) throws(APNSReason) {
        if let last = self.token, !last.isSame(as: token) {
            if self.previous?.isSame(as: token) != true {
                guard last.key.team == token.key.team else { throw .invalidProviderToken }
                guard last.key.isRelated(to: token.key) else { throw .unrelatedKeyIdInToken }
                // A clock that was set back must not forbid changes for longer.
                if let changedAt, abs(now - changedAt) < Self.changeInterval { throw .tooManyProviderTokenUpdates }
                self.changedAt = now
            }
            self.previous = last
        }
        self.token = token
    }
}
