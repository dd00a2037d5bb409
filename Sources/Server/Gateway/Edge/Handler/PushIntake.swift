import Engine
import HTTPTransport
import Platform
import Policy
import ServiceManager
import Wire

/// Receives the pushes of one loop: performs the checks that do not depend on devices, passes the pushes to the engine,
/// and writes the answers.
final class PushIntake {
    private let parts: LoopParts
    private let admission: CallerAdmission
    private let log: GatewayLog
    /// The performer of fault rules; nil except in `wakegate dev`.
    private let faults: FaultPerformer?
    /// The authentication of providers; nil if no proof is required.
    private var providers: ProviderGate?
    private var rules: PushRules
    private var unique: UniqueBits
    private var traces = PushTraceReader()
    /// The number of pushes since a topic was last reported to the loop. Its maximum is prime. All connections are
    /// therefore sampled, even if they take turns.
    private var pushesUnreported = 0
    private static let pushesUnreportedMax = 37
    /// A random key for the hashes of topics. It prevents clients from choosing topics that collide.
    private let topicKey: HashKey

    init(_ parts: LoopParts, _ admission: CallerAdmission, _ faults: FaultPerformer?) {
        let shared = parts.shared
        self.parts = parts
        self.admission = admission
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
        // Usually the client announces the size, and it is small enough for a push of any type.
        let bytesMaxOfAny = PushPayload.bytesMax(type: nil)
        if let missing = request.bodyBytesMissing, missing <= bytesMaxOfAny { return bytesMaxOfAny }
        // Only voip pushes may be larger, so only the push type is read here.
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "apns-push-type" { return PushPayload.bytesMax(type: PushType(field.value)) }
        }
        return PushPayload.bytesMax(type: nil)
    }

    // MARK: Requests

    /// Checks a push and passes it to the engine. Also refuses a request without a route, after the checks of the
    /// provider API.
    func push(_ request: Request) {
        var received = Self.received(request)
        let holder = self.admission.holder(of: request.stream.connection)
        guard let topic = holder?.topics.defaultTopic, received.unverifiedTopic == nil else {
            return self.push(request, received, by: holder)
        }
        topic.withByteView { topic in
            received.setDefaultTopic(topic)
            self.push(request, received, by: holder)
        }
    }

    /// Returns the fields of a push, not yet checked.
    @inline(__always)
    private static func received(_ request: Request) -> PushRequest {
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
        return received
    }

    /// - `holder`: the holder of the connection's client certificate; nil if the connection has no certificate.
    private func push(_ request: Request, _ received: PushRequest, by holder: CertificateHolder?) {
        var push = Push()
        var provider: VerifiedToken?
        do throws(APNSReason) {
            try received.check(into: &push, rules: self.rules) { received throws(APNSReason) in
                let connection = request.stream.connection
                if let faults = self.faults { try faults.admit(received.authorization, on: connection) }
                // As at APNs, a certificate authenticates the provider even if the request contains a token.
                if let holder { return try holder.authenticate(received) }
                provider = try self.providers?.token(received.authorization, on: connection, now: SystemClock.wall)
                self.parts.limits.admitted(connection)
            } authorize: { topic throws(APNSReason) in
                if let provider, !provider.admits(topic: topic) { throw .topicDisallowed }
                if let holder, !holder.topics.admits(topic: topic) { throw .topicDisallowed }
            }
            if self.parts.outbox.window.isStuck { throw .serviceUnavailable }
            if !push.hasClientID { push.apnsID = self.newAPNsID() }
            if received.hasTraceParent { push.trace = self.traces.read(request) }
            self.reportFlow(of: request.stream, push.topic)
            if !push.warnings.isEmpty, self.rules.isForDevelopment { self.logWarnings(push) }
            if !push.isDryRun, self.parts.loop.isQuiet(request.stream.connection) {
                self.parts.outbox.quietPushCame(now: self.parts.loop.now)
            }
            if let faults = self.faults, faults.effects.isActive, !push.isDryRun {
                faults.submit(push, request.stream, keyID: provider?.key.keyID, received.authorization)
            } else {
                self.parts.outbox.append(push, from: self.parts.loop.address(request.stream))
            }
        } catch {
            let apnsID = received.id ?? self.newAPNsID()
            if !received.isDryRun {
                let topic = received.unverifiedTopic.flatMap { Push.isTopic($0) ? $0.array : nil } ?? []
                self.parts.outbox.reject(error, topic: topic, apnsID) { Self.device(request.path) }
            }
            if error == .methodNotAllowed, OperationRouter.isOfAdmin(request) {
                self.parts.answers.answer(request.stream, .methodOfAdmin, allow: "POST", apnsID)
            } else {
                self.parts.answers.refuse(request.stream, error, apnsID)
            }
            self.endIfUseless(request.stream.connection, error)
        }
    }

    /// Ends a connection after its pending answers if it can accept no further push.
    private func endIfUseless(_ connection: ConnectionID, _ reason: APNSReason) {
        // No other check refuses a push for these reasons.
        if reason == .tooManyRequests { self.parts.counts.exceeded(connection) }
        guard reason == .expiredProviderToken else { return }
        let isUseless = self.providers?.hasChangedInVain(connection) == true
        if isUseless || self.faults?.effects.hasChangedInVain(connection) == true {
            self.parts.answers.goAway(connection, reason, inFlight: .announcedFirst)
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

    /// Reports the topic of a connection to the loop. With it, each topic gets its share of the loop, regardless of the
    /// topic's number of connections.
    ///
    /// Reports the topic of each connection's first push, and of every `pushesUnreportedMax`th push of the loop. This
    /// sample suffices, because most connections carry one topic.
    private func reportFlow(of stream: StreamID, _ topic: ByteView) {
        self.pushesUnreported += 1
        guard stream.number == 1 || self.pushesUnreported >= Self.pushesUnreportedMax else { return }
        self.pushesUnreported = 0
        self.parts.loop.setFlow(of: stream.connection, to: self.topicKey.hash(topic))
    }

    /// Refuses a request without further checks.
    func refuse(_ request: Request, _ reason: APNSReason, retryAfterSeconds: UInt32 = 0) {
        let apnsID = self.reject(request, reason)
        self.parts.answers.refuse(request.stream, reason, apnsID, retryAfterSeconds: retryAfterSeconds)
    }

    /// Records a push that is refused without further checks.
    ///
    /// - Returns: the identifier for the answer.
    func reject(_ request: Request, _ reason: APNSReason) -> APNsID {
        let apnsID = self.apnsID(of: request)
        self.parts.outbox.reject(reason, apnsID) { Self.device(request.path) }
        return apnsID
    }

    /// Returns the identifier of a push that is not checked further, or a new one.
    func apnsID(of request: Request) -> APNsID { Self.received(request).id ?? self.newAPNsID() }

    /// Returns the device in the path of a refused push; nil if the path has no valid token.
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
        self.parts.outbox.pushAnswered()
        if case .faulted = reply.address, let faults = self.faults {
            faults.answer(StreamID(reply.address), reply)
        } else {
            self.parts.answers.answer(StreamID(reply.address), reply)
        }
    }
}

