import Engine
import HTTPTransport
import Platform
import Wire

/// Performs the effects of fault rules on one loop. They apply to pushes that have passed all checks, and to their
/// answers.
final class FaultPerformer {
    private let parts: LoopParts
    let effects: LoopFaults
    /// True during a shutdown. Rules then no longer apply, so no push is delayed.
    private var isDraining = false

    init(_ service: FaultService, _ parts: LoopParts) {
        self.parts = parts
        self.effects = LoopFaults(service)
    }

    // MARK: Pushes

    /// Checks that no rule has made the provider's token expire.
    ///
    /// - Throws: `expiredProviderToken`.
    func admit(_ authorization: ByteView?, on connection: ConnectionID) throws(APNSReason) {
        self.restoreCleared()
        try self.effects.admit(authorization, on: connection)
    }

    /// Ends the effects of cleared rules on connections. The handler also calls this every second, because a connection
    /// with a stream limit of 0 sends no push.
    func restoreCleared() {
        guard self.effects.takeCleared() else { return }
        for setting in [LoopFaults.Setting.streamLimit, .streamWindow] { self.restoreAll(setting) }
    }

    /// Resets a setting to the default on every connection.
    private func restoreAll(_ setting: LoopFaults.Setting) {
        for connection in self.effects.takeChanged(setting) { self.restore(setting, of: connection) }
    }

    private func restore(_ setting: LoopFaults.Setting, of connection: ConnectionID) {
        switch setting {
        case .streamLimit: self.parts.limits.restore(connection)
        case .streamWindow: self.parts.loop.setStreamWindow(connection, to: nil)
        }
    }

    /// Applies the rules to a push that has passed every check. If no rule fires, passes the push to the engine.
    func submit(_ push: Push, _ stream: StreamID, keyID: String?, _ authorization: ByteView?) {
        guard !self.effects.isAbandoned(stream) else { return }
        let candidate = FaultCandidate(
            token: push.token,
            topic: push.topic,
            keyID: keyID ?? self.unverifiedKeyID(authorization),
            type: push.type,
            priority: push.priority
        )
        guard !self.isDraining, let effect = self.effects.service.pushReceived(candidate) else {
            let isAnswerFaulted = self.effects.awaitsSuccess(stream.connection)
            self.parts.outbox.append(push, from: self.address(stream, isAnswerFaulted: isAnswerFaulted))
            return
        }
        let caught = FaultedPush(effect, push, from: self.parts.loop.address(stream), authorization)
        let dueAt = self.parts.loop.now + effect.delayMilliseconds
        if effect.delayMilliseconds > 0, self.effects.delay(.push(caught), dueAt: dueAt) {
            self.setAlarm()
        } else {
            self.perform(caught)
        }
    }

    /// Performs the effects that are due.
    func performDue(now: Int64) {
        while let task = self.effects.delayed.popDue(now)?.value {
            switch task {
            case .push(let push): self.perform(push)
            case .ends(let setting, let connection, let change):
                let hasEnded = self.effects.ended(setting, of: connection, change: change)
                if hasEnded { self.restore(setting, of: connection) }
            }
        }
        self.setAlarm()
    }

    /// Finishes the pushes that rules have delayed or left unanswered. They would otherwise delay the shutdown.
    func startDraining() {
        self.isDraining = true
        self.performDue(now: .max)
        for stream in self.effects.takeStuck() { self.parts.loop.reset(stream, code: .cancel) }
        self.restoreAll(.streamWindow)
    }

    /// Sends the answer to a push for which a rule fired, unless the rule suppresses the answer.
    func answer(_ stream: StreamID, _ reply: PushReply) {
        switch self.effects.takeLost(stream) {
        case .close?: self.close(stream.connection)
        case .reset?: self.parts.loop.reset(stream, code: .internalError)
        case .stuck? where self.isDraining: self.parts.loop.reset(stream, code: .cancel)
        case .stuck?: self.effects.leaveStuck(stream)
        case nil:
            self.parts.answers.answer(stream, reply)
            guard reply.reason == nil, self.effects.ended(.streamLimit, of: stream.connection, change: nil) else {
                return
            }
            self.restore(.streamLimit, of: stream.connection)
        }
    }

    // MARK: Effects

    private func perform(_ push: FaultedPush) {
        let connection = push.stream.connection
        if let limit = push.effect.streamLimit { self.set(limit, on: connection) }
        if let window = push.effect.streamWindow { self.set(window, on: connection) }
        switch push.effect.outcome {
        case .passed: self.pass(push)
        case .refused(let answer):
            // Only answers that were sent and have a reason of APNs are counted.
            let isAnswered = self.parts.answers.refuse(push.stream, answer, push.apnsID)
            if isAnswered, let reason = APNSReason(rawValue: answer.reason) { self.count(reason, push) }
        case .reset(let code):
            if let code = HTTP2ErrorCode(rawValue: code) { self.parts.loop.reset(push.stream, code: code) }
        case .goneAway(let goAway): self.goAway(push, goAway)
        case .stuck: self.effects.leaveStuck(push.stream)
        case .tokenExpired:
            self.effects.tokenExpired(push.authorization, on: connection)
            let reason = APNSReason.expiredProviderToken
            if self.parts.answers.refuse(push.stream, reason, push.apnsID) { self.count(reason, push) }
        case .replyLost(let reply):
            self.effects.loseReply(push.stream, reply)
            self.hand(push, isAnswerFaulted: true)
        case .closed: self.close(connection)
        }
    }

