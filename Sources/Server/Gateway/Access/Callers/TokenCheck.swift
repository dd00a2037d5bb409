import Engine
import Platform
import Wire

/// Checks the bearer tokens of workers and operators. Each loop has its own.
///
/// Before each answer it looks whether the key's file or that of the revocations has changed, which takes two system
/// calls: a revocation is in force from the next request on, and nobody has to tell the gateway.
package struct TokenCheck: Sendable {
    /// The most verified tokens that are remembered.
    private static let verifiedMax = 1024

    /// A token that was read, and the minute in which its last use was told.
    private struct VerifiedBearer {
        let token: BearerToken
        var minute: Int64 = -1
    }

    /// Asked for whatever the state folder holds, since other machines reach the edge, or there are certificates.
    private let alwaysAsksWorkers: Bool
    private let asksAnybody: Bool
    private let asksForCertificates: Bool
    private let mayWorkersGoUnasked: Bool
    private let folder: String
    private let keyFile: String
    private let revokedFile: String
    private let onTrouble: @Sendable (String) -> Void

    private var keyStamp: CredentialFile.Stamp?
    private var key: TokenKey?
    private var revokedStamp: CredentialFile.Stamp?
    private var revoked: Set<String> = []
    /// There was a key once: taking it away ends every token, but opens no door.
    private var hasHadKey = false
    private var isFirstKeyNew = false
    /// By what was shown.
    private var verified: [[UInt8]: VerifiedBearer] = [:]
    private let uses: TokenUses
    private var trouble: String?

    /// - Parameters:
    ///   - folder: the state folder.
    ///   - asksAnybody: whether anybody is asked for a token at all.
    ///   - asksForCertificates: whether those who connect may show a client certificate instead.
    ///   - isReachable: whether other machines reach the listeners of workers.
    ///   - mayWorkersGoUnasked: whether workers may go unasked on a state whose workers were asked.
    ///   - onTrouble: hears, once, why tokens cannot be checked.
    package init(
        folder: String,
        asksAnybody: Bool,
        asksForCertificates: Bool,
        isReachable: Bool,
        mayWorkersGoUnasked: Bool,
        onTrouble: @escaping @Sendable (String) -> Void
    ) {
        self.asksAnybody = asksAnybody
        self.asksForCertificates = asksForCertificates
        self.mayWorkersGoUnasked = mayWorkersGoUnasked
        self.alwaysAsksWorkers = asksForCertificates || isReachable
        self.folder = folder
        self.uses = TokenUses(folder: folder)
        self.keyFile = "\(folder)/\(TokenKey.name)"
        self.revokedFile = "\(folder)/\(RevokedTokens.name)"
        self.onTrouble = onTrouble
    }

    /// Reads what has changed of the two files.
    package mutating func refresh() throws(CredentialError) {
        guard self.asksAnybody else { return }
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
        // A list that is gone, or empty as it is being written anew, revokes what it did.
        if revokedStamp != self.revokedStamp, revokedStamp != nil {
            let revoked = try RevokedTokens.read(self.revokedFile)
            if !revoked.isEmpty { self.revoked = revoked }
            self.revokedStamp = revokedStamp
        }
    }

    /// Reads what has changed, as far as it can be read.
    package mutating func refreshIfPossible() {
        _ = try? self.refreshed()
    }

    /// Whether workers are asked, for the state to remember.
    package var workersAsked: WorkersAsked {
        guard self.asksAnybody else { return .unrecorded }
        if self.hasHadKey || self.asksForCertificates { return .asked }
        return self.asksWorkers || self.mayWorkersGoUnasked ? .unrecorded : .notAsked(folder: self.folder)
    }

    /// Whether there is a key since the last call, and was none before.
    package mutating func takeFirstKey() -> Bool {
        defer { self.isFirstKeyNew = false }
        return self.isFirstKeyNew
    }

    /// What a worker showed; nil when workers are not asked.
    mutating func worker(_ field: () -> AuthorizationField) throws(APIError) -> ShownToken? {
        guard self.asksAnybody else { return nil }
        try self.refreshed()
        return self.asksWorkers ? try self.shown(field()) : nil
    }

    /// What an operator showed who is not on this machine.
    mutating func operatorAfar(_ field: () -> AuthorizationField) throws(APIError) -> ShownToken {
        try self.refreshed()
        let shown = try self.shown(field())
        guard shown.token.role == .operator else { throw .operatorsOnly }
        return shown
    }

    /// Whether a stream that was opened with a token, or with nothing, may go on.
    mutating func admits(_ shown: ShownToken?) -> Bool {
        guard self.asksAnybody, self.asksWorkers else { return true }
        guard let shown else { return false }
        return (try? self.token(shown.text)) != nil
    }

    /// Whether the stream of an operator may go on, who showed this, or nothing where nobody asks.
    package mutating func admitsOperator(_ shown: ShownProof?) -> Bool {
        guard case .token(let shown)? = shown else { return true }
        self.refreshIfPossible()
        return (try? self.token(shown.text)) != nil
    }

    private var asksWorkers: Bool { self.alwaysAsksWorkers || self.hasHadKey }

    /// `refresh`, with the fault told and turned into an answer.
    private mutating func refreshed() throws(APIError) {
        do throws(CredentialError) {
            try self.refresh()
            self.trouble = nil
        } catch {
            if self.trouble != error.message { self.onTrouble(error.message) }
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

    /// The token that `text` is, if it is good now.
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
