import Engine
import Platform
import Wire

/// Checks the bearer tokens of workers and operators. Each loop has its own instance.
///
/// Before each answer, two system calls show whether the key file or the revocation file has changed. A revocation is
/// therefore in effect from the next request, without notifying the gateway.
package struct TokenCheck: Sendable {
    /// The maximum number of verified tokens in the cache.
    private static let verifiedMax = 1024

    /// A verified token and the minute in which its last use was recorded.
    private struct VerifiedBearer {
        let token: BearerToken
        var minute: Int64 = -1
    }

    /// True if workers must show a token even without a key in the state folder. That is required if other machines
    /// reach the edge, or if client certificates are requested.
    private let alwaysRequiresWorkerTokens: Bool
    private let requiresTokens: Bool
    private let acceptsCertificates: Bool
    private let allowsUnauthenticatedWorkers: Bool
    private let folder: String
    private let keyFile: String
    private let revokedFile: String
    private let onFailure: @Sendable (String) -> Void

    private var keyStamp: CredentialFile.Stamp?
    private var key: TokenKey?
    private var revokedStamp: CredentialFile.Stamp?
    private var revoked: Set<String> = []
    /// True if a key has ever existed. After the key is removed, every token is invalid, and workers still need one.
    private var hasHadKey = false
    private var isFirstKeyNew = false
    /// The verified tokens by their text.
    private var verified: [[UInt8]: VerifiedBearer] = [:]
    private let uses: TokenUses
    private var trouble: String?

    /// - Parameters:
    ///   - folder: the state folder.
    ///   - requiresTokens: true if tokens are required of any caller.
    ///   - acceptsCertificates: true if clients may show a certificate instead.
    ///   - isReachable: true if other machines reach the listeners of workers.
    ///   - allowsUnauthenticatedWorkers: true if workers may connect without proof although the state records that they
    ///     needed one.
    ///   - onFailure: receives the reason, once, if tokens cannot be checked.
    package init(
        folder: String,
        requiresTokens: Bool,
        acceptsCertificates: Bool,
        isReachable: Bool,
        allowsUnauthenticatedWorkers: Bool,
        onFailure: @escaping @Sendable (String) -> Void
    ) {
        self.requiresTokens = requiresTokens
        self.acceptsCertificates = acceptsCertificates
        self.allowsUnauthenticatedWorkers = allowsUnauthenticatedWorkers
        self.alwaysRequiresWorkerTokens = acceptsCertificates || isReachable
        self.folder = folder
        self.uses = TokenUses(folder: folder)
        self.keyFile = "\(folder)/\(TokenKey.name)"
        self.revokedFile = "\(folder)/\(RevokedTokens.name)"
        self.onFailure = onFailure
    }

    /// Reads the key file and the revocation file if they have changed.
    package mutating func refresh() throws(CredentialError) {
        guard self.requiresTokens else { return }
        let keyStamp = try CredentialFile.stamp(self.keyFile)
        if keyStamp != self.keyStamp {
            self.key = try keyStamp.map { _ throws(CredentialError) in try TokenKey.read(in: self.folder) }
            self.keyStamp = keyStamp
            self.verified.removeAll()
            if self.key != nil, !self.hasHadKey {
                self.hasHadKey = true
                self.isFirstKeyNew = true
            }
        }
        let revokedStamp = try CredentialFile.stamp(self.revokedFile)
        // The list may be missing, or be empty during a rewrite. The previous revocations then stay in effect.
        if revokedStamp != self.revokedStamp, revokedStamp != nil {
            let revoked = try RevokedTokens.read(self.revokedFile)
            if !revoked.isEmpty { self.revoked = revoked }
            self.revokedStamp = revokedStamp
        }
    }

    /// Reads the key file and the revocation file if they have changed. Reports an error instead of throwing it.
    package mutating func refreshIfPossible() {
        _ = try? self.refreshed()
    }

    /// The requirement for workers to authenticate, in the form that the state must record.
    package var workerAuthentication: WorkerAuthentication {
        guard self.requiresTokens else { return .unrecorded }
        if self.hasHadKey || self.acceptsCertificates { return .required }
        return self.requiresWorkerTokens || self.allowsUnauthenticatedWorkers
            ? .unrecorded : .notRequired(folder: self.folder)
    }

    /// Returns true if the first key has appeared since the last call.
    package mutating func takeFirstKey() -> Bool {
        defer { self.isFirstKeyNew = false }
        return self.isFirstKeyNew
    }

    /// Returns the token that a worker showed; nil if workers need no token.
    mutating func worker(_ field: () -> AuthorizationField) throws(APIError) -> ShownToken? {
        guard self.requiresTokens else { return nil }
        try self.refreshed()
        return self.requiresWorkerTokens ? try self.shown(field()) : nil
    }

    /// Returns the token that an operator on another machine showed.
    mutating func operatorAfar(_ field: () -> AuthorizationField) throws(APIError) -> ShownToken {
        try self.refreshed()
        let shown = try self.shown(field())
        guard shown.token.role == .operator else { throw .operatorsOnly }
        return shown
    }

    /// Returns true if a worker's stream that was opened with `shown` may continue. `shown` is nil for a stream without
    /// token.
    mutating func admits(_ shown: ShownToken?) -> Bool {
        guard self.requiresTokens, self.requiresWorkerTokens else { return true }
        guard let shown else { return false }
        return (try? self.token(shown.text)) != nil
    }

    /// Returns true if an operator's stream that was opened with `shown` may continue. `shown` is nil for a stream
    /// without proof.
    package mutating func admitsOperator(_ shown: ShownProof?) -> Bool {
        guard case .token(let shown)? = shown else { return true }
        self.refreshIfPossible()
        return (try? self.token(shown.text)) != nil
    }

    private var requiresWorkerTokens: Bool { self.alwaysRequiresWorkerTokens || self.hasHadKey }

    /// Calls `refresh`. If it fails, reports the error once and throws the error of the answer.
    private mutating func refreshed() throws(APIError) {
        do throws(CredentialError) {
            try self.refresh()
            self.trouble = nil
        } catch {
            if self.trouble != error.message { self.onFailure(error.message) }
            self.trouble = error.message
            throw .tokensUnreadable
        }
    }

    private mutating func shown(_ field: AuthorizationField) throws(APIError) -> ShownToken {
        switch field {
        case .absent: throw .missingToken
        case .other: throw .invalidToken
        case .bearer(let text):
            let text = text.array
            return ShownToken(text: text, token: try self.token(text))
        }
    }

    /// Returns the token with this text if it is currently valid.
    private mutating func token(_ text: [UInt8]) throws(APIError) -> BearerToken {
        var known: VerifiedBearer
        if let found = self.verified[text] {
            known = found
        } else {
            guard let key = self.key,
                let read = BearerToken(text: String(decoding: text, as: UTF8.self), signedWith: key)
            else { throw .invalidToken }
            if self.verified.count >= Self.verifiedMax { self.verified.removeAll(keepingCapacity: true) }
            known = VerifiedBearer(token: read)
            self.verified[text] = known
        }
        let token = known.token
        if self.revoked.contains(token.id) { throw .revokedToken }
        let now = SystemClock.wall / 1000
        guard now < token.expiresAt else { throw .expiredToken }
        if known.minute != now / 60 {
            known.minute = now / 60
            self.verified[text] = known
            self.uses.note(token.id, at: now)
        }
        return token
    }
}
