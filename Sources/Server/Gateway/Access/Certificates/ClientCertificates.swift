import Dispatch
package import HTTPTransport
import Platform
package import Wire

/// The client certificates of one loop's connections.
///
/// A certificate is verified when it is shown, when it has expired, and when authorities or revocations have changed.
/// For a request, only one array element is read.
package struct ClientCertificates {
    private let trusts: ClientTrusts
    private let environment: APNSEnvironment?
    private var generation: UInt64
    /// The certificate holders, indexed by the connections' positions in the loop's table.
    private var holders: [CertificateHolder?] = []
    /// The earliest expiry of the certificates, in milliseconds since 1970.
    private var nextExpiry = Int64.max

    /// - `environment`: the environment of the gateway; nil to accept certificates of both.
    package init(_ trusts: ClientTrusts, environment: APNSEnvironment?) {
        self.trusts = trusts
        self.environment = environment
        self.generation = trusts.generation
    }

    /// Returns the holder of a connection's certificate; nil if the connection has no certificate.
    package func holder(of connection: ConnectionID) -> CertificateHolder? {
        let index = Int(connection.index)
        guard index < self.holders.count, let holder = self.holders[index], holder.connection == connection else {
            return nil
        }
        return holder
    }

    /// Verifies a connection's certificate and stores its holder.
    ///
    /// - Throws: the fault of the certificate, after which the caller must end the connection.
    package mutating func certificateShown(
        _ certificate: ClientCertificate,
        on connection: ConnectionID
    ) throws(CertificateFault) {
        let trust = self.trusts.current().value
        let holder = try CertificateHolder(certificate, on: connection, trust: trust, environment: self.environment)
        let index = Int(connection.index)
        while self.holders.count <= index { self.holders.append(nil) }
        self.holders[index] = holder
        self.nextExpiry = min(self.nextExpiry, holder.expiresAt)
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        if self.holder(of: connection) != nil { self.holders[Int(connection.index)] = nil }
    }

    /// Removes the holders whose certificates are no longer valid.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the removed holders and their faults. The caller must end their connections.
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
                // `fault` reads the clock again and may not find the certificate expired yet. The next call then checks
                // it again.
                self.nextExpiry = min(self.nextExpiry, holder.expiresAt)
            }
        }
        return faulty
    }
}

/// The holder of the client certificate that a connection has shown.
package final class CertificateHolder {
    /// The extensions that name the environments of a certificate. The values of these extensions are ignored.
    private static let environments: [(APNSEnvironment, identifier: String)] = [
        (.development, "1.2.840.113635.100.6.3.1"), (.production, "1.2.840.113635.100.6.3.2"),
    ]
    private static let topicList = "1.2.840.113635.100.6.3.6"
    /// The maximum length of a subject in the log, in characters.
    private static let subjectCharactersMax = 200

    package let connection: ConnectionID
    package let role: CertificateRole
    package let topics: CertificateTopics
    /// `topics` in the form of a worker API scope.
    let scope: TopicScope
    /// The time at which the certificate expires, in milliseconds since 1970.
    let expiresAt: Int64
    /// The subject of the certificate, under which the holder's connections are counted.
    package let subject: String
    private let certificate: ClientCertificate

    /// - `environment`: the environment of the gateway; nil to accept certificates of both.
    /// - Throws: the fault of the certificate.
    init(
        _ certificate: ClientCertificate,
        on connection: ConnectionID,
        trust: ClientTrust,
        environment: APNSEnvironment?
    ) throws(CertificateFault) {
        // The trust is checked first. The holder of a self-signed certificate must not learn which contents would be
        // valid.
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

    /// Returns the reason why the certificate is currently not trusted; nil if it is trusted.
    func fault(trust: ClientTrust) -> CertificateFault? {
        Self.fault(of: self.certificate, trust: trust)
    }

    /// The fault of a further connection whose holder already has the maximum number of connections.
    package var tooManyConnections: CertificateFault {
        let cause = "its holder has as many connections as limits.connectionsPerCredentialMax allows"
        return Self.fault(of: self.certificate, .tooManyRequests, cause)
    }

    /// Authenticates the sender of a push. The topic of the push is checked later.
    package func authenticate(_ push: PushRequest) throws(APNSReason) {
        guard self.role == .provider else { throw .forbidden }
        // APNs accepts no token on a connection with a certificate, but it accepts these push types only with a token.
        guard !push.needsProviderToken else { throw .missingProviderToken }
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
        case .badSubject: "the UID of its subject is not a topic; have one made with a topic there"
        case .badList: "its extension \(Self.topicList) is not a list of topics; have one made as Credentials.md shows"
        }
    }
}

/// The reason why a client certificate is refused.
package struct CertificateFault: Error, Hashable, Sendable {
    /// The reason in the connection's GOAWAY: `badCertificate` or `badCertificateEnvironment`.
    package let reason: APNSReason
    /// The subject of the certificate.
    package let subject: String
    /// The fault and its remedy, for the log.
    package let cause: String
}

/// The role of a client certificate's holder. Each holder has exactly one role.
package enum CertificateRole: Hashable, Sendable {
    /// The holder may send pushes.
    case provider
    /// The holder may subscribe, answer wakes, register and remove devices, and report conditions.
    case worker

    /// The organizational unit in the subject of a worker's certificate. Every other certificate belongs to a provider.
    static let workerUnit = "worker"
}

