package import HTTPTransport
package import Wire

/// The sender of a command, with its role and topics. Only `Authorization` creates the caller of a request. Code that
/// requires a caller therefore cannot skip the check.
package struct Caller: Hashable, Sendable {
    /// The credential that the caller showed; nil if none was required.
    package let credential: Credential?
    package let role: BearerRole
    /// The topics that the caller may access.
    package let topics: TopicScope

    fileprivate init(_ credential: Credential?, _ role: BearerRole, _ topics: TopicScope) {
        self.credential = credential
        self.role = role
        self.topics = topics
    }

    /// The gateway itself, as the sender of its own commands. Its webhooks receive wakes and answer them.
    package static let gateway = Caller(nil, .operator, .all)

    /// An unidentified caller, for operations that access no topic.
    fileprivate static let unauthenticated = Caller(nil, .worker, .only([]))

    package func reaches(_ topic: String) -> Bool { self.topics.contains(topic) }
}

/// A caller who is authorized for the requested operation.
package struct AdmittedCaller {
    package let caller: Caller
    /// The proof on which the caller's streams depend; nil if none was required.
    package let proof: ShownProof?
}

/// Authenticates the caller of a request to the worker or admin API and checks its authorization. Each loop has its own
/// instance.
package struct Authorization {
    /// The API that a listener serves, which determines the permitted callers.
    package enum Door: Hashable, Sendable {
        /// The worker API, for workers and for operators with their own credentials.
        case workers
        /// The admin API, for operators. No proof is required if only this machine can reach the listener.
        case operators(isLocal: Bool)
    }

    package var tokens: TokenCheck
    /// The client certificates of the loop's connections; nil if none are requested.
    package var certificates: ClientCertificates?

    package init(tokens: TokenCheck, certificates: ClientCertificates?) {
        self.tokens = tokens
        self.certificates = certificates
    }

    /// Returns the holder of a connection's client certificate; nil if the connection has no certificate.
    package func holder(of connection: ConnectionID) -> CertificateHolder? {
        self.certificates?.holder(of: connection)
    }

    /// Authenticates the sender of a request and checks that the operation is permitted.
    ///
    /// The topic in the path is checked even if it does not exist. The engine checks the topics that only it knows,
    /// such as the topic of a device.
    ///
    /// - `field`: the request's authorization field; read only if a token is required.
    /// - `rule`: the operation's access rule.
    /// - `topic`: the topic in the request's path. It is used if the rule concerns that topic.
    /// - `count`: counts the connection under the shown token.
    /// - Throws: `APIError` if no valid proof is shown, or if the proof does not authorize this operation.
    package mutating func admit(
        _ field: () -> AuthorizationField,
        on connection: ConnectionID,
        through door: Door,
        by rule: AccessRule,
        topic: ByteView,
        count: (BearerToken) throws(APIError) -> Void
    ) throws(APIError) -> AdmittedCaller {
        switch rule.role {
        // The dashboard's page contains no data of this gateway. Its requests contain the token that the user enters.
        case .unauthenticated: return AdmittedCaller(caller: .unauthenticated, proof: nil)
        // The provider API authenticates providers, with its own order of checks.
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

    /// Returns the proof of the request's sender. A client certificate takes precedence over a token.
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

    /// Returns true if a worker's stream that was opened with `proof` may continue. `proof` is nil for a stream without
    /// proof.
    package mutating func admitsWorker(_ proof: ShownProof?) -> Bool {
        switch proof {
        case nil: self.tokens.admits(nil)
        case .token(let shown)?: self.tokens.admits(shown)
        case .certificate(let holder)?: self.holder(of: holder.connection) === holder
        }
    }
}

extension Caller {
    /// The caller who showed this proof; nil if none was required.
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

/// A verified proof of the caller's identity.
package enum ShownProof {
    case token(ShownToken)
    case certificate(CertificateHolder)
}

/// The party under which a worker's stream is counted for a limit.
package enum StreamHolder: Hashable, Sendable {
    case credential(Credential)
    /// The network of a client without a credential; nil for a Unix socket, which has no addresses.
    case network(ClientNetwork?)

    package init(_ caller: Caller, from network: @autoclosure () -> ClientNetwork?) {
        if let credential = caller.credential {
            self = .credential(credential)
        } else {
            self = .network(network())
        }
    }
}

/// The contents of a request's `authorization` field.
package enum AuthorizationField {
    case absent
    /// The text after `bearer`.
    case bearer(ByteView)
    /// A value of another scheme, or more than one field.
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

    /// Parses the value of the field.
    package init(value: ByteView) {
        guard let space = value.firstIndex(of: UInt8(ascii: " ")), value[0..<space].equalsIgnoringCase("bearer") else {
            self = .other
            return
        }
        self = .bearer(value.dropFirst(space + 1))
    }
}

/// The role and the scope that an operation requires of its caller.
package struct AccessRule: Hashable, Sendable {
    /// The required role.
    package enum Role: Hashable, Sendable {
        /// No role. Callers are not authenticated.
        case unauthenticated
        /// A provider, authenticated by the rules of the provider API.
        case provider
        /// A worker or an operator.
        case worker
        case `operator`
    }

    /// The scope that the caller must have.
    package enum Scope: Hashable, Sendable {
        /// No scope. The operation accesses no topic.
        case nothing
        /// The topic in the request's path.
        case topicInPath
        /// The topic of the requested record. Only the engine knows this topic, and it hides records of other topics.
        case topicOfSubject
        /// Every topic.
        case everyTopic
    }

    package let role: Role
    package let scope: Scope

    package init(_ role: Role, _ scope: Scope) {
        self.role = role
        self.scope = scope
    }
}
