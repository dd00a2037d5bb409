import APNSProtocol
import Access
import Answers
import Bytes
import EngineRoom
import EventLog
package import HTTPTransport
import Platform
import Settings

extension LoopHandler {
    /// What the caller of a route showed; nil when nobody is asked, and everything may be reached.
    ///
    /// What a route names in its path is looked at here, and refused whether it exists or not; what only the engine
    /// knows, such as a device's topic, is looked at there.
    ///
    /// - Throws: `APIError` when the caller shows nothing that is good, or something that is not for this.
    func caller(of request: Request, by route: Route, _ role: ListenerRole) throws(APIError) -> ShownProof? {
        // The page holds nothing of this gateway; it asks for the token that its requests show.
        if case .page = route { return nil }
        guard let shown = try self.shown(request, role) else { return nil }
        switch route {
        case .subscribe(let topic), .register(let topic), .topicStatistics(let topic):
            guard shown.scope.contains(topic) else { throw shown.foreignTopic }
        case .statistics, .metrics, .backup, .push, .faults, .live, .samples, .reload:
            // The history knows pushes without their topics, and fault rules are of all of them.
            guard shown.scope == .all else { throw .everyTopicOnly }
        case .report, .extend, .drainStream, .unregister, .conditions, .topics, .explain, .devicePushes,
            .simulateLaunch, .simulateExpiration, .whatIf, .page,
            .alive, .ready, .version, .openAPI:
            break
        }
        return shown
    }

    /// Ends the streams whose tokens or certificates were revoked or have expired since they were opened.
    func endStreamsWithoutProof() {
        guard !self.streams.isEmpty else { return }
        self.tokens.refreshIfPossible()
        for (stream, state) in self.streams where !self.admits(state.caller) {
            self.streamClosed(stream)
            self.loop.finish(stream)
        }
    }

    private func admits(_ caller: ShownProof?) -> Bool {
        switch caller {
        case nil: self.tokens.admits(nil)
        case .token(let shown)?: self.tokens.admits(shown)
        case .certificate(let holder)?: self.certificates?.holder(of: holder.connection) === holder
        }
    }

    /// A certificate that was shown says who the connection is, whatever else a request shows.
    private func shown(_ request: Request, _ role: ListenerRole) throws(APIError) -> ShownProof? {
        switch role {
        case .edge, .plain:
            if let holder = self.certificates?.holder(of: request.stream.connection) {
                guard holder.role == .worker else { throw .providersCertificate }
                return .certificate(holder)
            }
            let shown = Result { () throws(APIError) in try self.tokens.worker(request) }
            if self.tokens.takeFirstKey() { self.batch.append(.workersAsked) }
            guard let token = try shown.get() else { return nil }
            try self.count(token.token, on: request.stream.connection)
            return .token(token)
        case .admin:
            guard !self.context.areLocal[request.listener] else { return nil }
            let token = try self.tokens.operatorAfar(request)
            try self.count(token.token, on: request.stream.connection)
            return .token(token)
        }
    }
}

extension ShownProof {
    fileprivate var foreignTopic: APIError {
        switch self {
        case .token: .foreignTopic
        case .certificate: .foreignTopicOfCertificate
        }
    }
}

// MARK: - Client certificates

extension LoopHandler {
    /// Ends a connection at once whose certificate is not good: it gets SETTINGS and GOAWAY, as of APNs.
    package func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        do throws(CertificateFault) {
            try self.certificates?.certificateShown(certificate, on: connection)
        } catch {
            return self.end(connection, error)
        }
        guard let holder = self.certificates?.holder(of: connection),
            !self.context.credentials.begin(.certificate(holder.subject))
        else { return }
        self.context.tally.met(.connectionsPerCredentialMax)
        self.certificates?.connectionClosed(connection)
        self.end(connection, holder.tooManyConnections)
    }

    /// Ends the connections whose certificates were revoked or have expired since they were shown;
    /// `endStreamsWithoutProof` ends their streams.
    func endConnectionsWithBadCertificates() {
        for (holder, fault) in self.certificates?.takeFaulty(now: SystemClock.wall) ?? [] {
            self.context.credentials.end(.certificate(holder.subject))
            self.end(holder.connection, fault)
        }
    }

    private func end(_ connection: ConnectionID, _ fault: CertificateFault) {
        fault.reason.writeBody(to: &self.body, timestampMilliseconds: nil)
        self.loop.goAway(connection, debugData: self.body.view)
        self.body.removeAll()
        let fields = ["reason": fault.reason.rawValue, "cause": fault.cause, "subject": fault.subject]
        self.context.log.write(.clientCertificate, fields)
    }
}
