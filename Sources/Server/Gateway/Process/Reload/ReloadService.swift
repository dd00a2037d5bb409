import Dispatch
import Engine
import FoundationEssentials
import HTTPTransport
import Platform
import ServiceManager
import Storage
import Synchronization
import Wire

/// Reads the configuration again, and applies it to the running gateway completely or not at all.
///
/// Reloads run one at a time on a serial queue. The class is `@unchecked Sendable`: after `attach` was called, only
/// `queue` uses its mutable state.
final class ReloadService: @unchecked Sendable {
    /// The parts of the gateway that a reload changes.
    struct Target: Sendable {
        let server: HTTPServer
        let history: any HistoryService
        let webhooks: WebhookService
        var certificate: ServerCertificate?
        var watches: CredentialWatches
    }

    /// The stages of a reload, as reported to the service manager.
    enum Stage: Sendable {
        case began
        /// `taken`: the new configuration is in effect. `refused`: it was faulty, and nothing has changed.
        case taken, refused
    }

    private let queue = DispatchQueue(label: "reload")
    private let source: ConfigurationSource?
    private let log: GatewayLog
    private let onStage: @Sendable (Stage) -> Void
    private let drainTimeout: Atomic<Int64>
    private let namedTopics: Mutex<[String]>
    /// The configuration in effect.
    private var configuration: GatewayConfiguration
    private var shared: SharedParts?
    private var target: Target?

    /// - `configuration`: the configuration at the start.
    /// - `source`: reads the configuration again; nil if that is impossible.
    init(
        _ configuration: GatewayConfiguration,
        source: ConfigurationSource?,
        log: GatewayLog,
        onStage: @escaping @Sendable (Stage) -> Void
    ) {
        self.configuration = configuration
        self.source = source
        self.log = log
        self.onStage = onStage
        self.drainTimeout = Atomic(configuration.drainTimeoutMilliseconds)
        self.namedTopics = Mutex(Self.topics(configuration))
    }

    /// The maximum time that a shutdown waits for wakes in flight, in milliseconds, according to the last reload.
    var drainTimeoutMilliseconds: Int64 { self.drainTimeout.load(ordering: .relaxed) }

    /// The topics in the current configuration.
    var topics: [String] { self.namedTopics.withLock { $0 } }

    private static func topics(_ configuration: GatewayConfiguration) -> [String] {
        Array(Set(configuration.topicPolicies.keys).union(configuration.webhooks.keys))
    }

    /// Sets the parts that reloads change. Called before the first reload.
    func attach(_ target: Target, _ shared: SharedParts) {
        self.target = target
        self.shared = shared
    }

    /// Waits for the current reload, and prevents later ones.
    func stop() {
        self.queue.sync {
            self.target?.watches.stop()
            self.target = nil
            self.shared = nil
        }
    }

    /// Begins a reload because of a signal. The result is logged.
    func start() {
        self.queue.async { self.reload { _ in } }
    }

    /// Begins a reload. Answers `reply` when the new configuration is in effect or was refused.
    ///
    /// - Throws: `APIError` if the gateway has no configuration to read again.
    func start(reply: StreamAddress) throws(APIError) {
        guard self.source != nil else { throw .nothingToReload }
        self.queue.async {
            self.reload { result in
                let outcome: Outcome
                switch result {
                case .success(let report):
                    outcome = .json { report.write(to: &$0) }
                case .failure(let error): outcome = .refused(error)
                }
                var effects = EffectBatch()
                effects.append(outcome, to: reply)
                self.shared?.mailboxes[reply].deliver(&effects)
            }
        }
    }

    /// Performs a reload.
    ///
    /// - Parameter then: receives the result, once, on the queue.
    private func reload(_ then: @escaping @Sendable (Result<ReloadReport, APIError>) -> Void) {
        guard let shared = self.shared, let target = self.target, !shared.isDraining else {
            return then(.failure(.shutdown))
        }
        guard let source = self.source else { return then(.failure(.nothingToReload)) }
        self.onStage(.began)
        do throws(ConfigurationError) {
            let read = try source.read()
            let transition = ConfigurationTransition(from: self.configuration, to: read)
            let changed = try self.apply(transition, shared, target)
            self.tell(changed, transition.needsRestart)
            let settings = EngineSettings(transition.next) { policyVersion in
                let needsRestart = transition.needsRestart
                let report = ReloadReport(policyVersion: policyVersion, changed: changed, needsRestart: needsRestart)
                // Continue on the queue, because the engine's thread must not wait.
                self.queue.async { self.taken(report, then) }
            }
            var batch = CommandBatch()
            batch.append(.configure(settings))
            shared.engine.submit(&batch)
        } catch {
            for fault in error.faults {
                self.log.write(
                    .configurationFault,
                    ["key": fault.key, "problem": fault.problem, "remedy": fault.remedy]
                )
            }
            self.log.write(.reloadRefused, ["faults": "\(error.faults.count)"])
            self.onStage(.refused)
            then(.failure(.badConfiguration(error)))
        }
    }

