package import HTTPTransport
import Wire

/// The client certificates of one loop's connections.
///
/// Each is verified when it is shown, and again when other authorities or revocations are read, or when it has expired;
/// for a request it costs one look into an array.
package struct ClientCertificates {
    private let trusts: ClientTrusts
    private let environment: APNSEnvironment?
    private var generation: UInt64
    /// By the connections' places in the loop's table.
    private var holders: [CertificateHolder?] = []
    /// No certificate expires before.
    private var nextExpiry = Int64.max

    /// - `environment`: the gateway's own; nil when it takes certificates of both.
    package init(_ trusts: ClientTrusts, environment: APNSEnvironment?) {
        self.trusts = trusts
        self.environment = environment
        self.generation = trusts.generation
    }

    /// Who is at the other end of a connection; nil when it has shown no certificate.
    package func holder(of connection: ConnectionID) -> CertificateHolder? {
        let index = Int(connection.index)
        guard index < self.holders.count, let holder = self.holders[index], holder.connection == connection else {
            return nil
        }
        return holder
    }

    /// Takes a certificate.
    ///
    /// - Throws: its fault; the connection is to end then.
    package mutating func certificateShown(
        _ certificate: ClientCertificate,
        on connection: ConnectionID
    ) throws(CertificateFault) {
        let trust = self.trusts.current().trust
        let holder = try CertificateHolder(certificate, on: connection, trust: trust, environment: self.environment)
        let index = Int(connection.index)
        while self.holders.count <= index { self.holders.append(nil) }
        self.holders[index] = holder
        self.nextExpiry = min(self.nextExpiry, holder.expiresAt)
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        if self.holder(of: connection) != nil { self.holders[Int(connection.index)] = nil }
    }

    /// Forgets those that are good no more.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: who they were, whose connections are to end.
    package mutating func takeFaulty(now: Int64) -> [(CertificateHolder, CertificateFault)] {
        let isNew = self.trusts.generation != self.generation
        guard isNew || now >= self.nextExpiry else { return [] }
        let trust: ClientTrust
        (self.generation, trust) = self.trusts.current()
        var faulty: [(CertificateHolder, CertificateFault)] = []
        self.nextExpiry = .max
        for (index, holder) in self.holders.enumerated() {
            guard let holder else { continue }
            if isNew || now >= holder.expiresAt, let fault = holder.fault(trust: trust) {
                self.holders[index] = nil
                faulty.append((holder, fault))
            } else {
                // One that ended between two looks at the clock is looked at again.
                self.nextExpiry = min(self.nextExpiry, holder.expiresAt)
            }
        }
        return faulty
    }
}