/// The files named by `tls.clientCA` and `tls.clientCRL`.
package struct ClientTrustFiles: Sendable {
    /// The stamps of both files. A stamp changes whenever its file changes.
    struct Stamps: Hashable {
        let authorities: CredentialFile.Stamp?
        let revocations: CredentialFile.Stamp?
    }

    /// The maximum size of the file of authorities in bytes. It suffices for several hundred authorities.
    static let authoritiesBytesMax = 1 << 20
    /// The maximum size of the file of revocations in bytes. It suffices for about 250,000 certificates.
    static let revocationsBytesMax = 16 << 20

    private let authorities: String
    private let revocations: String?

    /// - `revocations`: the path of the revocation lists; nil if there are none.
    package init(authorities: String, revocations: String?) {
        self.authorities = authorities
        self.revocations = revocations
    }

    package var withoutRevocations: ClientTrustFiles {
        ClientTrustFiles(authorities: self.authorities, revocations: nil)
    }

    func stamps() throws(CredentialError) -> Stamps {
        Stamps(
            authorities: try CredentialFile.stamp(self.authorities, isPrivate: false),
            revocations: try self.revocations.flatMap { path throws(CredentialError) in
                try CredentialFile.stamp(path, isPrivate: false)
            }
        )
    }

    /// - Throws: `CredentialError` that names the file if it cannot be read or has invalid contents.
    package func read() throws(CredentialError) -> ClientTrust {
        let authorities = try CredentialFile.bytes(self.authorities, bytesMax: Self.authoritiesBytesMax)
        let revocations = try self.revocations.map { path throws(CredentialError) in
            (pem: try CredentialFile.bytes(path, bytesMax: Self.revocationsBytesMax), file: path)
        }
        do throws(TransportError) {
            return try ClientTrust(authorities: (authorities, self.authorities), revocations: revocations)
        } catch {
            throw CredentialError(message: error.message)
        }
    }

    /// The log message about revocation lists that are past their next update.
    var overdue: String {
        "\(self.revocations ?? "") holds a list whose next update is overdue; what it revokes stays revoked, and the "
            + "next one is read as soon as it exists."
    }
}

/// The current trust in client certificates, which can be replaced.
package typealias ClientTrusts = Versioned<ClientTrust>

/// Reads the authorities of client certificates and their revocation lists. Reads them again whenever a file changes.
///
/// The watch polls once a second. It therefore notices replaced files, even behind symbolic links. A changed file is
/// read when two polls in a row find the same stamp, because half of a list would also be valid. While a file cannot be
/// read, the previous contents stay in effect.
///
/// `@unchecked Sendable`: after `init`, only `queue` uses `change`, `reported` and `trusts`. The owner may use `trusts`
/// until it calls `feed`.
package final class ClientTrustWatch: @unchecked Sendable {
    private static let lookSeconds = 1

    /// The trust store that receives the files' contents.
    package private(set) var trusts: ClientTrusts
    private let files: ClientTrustFiles
    private let onFailure: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "client certificates")
    private let timer: any DispatchSourceTimer
    private var change: SettledChange<ClientTrustFiles.Stamps>
    /// The last reported message. The same message is not reported again.
    private var reported: String?

    /// Reads the files and starts to watch them.
    ///
    /// - `onFailure`: receives the reason if a changed file is not accepted or a list is past its next update.
    /// - Throws: `CredentialError` if a file cannot be used.
    package init(
        _ files: ClientTrustFiles,
        onFailure: @escaping @Sendable (String) -> Void
    ) throws(CredentialError) {
        self.files = files
        self.onFailure = onFailure
        // The stamps are read first. A file that changes during the read is then read again.
        self.change = SettledChange(try files.stamps())
        let trust = try files.read()
        self.trusts = ClientTrusts(trust)
        self.timer = DispatchSource.makeTimerSource(queue: self.queue)
        self.timer.schedule(deadline: .now() + .seconds(Self.lookSeconds), repeating: .seconds(Self.lookSeconds))
        self.tell(trust.isOverdue ? files.overdue : nil)
        self.timer.setEventHandler { [weak self] in self?.look() }
        self.timer.resume()
    }

    deinit { self.timer.cancel() }

    /// Passes the current trust and all further changes to another trust store.
    package func feed(_ trusts: ClientTrusts) {
        self.queue.sync {
            trusts.replace(with: self.trusts.current().value)
            self.trusts = trusts
        }
    }

    /// Stops watching.
    package func stop() {
        self.timer.cancel()
    }

    private func look() {
        guard !self.timer.isCancelled else { return }
        do throws(CredentialError) {
            guard self.change.shouldTake(try self.files.stamps()) else { return }
            let trust = try self.files.read()
            // Meanwhile, a reload may have connected another watch to the same store.
            guard !self.timer.isCancelled else { return }
            self.trusts.replace(with: trust)
            self.tell(trust.isOverdue ? self.files.overdue : nil)
        } catch {
            self.change.failed()
            self.tell("\(error.message) What was read before holds.")
        }
    }

    private func tell(_ trouble: String?) {
        if let trouble, trouble != self.reported { self.onFailure(trouble) }
        self.reported = trouble
    }
}
