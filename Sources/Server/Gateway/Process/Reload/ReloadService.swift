import Dispatch
import Engine
import HTTPTransport
import Platform
import ServiceManager
import Storage
import Synchronization
import Wire

/// Brings a configuration that was read anew into force, all of it or nothing, while the gateway goes on.
///
/// One reload at a time, on a queue of its own. It is `Sendable` without the compiler's proof: everything mutable is
/// touched on `queue` alone once `attach` was called.
final class ReloadService: Reloads, @unchecked Sendable {
    /// What a reload reaches into.
    struct Target: Sendable {
        let server: HTTPServer
        let history: any HistoryService
        let webhooks: WebhookService
        let certificate: ServerCertificate?
        let watches: CredentialWatches
    }

    /// Around every reload, whoever asked for it: what a service manager is told of.
    enum Stage: Sendable {
        case began
        /// What was read is in force, or it was faulty and nothing has changed.
        case taken, refused
    }

    private let queue = DispatchQueue(label: "reload")
    private let source: ConfigurationSource?
    private let log: GatewayLog
    private let onStage: @Sendable (Stage) -> Void
    private let drainTimeout: Atomic<Int64>
    private let namedTopics: Mutex<[String]>
    private var course = ReloadCourse()
    /// The configuration in force.
    private var configuration: GatewayConfiguration
    private var shared: SharedParts?
    private var target: Target?
    private var certificate: ServerCertificate?
    private var watches: CredentialWatches?

    /// - Parameters:
    ///   - configuration: what is in force at the start.
    ///   - source: where it is read again; nil when that cannot be done.
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

    /// How long a shutdown waits for wakes in flight, as of now.
    var drainTimeoutMilliseconds: Int64 { self.drainTimeout.load(ordering: .relaxed) }

    /// The topics that the configuration in force names.
    var topics: [String] { self.namedTopics.withLock { $0 } }

    private static func topics(_ configuration: GatewayConfiguration) -> [String] {
        Array(Set(configuration.topicPolicies.keys).union(configuration.webhooks.keys))
    }

    /// Says what reloads reach into; before the first of them.
    func attach(_ target: Target, _ shared: SharedParts) {
        self.course.take(.attached)
        self.target = target
        self.shared = shared
        self.certificate = target.certificate
        self.watches = target.watches
    }

    /// Ends with the reload that is under way.
    func stop() {
        self.queue.sync {
            self.course.take(.stopped)
            self.watches?.stop()
            self.target = nil
            self.shared = nil
        }
    }

    /// Reloads because of a signal: what it came to is logged.
    func start() {
        self.queue.async { self.reload { _ in } }
    }

    /// Reloads, and answers `reply` once the new configuration is in force, or why it is not.
    ///
    /// - Throws: `APIError` when there is nothing to read again.
    package func start(reply: StreamAddress) throws(APIError) {
        guard self.source != nil else { throw .nothingToReload }
        self.queue.async {
            self.reload { result in
                let outcome: Outcome
                switch result {
                case .success(let report):
                    var writer = JSONWriter()
                    report.write(to: &writer)
                    outcome = .json(writer)
                case .failure(let error): outcome = .refused(error)
                }
                var effects = EffectBatch()
                effects.append(outcome, to: reply)
                self.shared?.mailboxes[reply].deliver(&effects)
            }
        }
    }

    /// - Parameter then: called once, on the queue.
    private func reload(_ then: @escaping @Sendable (Result<ReloadReport, APIError>) -> Void) {
        let isDraining = self.shared?.isDraining ?? true
        switch self.course.take(.asked(hasSource: self.source != nil, isDraining: isDraining)) {
        case .begin?:
            guard let shared = self.shared, let target = self.target, let source = self.source else {
                preconditionFailure("a reload begins with all that it takes")
            }
            self.reload(shared, target, source, then)
        case .sayNothing?: then(.failure(.nothingToReload))
        case .sayShutdown?: then(.failure(.shutdown))
        case .handOver?, .tellFaults?, .tellTaken?, nil: preconditionFailure("reloads come one after another")
        }
    }

    private func reload(
        _ shared: SharedParts,
        _ target: Target,
        _ source: ConfigurationSource,
        _ then: @escaping @Sendable (Result<ReloadReport, APIError>) -> Void
    ) {
        self.onStage(.began)
        do throws(ConfigurationError) {
            let read = try source.read()
            let transition = ConfigurationTransition(from: self.configuration, to: read)
            let changed = try self.apply(transition, shared, target)
            guard self.course.take(.applied) == .handOver else { return }
            self.tell(changed, transition.needsRestart)
            let settings = EngineSettings(transition.next) { policyVersion in
                let needsRestart = transition.needsRestart
                let report = ReloadReport(policyVersion: policyVersion, changed: changed, needsRestart: needsRestart)
                // The engine's thread goes on at once.
                self.queue.async { self.taken(report, then) }
            }
            var batch = CommandBatch()
            batch.append(.configure(settings))
            shared.engine.submit(&batch)
        } catch {
            guard self.course.take(.refused) == .tellFaults else { return }
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

    /// The engine goes on with a configuration it was handed.
    private func taken(_ report: ReloadReport, _ then: (Result<ReloadReport, APIError>) -> Void) {
        guard self.course.take(.taken) == .tellTaken else { return }
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

    /// Reads every file that is named, and then, when nothing can fail any more, has everybody go on with it; the
    /// engine comes last.
    ///
    /// - Returns: what has changed, files that hold something else included.
    private func apply(
        _ transition: ConfigurationTransition,
        _ shared: SharedParts,
        _ target: Target
    ) throws(ConfigurationError) -> [ConfigurationChange] {
        let next = transition.next
        var faults: [ConfigurationFault] = []
        var certificate: ServerCertificate?
        do throws(TransportError) { certificate = try ServerCertificate(next) } catch {
            faults.append(ConfigurationFault(key: "tls.certificate", CredentialError(message: error.message)))
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
            watches = try CredentialWatches(next, log: self.log, keeping: self.watches, of: before)
        } catch {
            faults += error.faults
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }

        var changed = transition.changed
        if let certificate, let old = self.certificate, !certificate.isSame(as: old) {
            if let change = certificate.change(from: old) { changed.append(change) }
            target.server.setContext(certificate.context)
            self.certificate = certificate
        }
        if let watches, let old = self.watches {
            watches.takeOver(from: old, shared)
            self.watches = watches
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
        shared.services.testPushes.set(next)
        let settings = LoopSettings(next)
        for loop in shared.mailboxes.loops { loop.deliver(settings) }
        self.configuration = next
        return changed
    }

    private func tell(_ changed: [ConfigurationChange], _ needsRestart: [ConfigurationChange]) {
        for change in changed {
            let fields = ["key": change.key, "old": change.old.text, "new": change.new.text]
            self.log.write(.configurationChanged, fields)
        }
        for change in needsRestart {
            let fields = ["key": change.key, "old": change.old.text, "new": change.new.text]
            self.log.write(.configurationNeedsRestart, fields)
        }
    }
}

/// What a reload came to.
struct ReloadReport: Sendable {
    /// The number of the launch policy that is in force.
    let policyVersion: UInt32
    let changed: [ConfigurationChange]
    let needsRestart: [ConfigurationChange]

    /// Appends the report as `POST /v1/reload` answers it.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("policyVersion")
        writer.integer(self.policyVersion)
        for (name, changes) in [("changed", self.changed), ("needsRestart", self.needsRestart)] {
            writer.key(name)
            writer.beginArray()
            for change in changes { change.write(to: &writer) }
            writer.endArray()
        }
        writer.endObject()
    }
}
