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
    /// Admits whoever sent a request.
    ///
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
            if door == .workers, self.authorization.tokens.takeFirstKey() { self.batch.append(.workersAsked) }
        }
        return try self.authorization.admit(
            { AuthorizationField(request) },
            on: connection,
            through: door,
            by: operation.access,
            topic: parameter,
            count: { token throws(APIError) in try self.count(token, on: connection) }
        )
    }

    /// Ends the streams whose tokens or certificates were revoked or have expired since they were opened.
    func endStreamsWithoutProof() {
        guard !self.streams.isEmpty else { return }
        self.authorization.tokens.refreshIfPossible()
        for (stream, state) in self.streams where !self.authorization.admitsWorker(state.caller) {
            self.streamClosed(stream)
            self.loop.finish(stream)
        }
    }
}

// MARK: - Client certificates

extension LoopHandler {
    /// Ends a connection at once whose certificate is not good: it gets SETTINGS and GOAWAY, as of APNs.
    package func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        do throws(CertificateFault) {
            try self.authorization.certificates?.certificateShown(certificate, on: connection)
        } catch {
            return self.end(connection, error)
        }
        guard let holder = self.authorization.holder(of: connection),
            !self.shared.credentials.begin(.certificate(holder.subject))
        else { return }
        self.shared.tally.met(.connectionsPerCredentialMax)
        self.authorization.certificates?.connectionClosed(connection)
        self.end(connection, holder.tooManyConnections)
    }

    /// Ends the connections whose certificates were revoked or have expired since they were shown;
    /// `endStreamsWithoutProof` ends their streams.
    func endConnectionsWithBadCertificates() {
        for (holder, fault) in self.authorization.certificates?.takeFaulty(now: SystemClock.wall) ?? [] {
            self.shared.credentials.end(.certificate(holder.subject))
            self.end(holder.connection, fault)
        }
    }

    private func end(_ connection: ConnectionID, _ fault: CertificateFault) {
        fault.reason.writeBody(to: &self.body, timestampMilliseconds: nil)
        self.loop.goAway(connection, debugData: self.body.view)
        self.body.removeAll()
        let fields = ["reason": fault.reason.rawValue, "cause": fault.cause, "subject": fault.subject]
        self.shared.log.write(.clientCertificate, fields)
    }
}
