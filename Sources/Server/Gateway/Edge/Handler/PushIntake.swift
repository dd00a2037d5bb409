import Engine
import HTTPTransport
import Platform
import ServiceManager
import Wire

/// Takes the pushes of one loop: checks them as far as that needs no knowledge of devices, hands them to the engine,
/// and has its answers written.
final class PushIntake {
    private let loop: EventLoop
    private let outbox: EngineOutbox
    private let answers: AnswerWriter
    private let admission: CallerAdmission
    private let counts: CredentialCounts
    private let limits: StreamLimits
    private let log: GatewayLog
    /// Nil where there are no fault rules, which is everywhere but in `wakegate dev`.
    private let faults: FaultPerformer?
    /// Nil when providers are not asked for proof.
    private var providers: ProviderGate?
    private var rules: PushRules
    private var unique: UniqueBits
    private var traces = PushTraceReader()
    /// The pushes since the loop was told of what topic one was, and how many there may be: a prime, so that it is not
    /// always a push of the same connection where many take turns.
    private var pushesUntold = 0
    private static let pushesUntoldMax = 37
    /// What topics are hashed with, so that nobody chooses one that shares the place of another.
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

    /// The most bytes that the body of a push may have.
    func bodyBytesMax(of request: Request) -> Int {
        // Mostly the body is announced, and no push may not have so much.
        let bytesMaxOfAny = PushPayload.bytesMax(type: nil)
        if let missing = request.bodyBytesMissing, missing <= bytesMaxOfAny { return bytesMaxOfAny }
        // Only voip pushes may be larger; nothing else of the request matters yet.
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "apns-push-type" { return PushPayload.bytesMax(type: PushType(field.value)) }
        }
        return PushPayload.bytesMax(type: nil)
    }

    // MARK: Requests

    /// Checks a push and hands it to the engine; also refuses everything that is no route at all, in the provider
    /// API's order of checks.
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

    /// - Parameter holder: whom the connection's client certificate names; nil when it has none.
    private func push(_ request: Request, _ received: PushRequest, by holder: CertificateHolder?) {
        var push = Push()
        var provider: VerifiedToken?
        do throws(APNSReason) {
            try received.check(into: &push, rules: self.rules) { received throws(APNSReason) in
                let connection = request.stream.connection
                if let faults = self.faults { try faults.admit(received.authorization, on: connection) }
                // As with APNs a certificate says who pushes, whatever token is shown.
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
                self.outbox.room.quietPushCame(now: self.loop.now)
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

    /// Ends a connection on which no push will be accepted, behind the answers that it is owed.
    private func endIfUseless(_ connection: ConnectionID, _ reason: APNSReason) {
        // No other check refuses a push for these reasons.
        if reason == .tooManyRequests { self.counts.exceeded(connection) }
        guard reason == .expiredProviderToken else { return }
        let isUseless = self.providers?.hasChangedInVain(connection) == true
        if isUseless || self.faults?.hasChangedInVain(connection) == true {
            self.answers.goAway(connection, reason, inFlight: .announcedFirst)
        }
    }

    /// Writes what the answer warns of to the log.
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

    /// Has the loop give each topic its share, whatever connections its pushes come on. A connection mostly carries one
    /// topic: it is told with the first push, and with one of a few dozen of all pushes of the loop, whose turn no
    /// client chooses.
    private func tellFlow(of stream: StreamID, _ topic: ByteView) {
        self.pushesUntold += 1
        guard stream.number == 1 || self.pushesUntold >= Self.pushesUntoldMax else { return }
        self.pushesUntold = 0
        self.loop.setFlow(of: stream.connection, to: self.topicKey.hash(topic))
    }

    /// Refuses a request of which nothing more is looked at.
    func refuse(_ request: Request, _ reason: APNSReason, retryAfterSeconds: UInt32 = 0) {
        let apnsID = self.newAPNsID()
        self.outbox.reject(reason, apnsID) { Self.device(request.path) }
        self.answers.refuse(request.stream, reason, apnsID, retryAfterSeconds: retryAfterSeconds)
    }

    /// Another part refuses a push whose sender may not reach the gateway.
    func noteForbidden(_ request: Request) {
        self.outbox.reject(.forbidden, self.newAPNsID()) { Self.device(request.path) }
    }

    /// The device that the path of a refused push names; nil when it names none.
    private static func device(_ path: ByteView) -> DeviceToken? {
        let folder: StaticString = "/3/device/"
        guard path.starts(with: folder) else { return nil }
        return DeviceToken(hex: path.dropFirst(folder.utf8CodeUnitCount))
    }

    private func newAPNsID() -> APNsID {
        APNsID(random: self.unique.next())
    }

    // MARK: Answers

    /// The engine has answered a push.
    func answer(_ reply: PushReply) {
        self.outbox.pushAnswered()
        if case .faulted = reply.address, let faults = self.faults {
            faults.answer(StreamID(reply.address), reply)
        } else {
            self.answers.answer(StreamID(reply.address), reply)
        }
    }
}
