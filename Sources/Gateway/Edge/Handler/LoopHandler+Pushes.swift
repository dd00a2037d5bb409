import APNSProtocol
import Access
import Bytes
import DeviceEngine
import EngineRoom
import HTTPTransport
import Platform
import Settings
import WakeDispatch

extension LoopHandler {
    /// Checks a push and hands it to the engine; also refuses everything that is no route at all, in the provider
    /// API's order of checks.
    func push(_ request: Request) {
        var headers = PushHeaders()
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            headers.field(name: field.name, value: field.value)
        }
        let holder = self.authorization.certificates?.holder(of: request.stream.connection)
        guard let topic = holder?.topics.defaultTopic, headers.unverifiedTopic == nil else {
            return self.push(request, headers, by: holder)
        }
        topic.withByteView { topic in
            headers.takeDefaultTopic(topic)
            self.push(request, headers, by: holder)
        }
    }

    /// - Parameter holder: whom the connection's client certificate names; nil when it has none.
    private func push(_ request: Request, _ headers: PushHeaders, by holder: CertificateHolder?) {
        let push = PushRequest(
            method: request.method,
            path: request.path,
            headers: headers,
            body: request.body,
            isBodyCutShort: request.isBodyTooLarge
        )
        var token = DeviceToken()
        var provider: VerifiedToken?
        do throws(APNSReason) {
            let checked = try push.checked(rules: self.settings.rules, token: &token) { headers throws(APNSReason) in
                let connection = request.stream.connection
                if let faults = self.faults { try self.ask(faults, headers.authorization, on: connection) }
                // As with APNs a certificate says who pushes, whatever token is shown.
                if let holder { return try holder.authenticate(headers) }
                provider = try self.providers?.token(headers.authorization, on: connection, now: SystemClock.wall)
                if self.beginsWithOneStream { self.liftStreamLimit(connection) }
            } authorize: { topic throws(APNSReason) in
                if let provider, !provider.key.admits(topic: topic) { throw .topicDisallowed }
                if let holder, !holder.topics.admits(topic: topic) { throw .topicDisallowed }
            }
            let trace = headers.hasTraceParent ? self.trace(of: request) : ByteView()
            let command = self.command(checked, token, request, traceCount: trace.count)
            if let faults = self.faults, faults.isActive, !checked.head.isDryRun {
                let keyID = provider?.key.keyID
                self.submit(command, checked, request, keyID: keyID, headers, trace: trace, through: faults)
            } else {
                let head = checked.head
                self.batch.append(
                    command,
                    topic: head.topic,
                    collapseID: head.collapseID,
                    payload: request.body,
                    trace: trace
                )
            }
        } catch {
            if !headers.isDryRun {
                let topic = headers.unverifiedTopic.flatMap { PushHead.isTopic($0) ? $0.array : nil } ?? []
                self.batch.append(.rejected(reason: error.index, topic: topic))
            }
            self.refuse(request.stream, error, headers.id ?? self.newAPNsID())
            // No other check comes to that.
            if error == .tooManyRequests { self.endForCredential(request.stream.connection) }
        }
    }

    /// Answers a refused push: one DATA frame with the reason.
    ///
    /// - Parameters:
    ///   - timestamp: when the token was removed, in milliseconds since 1970.
    ///   - retryAfterSeconds: when to send it again; 0 when that is not known.
    /// - Returns: false when the stream is gone.
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

    private func command(
        _ push: CheckedPush,
        _ token: DeviceToken,
        _ request: Request,
        traceCount: Int
    ) -> PushCommand {
        let expiration: Int64 =
            switch push.head.expiration {
            case .absent: PushCommand.expirationAbsent
            case .zero: 0
            case .seconds(let seconds): seconds
            }
        return PushCommand(
            reply: self.address(request.stream),
            token: token,
            apnsID: push.head.id ?? self.newAPNsID(),
            isNamedByClient: push.head.id != nil,
            expiration: expiration,
            priority: push.head.priority.rawValue,
            wakes: push.wakes,
            isDryRun: push.head.isDryRun,
            topicCount: UInt8(push.head.topic.count),
            collapseIDCount: UInt8(push.head.collapseID.count),
            payloadCount: UInt16(request.body.count),
            traceCount: UInt16(traceCount)
        )
    }

    func addID(_ apnsID: APNsID) {
        self.response.add("apns-id") { apnsID.write(to: &$0) }
    }
}

// MARK: - Answers of the engine

extension LoopHandler {
    func answerPush(_ reply: PushReply) {
        self.requestsAtEngine -= 1
        let stream = self.stream(reply.address)
        if case .faulted = reply.address, let faults = self.faults {
            self.answer(reply, on: stream, through: faults)
        } else {
            self.answer(reply, on: stream)
        }
    }

    func answer(_ reply: PushReply, on stream: StreamID) {
        guard reply.reason == PushReply.accepted else {
            self.refuse(
                stream,
                APNSReason.allCases[Int(reply.reason)],
                reply.apnsID,
                timestamp: reply.timestamp == PushReply.noMoment ? nil : reply.timestamp,
                retryAfterSeconds: reply.retryAfterSeconds
            )
            return
        }
        self.response.begin(status: 200)
        self.addID(reply.apnsID)
        if let disposition = Disposition(rawValue: reply.disposition) {
            self.response.add("wakegate-disposition", disposition.name)
        }
        if reply.eligibleAt != PushReply.noMoment {
            self.response.add("wakegate-eligible-at", reply.eligibleAt)
        }
        if let held = HoldCode(rawValue: reply.held) { self.response.add("wakegate-held", held.name) }
        _ = self.loop.respond(stream, self.response, body: nil)
    }
}
