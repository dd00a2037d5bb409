import APNSProtocol
import Bytes
import DeviceEngine
import EngineRoom
import FaultInjection
import HTTPTransport
import Platform
import Settings
import WakeDispatch

/// Where fault rules act: behind every check of a push and before the engine, and on the way of its answer.
extension LoopHandler {
    /// Asks whether a rule has made the provider's token expire.
    ///
    /// - Throws: `expiredProviderToken`.
    func ask(_ faults: LoopFaults, _ authorization: ByteView?, on connection: ConnectionID) throws(APNSReason) {
        for connection in faults.takeCleared() { self.restoreStreamLimit(connection) }
        try faults.admit(authorization, on: connection)
    }

    /// Shows a push that passed every check to the rules; it goes on when none wants it.
    func submit(
        _ command: PushCommand,
        _ push: CheckedPush,
        _ request: Request,
        keyID: String?,
        _ headers: PushHeaders,
        trace: ByteView,
        through faults: LoopFaults
    ) {
        let head = push.head
        guard !faults.isAbandoned(request.stream) else { return }
        var command = command
        let candidate = FaultCandidate(
            token: command.token,
            topic: head.topic,
            keyID: keyID ?? self.unverifiedKeyID(headers.authorization, faults),
            type: head.type,
            priority: head.priority
        )
        // During a shutdown every push is refused, and soon.
        guard !self.isDraining, let effect = faults.desk.pushReceived(candidate) else {
            if faults.awaitsSuccess(request.stream.connection) { command.reply = self.faultedAddress(request.stream) }
            let (topic, collapseID) = (head.topic, head.collapseID)
            self.batch.append(command, topic: topic, collapseID: collapseID, payload: request.body, trace: trace)
            return
        }
        let caught = FaultedPush(
            effect,
            stream: request.stream,
            command: command,
            topic: head.topic,
            collapseID: head.collapseID,
            payload: request.body,
            trace: trace,
            authorization: headers.authorization
        )
        let dueAt = self.loop.now + effect.delayMilliseconds
        if effect.delayMilliseconds > 0, faults.agenda.add(.push(caught), dueAt: dueAt) {
            self.setAlarm(faults)
        } else {
            self.perform(caught, faults)
        }
    }

    /// Does what is due on the loop's clock.
    func performDue(_ faults: LoopFaults, now: Int64) {
        while let task = faults.agenda.takeDue(now: now) {
            switch task {
            case .push(let push): self.perform(push, faults)
            case .limitEnds(let connection, let change):
                if faults.limitEnded(connection, change: change) { self.restoreStreamLimit(connection) }
            }
        }
        self.setAlarm(faults)
    }

    /// Finishes at once what rules have put off or would never finish, so that it does not hold a shutdown up.
    func endFaults(_ faults: LoopFaults) {
        self.performDue(faults, now: .max)
        for stream in faults.takeStuck() { self.loop.reset(stream, code: .cancel) }
    }

    /// Sends the answer to a push on whose answer a rule acts, if that is what the rule does with it.
    func answer(_ reply: PushReply, on stream: StreamID, through faults: LoopFaults) {
        switch faults.takeLost(stream) {
        case .close?: self.close(stream.connection, faults)
        case .reset?: self.loop.reset(stream, code: .internalError)
        case .stuck?: faults.leaveStuck(stream)
        case nil:
            self.answer(reply, on: stream)
            guard reply.reason == PushReply.accepted, faults.limitEnded(stream.connection, change: nil) else { return }
            self.restoreStreamLimit(stream.connection)
        }
    }

    // MARK: Effects

    private func perform(_ push: FaultedPush, _ faults: LoopFaults) {
        let connection = push.stream.connection
        if let limit = push.effect.streamLimit { self.set(limit, on: connection, faults) }
        switch push.effect.outcome {
        case .passed: self.pass(push, faults)
        case .refused(let answer): self.refuse(push, answer)
        case .reset(let code):
            guard let code = HTTP2ErrorCode.allCases.first(where: { $0.number == code }) else { return }
            self.loop.reset(push.stream, code: code)
        case .goneAway(let goAway): self.goAway(push, goAway, faults)
        case .stuck: faults.leaveStuck(push.stream)
        case .tokenExpired:
            faults.tokenExpired(push.authorization, on: connection)
            let reason = APNSReason.expiredProviderToken
            if self.refuse(push.stream, reason, push.command.apnsID) { self.count(reason, push) }
        case .replyLost(let reply):
            faults.loseReply(push.stream, reply)
            self.hand(push, isAnswerFaulted: true)
        case .closed: self.close(connection, faults)
        }
    }

