import Dispatch
package import HTTPTransport
import Platform
import Synchronization
package import Wire

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
    package func authenticate(_ push: PushRequest) throws(APNSReason) {
        guard self.role == .provider else { throw .forbidden }
        // APNs takes no token on such a connection, and these types with none but a token.
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

/// The files of `tls.clientCA` and `tls.clientCRL`.
package struct ClientTrustFiles: Sendable {
    /// What tells one state of the files from another.
    struct Stamps: Hashable {
        let authorities: CredentialFile.Stamp?
        let revocations: CredentialFile.Stamp?
    }

    /// The most bytes of the authorities; some hundreds of them.
    static let authoritiesBytesMax = 1 << 20
    /// The most bytes of what they have revoked; about a quarter of a million certificates.
    static let revocationsBytesMax = 16 << 20

    private let authorities: String
    private let revocations: String?

    /// The files at these paths.
    ///
    /// - `revocations`: nil when nothing is revoked.
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

    /// - Throws: `CredentialError` that names the file that cannot be read, or does not hold what it should.
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

    /// What to tell of lists that are past their time.
    var overdue: String {
        "\(self.revocations ?? "") holds a list whose next update is overdue; what it revokes stays revoked, and the "
            + "next one is read as soon as it exists."
    }
}

/// Reads the authorities of client certificates and what they have revoked, and again whenever a file changes.
///
/// It looks once a second, so that whatever takes a file's place is noticed, behind links too. A file that has changed
/// is read when two looks in a row find it the same: half of a list would be read as a whole one. While a file cannot
/// be read, what was read before holds. It is `Sendable` without the compiler's proof: `change`, `told` and `trusts`
/// are touched on `queue` alone once `init` has returned, but for what its owner does before `feed`.
package final class ClientTrustWatch: @unchecked Sendable {
    private static let lookSeconds = 1

    /// Where the trust goes that it reads.
    package private(set) var trusts: ClientTrusts
    private let files: ClientTrustFiles
    private let onTrouble: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "client certificates")
    private let timer: any DispatchSourceTimer
    private var change: SettledChange<ClientTrustFiles.Stamps>
    /// What was said last, so that it is said once.
    private var told: String?

    /// Reads the files, and looks after them from then on.
    ///
    /// - `onTrouble`: hears why a changed file is not taken, and of a list that is past its time.
    /// - Throws: `CredentialError` when a file cannot be used now.
    package init(
        _ files: ClientTrustFiles,
        onTrouble: @escaping @Sendable (String) -> Void
    ) throws(CredentialError) {
        self.files = files
        self.onTrouble = onTrouble
        // Before they are read: what changes meanwhile is read again.
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

    /// Gives what was read to others than its own trusts, from now on.
    package func feed(_ trusts: ClientTrusts) {
        self.queue.sync {
            trusts.replace(with: self.trusts.current().trust)
            self.trusts = trusts
        }
    }

    /// Watches no more.
    package func stop() {
        self.timer.cancel()
    }

    private func look() {
        guard !self.timer.isCancelled else { return }
        do throws(CredentialError) {
            guard self.change.looked(try self.files.stamps()) else { return }
            let trust = try self.files.read()
            self.trusts.replace(with: trust)
            self.tell(trust.isOverdue ? self.files.overdue : nil)
        } catch {
            self.change.failed()
            self.tell("\(error.message) What was read before holds.")
        }
    }

    private func tell(_ trouble: String?) {
        if let trouble, trouble != self.told { self.onTrouble(trouble) }
        self.told = trouble
    }
}

/// Whose client certificates are trusted at this moment; every loop asks, one thread changes it.
package final class ClientTrusts: Sendable {
    private let trust: Mutex<ClientTrust>
    private let count = Atomic<UInt64>(0)

    package init(_ trust: ClientTrust) {
        self.trust = Mutex(trust)
    }

    /// Counts the changes: what was verified under another number may be true no more.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// Whom to trust, and the number of that state.
    func current() -> (generation: UInt64, trust: ClientTrust) {
        self.trust.withLock { (self.generation, $0) }
    }

    package func replace(with trust: ClientTrust) {
        self.trust.withLock {
            $0 = trust
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
