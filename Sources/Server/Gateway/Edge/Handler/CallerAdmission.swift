import HTTPTransport
import Platform
import ServiceManager
import Wire

/// Checks the authorization of one loop's connections, requests and streams.
final class CallerAdmission {
    private let parts: LoopParts
    var authorization: Authorization
    /// True if the gateway requests certificates from clients.
    private let acceptsCertificates: Bool

    init(_ parts: LoopParts) {
        let shared = parts.shared
        self.parts = parts
        self.acceptsCertificates = shared.clientTrusts != nil
        self.authorization = Authorization(
            tokens: shared.tokens,
            certificates: shared.clientTrusts.map {
                ClientCertificates($0, environment: shared.configuration.environment)
            }
        )
    }

    /// Authenticates the sender of a request and checks that the operation is permitted.
    ///
    /// - `parameter`: the value of the parameter in the path.
    /// - Throws: `APIError` if no valid proof is shown, or if the proof does not authorize this operation.
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
            case .admin: .operators(isLocal: self.parts.shared.areLocal[request.listener])
            }
        defer {
            if door == .workers, self.authorization.tokens.takeFirstKey() {
                self.parts.outbox.append(.requireWorkerAuthentication)
            }
        }
        do throws(APIError) {
            return try self.authorization.admit(
                { AuthorizationField(request) },
                on: connection,
                through: door,
                by: operation.access,
                topic: parameter,
                count: { token throws(APIError) in try self.parts.counts.count(token, on: connection) }
            )
        } catch {
            if error.status == 401, error != .missingToken {
                self.parts.shared.log.write(.tokenRefused, ["reason": error.reason, "cause": error.message])
            }
            throw error
        }
    }

    // MARK: Client certificates

    /// Returns the holder of a connection's client certificate; nil if the connection has no certificate.
    func holder(of connection: ConnectionID) -> CertificateHolder? {
        // A call of a method copies `authorization`, which costs more than the lookup.
        self.acceptsCertificates ? self.authorization.holder(of: connection) : nil
    }

    /// Verifies a certificate. If it is invalid, the connection ends immediately with SETTINGS and GOAWAY, as at APNs.
    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        do throws(CertificateFault) {
            try self.authorization.certificates?.certificateShown(certificate, on: connection)
        } catch {
            return self.end(connection, error)
        }
        guard let holder = self.holder(of: connection), !self.parts.counts.count(certificateOf: holder.subject) else {
            return
        }
        self.authorization.certificates?.connectionClosed(connection)
        self.end(connection, holder.tooManyConnections)
    }

    /// Ends the connections whose certificates were revoked or have expired. The caller must end their streams.
    func endConnectionsWithBadCertificates() {
        for (holder, fault) in self.authorization.certificates?.takeFaulty(now: SystemClock.wall) ?? [] {
            self.parts.counts.uncount(certificateOf: holder.subject)
            self.end(holder.connection, fault)
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.parts.counts.connectionClosed(connection)
        if let holder = self.holder(of: connection) { self.parts.counts.uncount(certificateOf: holder.subject) }
        self.authorization.certificates?.connectionClosed(connection)
    }

    private func end(_ connection: ConnectionID, _ fault: CertificateFault) {
        self.parts.answers.goAway(connection, fault.reason)
        let fields = ["reason": fault.reason.rawValue, "cause": fault.cause, "subject": fault.subject]
        self.parts.shared.log.write(.clientCertificate, fields)
    }
}
