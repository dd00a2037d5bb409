package import HTTPTransport
package import Wire

/// Who is at the other end of a connection, by the client certificate it has shown.
package final class CertificateHolder {
    /// What a certificate says it may be used with, in one of two extensions that have no contents of interest.
    private static let environments: [(APNSEnvironment, identifier: String)] = [
        (.development, "1.2.840.113635.100.6.3.1"), (.production, "1.2.840.113635.100.6.3.2"),
    ]
    private static let topicList = "1.2.840.113635.100.6.3.6"
    /// The most characters of a subject that are logged.
    private static let subjectCharactersMax = 200

    package let connection: ConnectionID
    package let role: CertificateRole
    package let topics: CertificateTopics
    /// `topics`, for the worker API.
    let scope: TopicScope
    /// The first moment, in milliseconds since 1970, at which it is good no more.
    let expiresAt: Int64
    /// The certificate's subject; its holder's connections are counted by it.
    package let subject: String
    private let certificate: ClientCertificate

    /// - Parameter environment: the gateway's own; nil when it takes certificates of both.
    /// - Throws: the certificate's fault.
    init(
        _ certificate: ClientCertificate,
        on connection: ConnectionID,
        trust: ClientTrust,
        environment: APNSEnvironment?
    ) throws(CertificateFault) {
        // First of all: whoever signed its certificate itself is not told how to write it.
        if let fault = Self.fault(of: certificate, trust: trust) { throw fault }
        self.connection = connection
        self.certificate = certificate
        self.expiresAt = certificate.expiresAt
        self.subject = certificate.subject
        self.role = certificate.organizationalUnits.contains(CertificateRole.workerUnit) ? .worker : .provider
        do throws(CertificateTopics.Fault) {
            self.topics = try Self.topics(of: certificate)
        } catch {
            throw Self.fault(of: certificate, .badCertificate, Self.cause(error))
        }
        self.scope = .only(Set(self.topics.names))
        let named = Self.environments.filter { certificate.value(ofExtension: $0.identifier) != nil }.map(\.0)
        guard let environment, !named.isEmpty, !named.contains(environment) else { return }
        let cause = "it is for \(named[0].rawValue), and this gateway's environment is \(environment.rawValue)"
        throw Self.fault(of: certificate, .badCertificateEnvironment, cause)
    }

    /// Why the certificate is not to be trusted now; nil when it is.
    func fault(trust: ClientTrust) -> CertificateFault? {
        Self.fault(of: self.certificate, trust: trust)
    }

    /// The fault of a holder that has as many connections as one may have.
    package var tooManyConnections: CertificateFault {
        let cause = "its holder has as many connections as limits.connectionsPerCredentialMax allows"
        return Self.fault(of: self.certificate, .tooManyRequests, cause)
    }

    /// Lets a push go on to the check of its topic.
    package func authenticate(_ headers: PushHeaders) throws(APNSReason) {
        guard self.role == .provider else { throw .forbidden }
        // APNs takes no token on such a connection, and these types with none but a token.
        guard !headers.needsProviderToken else { throw .missingProviderToken }
    }

    private static func topics(of certificate: ClientCertificate) throws(CertificateTopics.Fault) -> CertificateTopics {
        let subject = certificate.userIDs
        guard let list = certificate.value(ofExtension: Self.topicList) else {
            return try CertificateTopics(subject: subject, list: nil)
        }
        let result = list.withByteView { list in
            Result { () throws(CertificateTopics.Fault) in try CertificateTopics(subject: subject, list: list) }
        }
        return try result.get()
    }

    private static func fault(of certificate: ClientCertificate, trust: ClientTrust) -> CertificateFault? {
        trust.fault(of: certificate).map { Self.fault(of: certificate, .badCertificate, $0) }
    }

    private static func fault(
        of certificate: ClientCertificate,
        _ reason: APNSReason,
        _ cause: String
    ) -> CertificateFault {
        let subject = String(certificate.subject.prefix(Self.subjectCharactersMax))
        return CertificateFault(reason: reason, subject: subject, cause: cause)
    }

    private static func cause(_ fault: CertificateTopics.Fault) -> String {
        switch fault {
        case .noTopic: "it names no topic; have one made with a topic as UID of its subject"
        case .badSubject: "the UID of its subject is no topic; have one made with a topic there"
        case .badList: "its extension \(Self.topicList) is no list of topics; have one made as Credentials.md shows"
        }
    }
}

/// Why a client certificate is refused.
package struct CertificateFault: Error, Hashable, Sendable {
    /// What the connection's GOAWAY says: `badCertificate` or `badCertificateEnvironment`.
    package let reason: APNSReason
    /// The subject of the certificate.
    package let subject: String
    /// What is wrong with it and what to do, for the log.
    package let cause: String
}

/// What the holder of a client certificate may do; never both.
package enum CertificateRole: Hashable, Sendable {
    /// Push.
    case provider
    /// Subscribe, answer wakes, register and remove devices, report conditions.
    case worker

    /// The organizational unit of a worker's subject; who has another, or none, is a provider.
    static let workerUnit = "worker"
}