    /// Completes a reload after the engine has applied the configuration.
    private func taken(_ report: ReloadReport, _ then: (Result<ReloadReport, APIError>) -> Void) {
        self.log.write(
            .reloaded,
            [
                "changed": "\(report.changed.count)", "needsRestart": "\(report.needsRestart.count)",
                "policyVersion": "\(report.policyVersion)",
            ]
        )
        self.onStage(.taken)
        then(.success(report))
    }

    /// Reads all files in the configuration. If they are valid, applies the configuration to every part except the
    /// engine, which is changed last.
    ///
    /// - Returns: the changes, including files with new contents.
    private func apply(
        _ transition: ConfigurationTransition,
        _ shared: SharedParts,
        _ target: Target
    ) throws(ConfigurationError) -> [ConfigurationChange] {
        let next = transition.next
        var faults: [ConfigurationFault] = []
        var certificate: ServerCertificate?
        // A restart turns the edge off: until then it may keep its certificate, whose file may be gone.
        let isLeaving = transition.needsRestart.contains { $0.key == "tls.certificate" }
        do throws(TransportError) { certificate = try ServerCertificate(next) } catch {
            if !isLeaving {
                faults.append(ConfigurationFault(key: "tls.certificate", CredentialError(message: error.message)))
            }
        }
        var hooks: [Webhook] = []
        do {
            hooks = try WebhookService.webhooks(next)
            try target.webhooks.prepare(hooks)
        } catch {
            faults.append(ConfigurationFault(key: "topics", CredentialError(message: "\(error)")))
        }
        var watches: CredentialWatches?
        do throws(ConfigurationError) {
            let before = self.configuration
            watches = try CredentialWatches(next, log: self.log, keeping: target.watches, of: before)
        } catch {
            faults += error.faults
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }

        var changed = transition.changed
        if let certificate, let old = target.certificate, !certificate.isSame(as: old) {
            if let change = certificate.change(from: old) { changed.append(change) }
            target.server.setContext(certificate.context)
            self.target?.certificate = certificate
        }
        if let watches {
            watches.takeOver(from: target.watches, shared)
            self.target?.watches = watches
        }
        target.webhooks.begin(hooks)
        self.log.set(level: next.logLevel, format: next.logFormat)
        self.drainTimeout.store(next.drainTimeoutMilliseconds, ordering: .relaxed)
        self.namedTopics.withLock { $0 = Self.topics(next) }
        shared.credentials.setMax(next.limits.connectionsPerCredentialMax)
        shared.workerStreams.setMax(next.limits.streamsPerCredentialMax)
        shared.rates.setLimits(next.limits)
        target.server.setLimits(next.limits.transport)
        target.history.setLimits(GatewayStore(next).historyLimits)
        shared.services.testPushRules.withLock { $0 = next.testPushRules }
        let settings = LoopSettings(next)
        for loop in shared.mailboxes.loops { loop.deliver(settings) }
        self.configuration = next
        return changed
    }

    private func tell(_ changed: [ConfigurationChange], _ needsRestart: [ConfigurationChange]) {
        let events = changed.map { (GatewayEvent.configurationChanged, $0) }
        for (event, change) in events + needsRestart.map({ (.configurationNeedsRestart, $0) }) {
            self.log.write(event, ["key": change.key, "old": change.old.written, "new": change.new.written])
        }
    }
}

/// The result of a reload.
struct ReloadReport: Sendable {
    /// The number of the launch policy in effect.
    let policyVersion: UInt32
    let changed: [ConfigurationChange]
    let needsRestart: [ConfigurationChange]

