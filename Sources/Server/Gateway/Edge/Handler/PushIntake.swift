import Engine
import HTTPTransport
import Platform
import ServiceManager
import Wire

/// Receives the pushes of one loop: performs the checks that need no knowledge of devices, passes the pushes to the
/// engine, and writes the answers.
final class PushIntake {
    private let loop: EventLoop
    private let outbox: EngineOutbox
    private let answers: AnswerWriter
    private let admission: CallerAdmission
    private let counts: CredentialCounts
    private let limits: StreamLimits
    private let log: GatewayLog
    /// Nil without fault rules; only `wakegate dev` has them.
    private let faults: FaultPerformer?
    /// Nil if providers need no proof.
    private var providers: ProviderGate?
    private var rules: PushRules
    private var unique: UniqueBits
    private var traces = PushTraceReader()
    /// The number of pushes since the loop last learned the topic of one. The maximum is prime, so that connections
    /// that take turns are all sampled.
    private var pushesUntold = 0
    private static let pushesUntoldMax = 37
    /// A random key for the hashes of topics, so that no client can choose topics that collide.
    private let topicKey: HashKey

    init(
        _ loop: EventLoop,
        _ shared: SharedParts,
        _ outbox: EngineOutbox,
        _ answers: AnswerWriter,
        _ admission: CallerAdmission,
        _ counts: CredentialCounts,
        _ limits: StreamLimits,
        _ faults: FaultPerformer?
    ) {
        self.loop = loop
        self.outbox = outbox
        self.answers = answers
        self.admission = admission
        self.counts = counts
        self.limits = limits
        self.log = shared.log
        self.faults = faults
        self.providers = shared.providerKeys.map { [environment = shared.configuration.environment] keys in
            ProviderGate(keys, environment: environment, credentials: shared.credentials) { [log = shared.log] fault in
                log.write(.providerTokenRefused, fault.fields)
            }
        }
        self.rules = shared.settings.rules
        var random = RandomBits()
        self.unique = UniqueBits(seed: random.pair())
        self.topicKey = HashKey(random.pair())
    }

    func setRules(_ rules: PushRules) { self.rules = rules }

    func connectionClosed(_ connection: ConnectionID) { self.providers?.connectionClosed(connection) }

