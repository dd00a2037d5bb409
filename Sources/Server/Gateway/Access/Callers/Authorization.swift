package import HTTPTransport
package import Wire

/// Who asks for something, and what they may reach; it travels with what is asked.
///
/// For a request `Authorization` alone makes one: what takes a caller cannot be asked for without that check.
package struct Caller: Hashable, Sendable {
    /// What it showed; nil where nobody is asked.
    package let credential: Credential?
    package let role: BearerRole
    /// The topics it may reach.
    package let topics: TopicScope

    fileprivate init(_ credential: Credential?, _ role: BearerRole, _ topics: TopicScope) {
        self.credential = credential
        self.role = role
        self.topics = topics
    }

    /// The gateway itself, whose webhooks take wakes and answer them.
    package static let gateway = Caller(nil, .operator, .all)

    /// Somebody of whom nothing is known, for what belongs to no topic.
    fileprivate static let anybody = Caller(nil, .worker, .only([]))

    package func reaches(_ topic: String) -> Bool { self.topics.contains(topic) }
}

/// Somebody who may do what they asked for.
package struct AdmittedCaller {
    package let caller: Caller
    /// What a stream that they open hangs on; nil where nobody is asked.
    package let proof: ShownProof?
}

/// Says who sent a request of the worker or admin API, and whether they may do what they ask for. Each loop has its
/// own.
package struct Authorization {
    /// Who may send a request through a listener.
    package enum Door: Hashable, Sendable {
        /// Workers, and operators as such.
        case workers
        /// Operators, who need no proof on this machine itself.
        case operators(isLocal: Bool)
    }

    package var tokens: TokenCheck
    /// Nil when nobody is asked for a client certificate.
    package var certificates: ClientCertificates?

    package init(tokens: TokenCheck, certificates: ClientCertificates?) {
        self.tokens = tokens
        self.certificates = certificates
    }

    /// Whom a connection's client certificate names; nil when it has shown none.
    package func holder(of connection: ConnectionID) -> CertificateHolder? {
        self.certificates?.holder(of: connection)
    }

    /// Admits whoever sent a request.
    ///
    /// What a path names is looked at here, and refused whether it exists or not; what only the engine knows, such as
    /// a device's topic, the engine looks at by itself.
    ///
    /// - `field`: what the request shows; asked for when a token is needed.
    /// - `rule`: what the operation takes.
    /// - `topic`: the topic in the request's path, where the rule speaks of one.
    /// - `count`: counts the connection under the token it shows.
    /// - Throws: `APIError` when nothing good is shown, or something that is not for this.
    package mutating func admit(
        _ field: () -> AuthorizationField,
        on connection: ConnectionID,
        through door: Door,
        by rule: AccessRule,
        topic: ByteView,
        count: (BearerToken) throws(APIError) -> Void
    ) throws(APIError) -> AdmittedCaller {
        switch rule.role {
        // The page holds nothing of this gateway; it asks for the token that its requests show.
        case .anybody: return AdmittedCaller(caller: .anybody, proof: nil)
        // Providers prove who they are in the order of checks of their own interface.
        case .provider: throw .badPath
        case .worker, .operator: ()
        }
        let proof = try self.proof(field, on: connection, through: door, count)
        let caller = Caller(proof, through: door)
        guard rule.role == .worker || caller.role == .operator else { throw .operatorsOnly }
        switch rule.scope {
        case .topicInPath:
            guard caller.topics == .all || caller.reaches(topic.string) else { throw proof.foreignTopic }
        case .everyTopic:
            guard caller.topics == .all else { throw .everyTopicOnly }
        case .nothing, .topicOfSubject: ()
        }
        return AdmittedCaller(caller: caller, proof: proof)
    }

    /// A certificate that was shown says who the connection is, whatever else a request shows.
    private mutating func proof(
        _ field: () -> AuthorizationField,
        on connection: ConnectionID,
        through door: Door,
        _ count: (BearerToken) throws(APIError) -> Void
    ) throws(APIError) -> ShownProof? {
        switch door {
        case .workers:
            if let holder = self.holder(of: connection) {
                guard holder.role == .worker else { throw .providersCertificate }
                return .certificate(holder)
            }
            guard let shown = try self.tokens.worker(field) else { return nil }
            try count(shown.token)
            return .token(shown)
        case .operators(isLocal: true): return nil
        case .operators(isLocal: false):
            let shown = try self.tokens.operatorAfar(field)
            try count(shown.token)
            return .token(shown)
        }
    }

    // MARK: Streams

    /// Whether a worker's stream may go on that was opened with this, or with nothing.
    package mutating func admitsWorker(_ proof: ShownProof?) -> Bool {
        switch proof {
        case nil: self.tokens.admits(nil)
        case .token(let shown)?: self.tokens.admits(shown)
        case .certificate(let holder)?: self.holder(of: holder.connection) === holder
        }
    }
}