    /// Hands a push to the engine, as if no rule had caught it.
    private func pass(_ push: FaultedPush, _ faults: LoopFaults) {
        self.hand(push, isAnswerFaulted: faults.awaitsSuccess(push.stream.connection))
    }

    private func hand(_ push: FaultedPush, isAnswerFaulted: Bool) {
        var command = push.command
        if isAnswerFaulted { command.reply = self.faultedAddress(push.stream) }
        push.topic.withByteView { topic in
            push.collapseID.withByteView { collapseID in
                push.payload.withByteView { payload in
                    push.trace.withByteView { trace in
                        self.batch.append(
                            command,
                            topic: topic,
                            collapseID: collapseID,
                            payload: payload,
                            trace: trace
                        )
                    }
                }
            }
        }
    }

    private func refuse(_ push: FaultedPush, _ answer: FaultAnswer) {
        self.response.begin(status: answer.status)
        self.addID(push.command.apnsID)
        self.response.add("content-type", "application/json")
        if let seconds = answer.retryAfterSeconds { self.response.add("retry-after", Int64(seconds)) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("reason")
        writer.string(answer.reason)
        switch answer.timestamp {
        case .absent: ()
        case .usual:
            if answer.status == 410 {
                writer.key("timestamp")
                writer.integer(SystemClock.wall)
            }
        case .at(let moment):
            writer.key("timestamp")
            writer.integer(moment)
        }
        writer.endObject()
        // A push that nobody hears of any more is counted nowhere, and so is a reason that APNs does not have.
        let isAnswered = self.loop.respond(push.stream, self.response, body: writer.buffer.view)
        if isAnswered, let reason = APNSReason(rawValue: answer.reason) { self.count(reason, push) }
    }

    private func count(_ reason: APNSReason, _ push: FaultedPush) {
        self.batch.append(.rejected(reason: reason.index, topic: push.topic))
    }

    private func goAway(_ push: FaultedPush, _ goAway: FaultGoAway, _ faults: LoopFaults) {
        let inFlight: StreamsInFlight =
            switch goAway.inFlight {
            case .answer: .finished
            case .refuse: .refused(from: push.stream.number)
            case .drop: .dropped
            }
        if goAway.inFlight == .answer { self.pass(push, faults) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("reason")
        writer.string(goAway.reason)
        writer.endObject()
        let connection = push.stream.connection
        let code = HTTP2ErrorCode.allCases.first { $0.number == goAway.code } ?? .noError
        let last = self.loop.goAway(connection, debugData: writer.buffer.view, code: code, inFlight: inFlight)
        guard let last else { return }
        faults.abandon(connection, after: goAway.inFlight == .drop ? 0 : last)
    }

    private func close(_ connection: ConnectionID, _ faults: LoopFaults) {
        self.loop.close(connection)
        faults.abandon(connection, after: 0)
    }

    // MARK: Stream limits

    private func set(_ limit: FaultStreamLimit, on connection: ConnectionID, _ faults: LoopFaults) {
        guard self.loop.setStreamLimit(connection, to: limit.limit) else { return }
        let change = faults.limitChanged(connection, endsWithSuccess: limit.end == .success)
        guard case .milliseconds(let milliseconds) = limit.end else { return }
        // Without room it ends with the connection.
        let task = LoopFaults.Task.limitEnds(connection, change: change)
        if faults.agenda.add(task, dueAt: self.loop.now + milliseconds) { self.setAlarm(faults) }
    }

    private func restoreStreamLimit(_ connection: ConnectionID) {
        self.loop.setStreamLimit(connection, to: self.settings.transport.streamsPerConnectionMax)
    }

    // MARK: Small things

    /// The address of a push on whose answer a rule acts.
    private func faultedAddress(_ stream: StreamID) -> StreamAddress { .faulted(self.loopStream(stream)) }

    /// Where nobody asks providers for proof, clients show their tokens all the same.
    private func unverifiedKeyID(_ authorization: ByteView?, _ faults: LoopFaults) -> String? {
        guard authorization != nil, faults.desk.looksAtKeys else { return nil }
        guard let text = try? ProviderToken.text(inAuthorization: authorization) else { return nil }
        return (try? ProviderToken(text))?.keyID
    }

    private func setAlarm(_ faults: LoopFaults) {
        self.loop.alarmAt = faults.agenda.nextDueAt ?? .max
    }
}