/// The answers to pushes.
extension AnswerWriter {
    /// Answers a push with the engine's reply.
    func answer(_ stream: StreamID, _ reply: PushReply) {
        if let reason = reply.reason {
            self.refuse(
                stream,
                reason,
                reply.apnsID,
                timestamp: reply.timestamp,
                retryAfterSeconds: reply.retryAfterSeconds
            )
            return
        }
        self.response.begin(status: 200)
        self.addID(reply.apnsID)
        if let disposition = reply.disposition { self.response.add("wakegate-disposition", disposition.name) }
        if let eligibleAt = reply.eligibleAt { self.response.add("wakegate-eligible-at", eligibleAt) }
        if let held = reply.held { self.response.add("wakegate-held", held.name) }
        if !reply.warnings.isEmpty {
            for text in reply.warnings.texts { self.response.add("wakegate-warning", text) }
        }
        _ = self.loop.respond(stream, self.response, body: nil)
    }

    /// Answers a refused push with one DATA frame that contains the reason.
    ///
    /// - `timestamp`: the time at which the token was removed, in milliseconds since 1970.
    /// - `retryAfterSeconds`: the time after which the provider should send the push again; 0 if unknown.
    /// - Returns: false if the stream has closed.
    @discardableResult
    func refuse(
        _ stream: StreamID,
        _ reason: APNSReason,
        _ apnsID: APNsID,
        timestamp: Int64? = nil,
        retryAfterSeconds: UInt32 = 0
    ) -> Bool {
        self.response.begin(status: reason.status)
        self.addID(apnsID)
        self.response.add("content-type", "application/json")
        if reason == .methodNotAllowed { self.response.add("allow", "POST") }
        if retryAfterSeconds > 0 {
            self.response.add("retry-after", Int64(retryAfterSeconds))
        } else if reason == .shutdown || reason == .serviceUnavailable {
            self.response.add("retry-after", "5")
        } else if reason == .tooManyRequests {
            self.response.add("retry-after", "60")
        }
        reason.writeBody(to: &self.body, timestampMilliseconds: timestamp)
        defer { self.body.removeAll() }
        return self.loop.respond(stream, self.response, body: self.body.view)
    }

    func addID(_ apnsID: APNsID) {
        self.response.add("apns-id") { apnsID.write(to: &$0) }
    }
}