extension Caller {
    /// Whoever showed this, or nothing where nobody is asked.
    fileprivate init(_ proof: ShownProof?, through door: Authorization.Door) {
        switch proof {
        case nil: self.init(nil, door == .workers ? .worker : .operator, .all)
        case .token(let shown)?: self.init(.bearerToken(shown.token.id), shown.token.role, shown.token.scope)
        case .certificate(let holder)?: self.init(.certificate(holder.subject), .worker, holder.scope)
        }
    }
}

extension ShownProof? {
    fileprivate var foreignTopic: APIError {
        switch self {
        case nil, .token?: .foreignTopic
        case .certificate?: .foreignTopicOfCertificate
        }
    }
}

/// How somebody has shown who they are.
package enum ShownProof {
    case token(ShownToken)
    case certificate(CertificateHolder)
}

/// Whose a worker's stream is, as far as streams are counted by it.
package enum StreamHolder: Hashable, Sendable {
    case credential(Credential)
    /// Somebody who showed nothing, where nobody is asked; nil for a socket file, which has no addresses.
    case network(ClientNetwork?)

    package init(_ caller: Caller, from network: @autoclosure () -> ClientNetwork?) {
        if let credential = caller.credential {
            self = .credential(credential)
        } else {
            self = .network(network())
        }
    }
}

/// What a request shows in the field authorization.
package enum AuthorizationField {
    case absent
    /// What stands behind `bearer`.
    case bearer(ByteView)
    /// Something else, or the field came more than once.
    case other

    package init(_ request: Request) {
        var found: ByteView?
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            guard field.name == "authorization" else { continue }
            guard found == nil else {
                self = .other
                return
            }
            found = field.value
        }
        self = found.map { AuthorizationField(value: $0) } ?? .absent
    }

    /// The field with this value.
    package init(value: ByteView) {
        guard let space = value.firstIndex(of: UInt8(ascii: " ")), value[0..<space].equalsIgnoringCase("bearer") else {
            self = .other
            return
        }
        self = .bearer(value.dropFirst(space + 1))
    }
}

/// What an operation takes: who may ask for it, and what they must reach.
package struct AccessRule: Hashable, Sendable {
    /// Who may ask.
    package enum Role: Hashable, Sendable {
        /// Everybody: nobody is asked who they are.
        case anybody
        /// Who pushes, and proves it as the provider API has it.
        case provider
        /// Workers, and operators too.
        case worker
        case `operator`
    }

    /// What the caller must reach.
    package enum Scope: Hashable, Sendable {
        /// Nothing that belongs to a topic.
        case nothing
        /// The topic that the path names.
        case topicInPath
        /// The topic of what is asked about, which the engine alone knows: it shows nothing of other topics.
        case topicOfSubject
        /// All topics together.
        case everyTopic
    }

    package let role: Role
    package let scope: Scope

    package init(_ role: Role, _ scope: Scope) {
        self.role = role
        self.scope = scope
    }
}
