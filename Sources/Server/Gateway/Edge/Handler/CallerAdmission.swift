import HTTPTransport
import Platform
import ServiceManager
import Wire

/// Who may do what on one loop: by what connections, requests and streams have shown.
final class CallerAdmission {
    private let shared: SharedParts
    private let outbox: EngineOutbox
    private let answers: AnswerWriter
    private let counts: CredentialCounts
    private var authorization: Authorization
    /// Whether clients are asked for certificates at all.
    private let asksForCertificates: Bool

    init(_ shared: SharedParts, _ outbox: EngineOutbox, _ answers: AnswerWriter, _ counts: CredentialCounts) {
        self.shared = shared
        self.outbox = outbox
        self.answers = answers
        self.counts = counts
        self.asksForCertificates = shared.clientTrusts != nil
        self.authorization = Authorization(
            tokens: shared.tokens,
            certificates: shared.clientTrusts.map {
                ClientCertificates($0, environment: shared.configuration.environment)
            }
        )
    }

    /// Admits whoever sent a request.
    ///
    /// - `parameter`: what stands at the parameter's place in the path.
    /// - Throws: `APIError` when nothing good is shown, or something that is not for this.
    func admit(
        _ request: Request,
        to operation: Operation,
        _ parameter: ByteView,
        _ role: ListenerRole
    ) throws(APIError) -> AdmittedCaller {
        let connection = request.stream.connection
        let door: Authorization.Door =
            switch role {
            case .edge, .plain: .workers
            case .admin: .operators(isLocal: self.shared.areLocal[request.listener])
            }
        defer {
            if door == .workers, self.authorization.tokens.takeFirstKey() { self.outbox.append(.workersAsked) }
        }
        return try self.authorization.admit(
            { AuthorizationField(request) },
            on: connection,
            through: door,
            by: operation.access,
            topic: parameter,
            count: { token throws(APIError) in try self.counts.count(token, on: connection) }
        )
    }

    // MARK: Streams

    /// Reads what has changed of tokens, as far as it can be read.
    func refreshTokens() { self.authorization.tokens.refreshIfPossible() }

    /// Whether a worker's stream may go on that was opened with this, or with nothing.
    func admitsWorker(_ proof: ShownProof?) -> Bool { self.authorization.admitsWorker(proof) }

    /// Whether the stream of an operator may go on, who showed this, or nothing where nobody asks.
    func admitsOperator(_ proof: ShownProof?) -> Bool { self.authorization.tokens.admitsOperator(proof) }

    // MARK: Client certificates

    /// Whom a connection's client certificate names; nil when it has shown none.
    func holder(of connection: ConnectionID) -> CertificateHolder? {
        // Asking `authorization` copies it, which is more than the rest of the question.
        self.asksForCertificates ? self.authorization.holder(of: connection) : nil
    }

    /// Ends a connection at once whose certificate is not good: it gets SETTINGS and GOAWAY, as of APNs.
    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        do throws(CertificateFault) {
            try self.authorization.certificates?.certificateShown(certificate, on: connection)
        } catch {
            return self.end(connection, error)
        }
        guard let holder = self.holder(of: connection), !self.counts.count(certificateOf: holder.subject) else {
            return
        }
        self.authorization.certificates?.connectionClosed(connection)
        self.end(connection, holder.tooManyConnections)
    }

    /// Ends the connections whose certificates were revoked or have expired since they were shown; the owner ends their
    /// streams.
    func endConnectionsWithBadCertificates() {
        for (holder, fault) in self.authorization.certificates?.takeFaulty(now: SystemClock.wall) ?? [] {
            self.counts.uncount(certificateOf: holder.subject)
            self.end(holder.connection, fault)
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.counts.connectionClosed(connection)
        if let holder = self.holder(of: connection) { self.counts.uncount(certificateOf: holder.subject) }
        self.authorization.certificates?.connectionClosed(connection)
    }

    private func end(_ connection: ConnectionID, _ fault: CertificateFault) {
        self.answers.goAway(connection, fault.reason)
        let fields = ["reason": fault.reason.rawValue, "cause": fault.cause, "subject": fault.subject]
        self.shared.log.write(.clientCertificate, fields)
    }
}