    /// Passes a push to the engine as if no rule had fired.
    private func pass(_ push: FaultedPush) {
        self.hand(push, isAnswerFaulted: self.effects.awaitsSuccess(push.stream.connection))
    }

    private func hand(_ push: FaultedPush, isAnswerFaulted: Bool) {
        let address = self.address(push.stream, isAnswerFaulted: isAnswerFaulted)
        push.kept.read { self.parts.outbox.append($0, from: address) }
    }

    private func address(_ stream: StreamID, isAnswerFaulted: Bool) -> StreamAddress {
        isAnswerFaulted ? .faulted(self.parts.loop.loopStream(stream)) : self.parts.loop.address(stream)
    }

    private func count(_ reason: APNSReason, _ push: FaultedPush) {
        push.kept.read { push in self.parts.outbox.reject(reason, topic: push.topic.array, push.apnsID) { push.token } }
    }

    private func goAway(_ push: FaultedPush, _ goAway: FaultGoAway) {
        let inFlight: StreamsInFlight =
            switch goAway.inFlight {
            case .answer: .finished
            case .refuse: .refused(from: push.stream.number)
            case .drop: .dropped
            }
        if goAway.inFlight == .answer { self.pass(push) }
        let connection = push.stream.connection
        let code = HTTP2ErrorCode(rawValue: goAway.code) ?? .noError
        let last = JSONWriter.object { $0.member("reason", goAway.reason) }.withByteView { data in
            self.parts.loop.goAway(connection, debugData: data, code: code, inFlight: inFlight)
        }
        guard let last else { return }
        self.effects.abandon(connection, after: goAway.inFlight == .drop ? 0 : last)
    }

    private func close(_ connection: ConnectionID) {
        self.parts.loop.close(connection)
        self.effects.abandon(connection, after: 0)
    }

    private func set(_ limit: FaultStreamLimit, on connection: ConnectionID) {
        guard self.parts.loop.setStreamLimit(connection, to: limit.limit) else { return }
        let change = self.effects.changed(.streamLimit, of: connection, endsWithSuccess: limit.end == .success)
        if case .milliseconds(let time) = limit.end { self.end(.streamLimit, of: connection, change, after: time) }
    }

    private func set(_ window: FaultStreamWindow, on connection: ConnectionID) {
        guard self.parts.loop.setStreamWindow(connection, to: window.bytes) else { return }
        let change = self.effects.changed(.streamWindow, of: connection)
        if let time = window.milliseconds { self.end(.streamWindow, of: connection, change, after: time) }
    }

    /// Ends the change of a setting after this many milliseconds. If too many tasks are delayed, it lasts until the
    /// connection ends.
    private func end(
        _ setting: LoopFaults.Setting,
        of connection: ConnectionID,
        _ change: UInt64,
        after milliseconds: Int64
    ) {
        let task = LoopFaults.Task.ends(setting, connection, change: change)
        if self.effects.delay(task, dueAt: self.parts.loop.now + milliseconds) { self.setAlarm() }
    }

    // MARK: Small things

    /// Returns the key id in an unverified token. Clients send tokens even to gateways that do not verify them.
    private func unverifiedKeyID(_ authorization: ByteView?) -> String? {
        guard authorization != nil, self.effects.service.usesProviderKeys else { return nil }
        guard let text = try? ProviderToken.text(inAuthorization: authorization) else { return nil }
        return (try? ProviderToken(text))?.keyID
    }

    private func setAlarm() {
        self.parts.loop.alarmAt = self.effects.delayed.first?.moment ?? .max
    }
}

extension AnswerWriter {
    /// Answers a push as a fault rule specifies.
    ///
    /// - Returns: false if the stream has closed.
    func refuse(_ stream: StreamID, _ answer: FaultAnswer, _ apnsID: APNsID) -> Bool {
        self.response.begin(status: answer.status)
        self.addID(apnsID)
        self.response.add("content-type", "application/json")
        if let seconds = answer.retryAfterSeconds { self.response.add("retry-after", Int64(seconds)) }
        let body = JSONWriter.object { writer in
            writer.member("reason", answer.reason)
            switch answer.timestamp {
            case .absent: ()
            case .usual:
                if answer.status == 410 { writer.member("timestamp", SystemClock.wall) }
            case .at(let moment): writer.member("timestamp", moment)
            }
        }
        return body.withByteView { self.loop.respond(stream, self.response, body: $0) }
    }
}