    /// Appends the answer to `POST /v1/reload`.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("policyVersion", self.policyVersion)
        for (name, changes) in [("changed", self.changed), ("needsRestart", self.needsRestart)] {
            writer.key(name)
            writer.beginArray()
            for change in changes { change.write(to: &writer) }
            writer.endArray()
        }
        writer.endObject()
    }
}

/// The watches of the credential files in a configuration. A watch runs until the process ends or the configuration
/// names another file.
struct CredentialWatches: Sendable {
    /// The watch of provider keys; nil if providers need no tokens.
    private(set) var providerKeys: ProviderKeyWatch?
    /// The watch of the certificate authorities of clients; nil if no certificates are requested.
    private(set) var clientTrust: ClientTrustWatch?

    /// Reads the credential files of `configuration`, and watches them for changes.
    ///
    /// - `watches`: the current watches. Those whose files are the same continue.
    /// - Throws: `ConfigurationError` with the keys of the unusable files.
    init(
        _ configuration: GatewayConfiguration,
        log: GatewayLog,
        keeping watches: CredentialWatches? = nil,
        of before: GatewayConfiguration? = nil
    ) throws(ConfigurationError) {
        var faults: [ConfigurationFault] = []
        if let watches, configuration.providerKeysFolder == before?.providerKeysFolder {
            self.providerKeys = watches.providerKeys
        } else if let folder = configuration.providerKeysFolder {
            do throws(CredentialError) {
                self.providerKeys = try ProviderKeyWatch(folder) { log.write(.providerKeys, ["cause": $0.message]) }
            } catch {
                faults.append(ConfigurationFault(key: "providerKeys", error))
            }
        }
        let isSame =
            configuration.clientCAFile == before?.clientCAFile && configuration.clientCRLFile == before?.clientCRLFile
        if let watches, isSame {
            self.clientTrust = watches.clientTrust
        } else if let files = configuration.clientTrustFiles {
            do throws(CredentialError) {
                self.clientTrust = try ClientTrustWatch(files) { log.write(.clientTrust, ["cause": $0]) }
            } catch {
                faults.append(ConfigurationFault(key: "tls.clientCA", error))
            }
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
    }

    /// Connects new watches to the loops, and stops the watches that they replace.
    func takeOver(from watches: CredentialWatches, _ shared: SharedParts) {
        if let new = self.providerKeys, new !== watches.providerKeys, let keys = shared.providerKeys {
            watches.providerKeys?.stop()
            new.feed(keys)
        }
        if let new = self.clientTrust, new !== watches.clientTrust, let trusts = shared.clientTrusts {
            watches.clientTrust?.stop()
            new.feed(trusts)
        }
    }

    func stop() {
        self.providerKeys?.stop()
        self.clientTrust?.stop()
    }
}

/// The certificate for TLS handshakes of the edge, and the contents of its file to detect changes.
struct ServerCertificate: Sendable {
    let context: TLSContext
    private let file: String
    private let contents: Data

    /// Reads the certificate and key of `configuration`. Returns nil if the edge is off.
    ///
    /// - Throws: `TransportError` with the file at fault.
    init?(_ configuration: GatewayConfiguration) throws(TransportError) {
        guard !configuration.edge.isOff else { return nil }
        self.file = configuration.certificateFile ?? ""
        // Read the contents before the context reads the file. A change between both reads is then detected at the next
        // reload.
        self.contents =
            OrdinaryFile.isOther(self.file) ? Data() : FileManager.default.contents(atPath: self.file) ?? Data()
        self.context = try TLSContext(
            certificateChainFile: self.file,
            privateKeyFile: configuration.privateKeyFile ?? "",
            asksForCertificate: configuration.clientCAFile != nil
        )
    }

    /// Returns the change from `old`, which is not the same, if it has the same file; nil otherwise.
    func change(from old: ServerCertificate) -> ConfigurationChange? {
        guard self.file == old.file else { return nil }
        return ConfigurationChange(key: "tls.certificate", old: old.shown, new: self.shown)
    }

    /// Returns true if `old` has the same file with the same contents.
    func isSame(as old: ServerCertificate) -> Bool { self.file == old.file && self.contents == old.contents }

    private var shown: JSONValue {
        guard let expiry = self.context.certificateExpiry else { return .string(self.file) }
        return .string("\(self.file), which ends \(WallTime.text(expiry * 1000))")
    }
}