    /// Returns the maximum size of a push's body in bytes.
    func bodyBytesMax(of request: Request) -> Int {
        // Usually the size is announced and small enough for a push of any type.
        let bytesMaxOfAny = PushPayload.bytesMax(type: nil)
        if let missing = request.bodyBytesMissing, missing <= bytesMaxOfAny { return bytesMaxOfAny }
        // Only voip pushes may be larger, so only the push type matters here.
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "apns-push-type" { return PushPayload.bytesMax(type: PushType(field.value)) }
        }
        return PushPayload.bytesMax(type: nil)
    }

    // MARK: Requests

    /// Checks a push and passes it to the engine. Also refuses requests without a route, in the provider API's order of
    /// checks.
    func push(_ request: Request) {
        var received = PushRequest(
            method: request.method,
            path: request.path,
            body: request.body,
            isBodyCutShort: request.isBodyTooLarge
        )
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            received.field(name: field.name, value: field.value)
        }
        let holder = self.admission.holder(of: request.stream.connection)
        guard let topic = holder?.topics.defaultTopic, received.unverifiedTopic == nil else {
            return self.push(request, received, by: holder)
        }
        topic.withByteView { topic in
            received.takeDefaultTopic(topic)
            self.push(request, received, by: holder)
        }
    }

    /// - Parameter holder: the holder of the connection's client certificate; nil if it has none.
    private func push(_ request: Request, _ received: PushRequest, by holder: CertificateHolder?) {
        var push = Push()
        var provider: VerifiedToken?
        do throws(APNSReason) {
            try received.check(into: &push, rules: self.rules) { received throws(APNSReason) in
                let connection = request.stream.connection
                if let faults = self.faults { try faults.admit(received.authorization, on: connection) }
                // As at APNs, a certificate authenticates the provider even if the request shows a token.
                if let holder { return try holder.authenticate(received) }
                provider = try self.providers?.token(received.authorization, on: connection, now: SystemClock.wall)
                self.limits.admitted(connection)
            } authorize: { topic throws(APNSReason) in
                if let provider, !provider.admits(topic: topic) { throw .topicDisallowed }
                if let holder, !holder.topics.admits(topic: topic) { throw .topicDisallowed }
            }
            if !push.isNamedByClient { push.apnsID = self.newAPNsID() }
            if received.hasTraceParent { push.trace = self.traces.read(request) }
            self.tellFlow(of: request.stream, push.topic)
            if !push.warnings.isEmpty, self.rules.isForDevelopment { self.logWarnings(push) }
            if !push.isDryRun, self.loop.isQuiet(request.stream.connection) {
                self.outbox.quietPushCame(now: self.loop.now)
            }
            if let faults = self.faults, faults.isActive, !push.isDryRun {
                faults.submit(push, request.stream, keyID: provider?.key.keyID, received.authorization)
            } else {
                self.outbox.append(push, from: self.loop.address(request.stream))
            }
        } catch {
            let apnsID = received.id ?? self.newAPNsID()
            if !received.isDryRun {
                let topic = received.unverifiedTopic.flatMap { Push.isTopic($0) ? $0.array : nil } ?? []
                self.outbox.reject(error, topic: topic, apnsID) { Self.device(request.path) }
            }
            if error == .methodNotAllowed, OperationRouter.isOfAdmin(request) {
                self.answers.answer(request.stream, .methodOfAdmin, allow: "POST", apnsID)
            } else {
                self.answers.refuse(request.stream, error, apnsID)
            }
            self.endIfUseless(request.stream.connection, error)
        }
    }

    /// Ends a connection on which no further push can be accepted, after the pending answers.
    private func endIfUseless(_ connection: ConnectionID, _ reason: APNSReason) {
        // No other check refuses a push for these reasons.
        if reason == .tooManyRequests { self.counts.exceeded(connection) }
        guard reason == .expiredProviderToken else { return }
        let isUseless = self.providers?.hasChangedInVain(connection) == true
        if isUseless || self.faults?.hasChangedInVain(connection) == true {
            self.answers.goAway(connection, reason, inFlight: .announcedFirst)
        }
    }

    /// Logs the warnings of a push.
    private func logWarnings(_ push: Push) {
        for text in push.warnings.texts {
            let parts = text.description.split(separator: "; ").map(String.init)
            let topic = push.topic.string
            self.log.write(
                .pushWarning,
                ["warning": parts[0], "problem": parts[1], "remedy": parts[2], "topic": topic]
            )
        }
    }

    /// Tells the loop the topic of a connection, so that each topic gets its share of the loop regardless of its number
    /// of connections. A connection mostly carries one topic. Its topic is reported with its first push, and with one
    /// in `pushesUntoldMax` pushes of the loop, which no client can choose.
    private func tellFlow(of stream: StreamID, _ topic: ByteView) {
        self.pushesUntold += 1
        guard stream.number == 1 || self.pushesUntold >= Self.pushesUntoldMax else { return }
        self.pushesUntold = 0
        self.loop.setFlow(of: stream.connection, to: self.topicKey.hash(topic))
    }

    /// Refuses a request without examining the rest of it.
    func refuse(_ request: Request, _ reason: APNSReason, retryAfterSeconds: UInt32 = 0) {
        let apnsID = self.newAPNsID()
        self.outbox.reject(reason, apnsID) { Self.device(request.path) }
        self.answers.refuse(request.stream, reason, apnsID, retryAfterSeconds: retryAfterSeconds)
    }

    /// Records a push that another part refuses because its sender may not reach the gateway.
    func noteForbidden(_ request: Request) {
        self.outbox.reject(.forbidden, self.newAPNsID()) { Self.device(request.path) }
    }

    /// Returns the device in the path of a refused push; nil if there is none.
    private static func device(_ path: ByteView) -> DeviceToken? {
        let folder: StaticString = "/3/device/"
        guard path.starts(with: folder) else { return nil }
        return DeviceToken(hex: path.dropFirst(folder.utf8CodeUnitCount))
    }

    private func newAPNsID() -> APNsID {
        APNsID(random: self.unique.next())
    }

    // MARK: Answers

    /// Writes the engine's answer to a push.
    func answer(_ reply: PushReply) {
        self.outbox.pushAnswered()
        if case .faulted = reply.address, let faults = self.faults {
            faults.answer(StreamID(reply.address), reply)
        } else {
            self.answers.answer(StreamID(reply.address), reply)
        }
    }
}
