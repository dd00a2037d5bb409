import APNSProtocol
import Access
import Answers
import Bytes
import DeviceEngine
import LaunchPolicy
import WakeDispatch

extension EngineCore {
    func perform(_ command: EngineCommand) {
        switch command {
        case .rejected(let reason, let topic): topic.withByteView { self.countRejected(reason, $0) }
        case .subscribe(let reply, let topic, let request): self.subscribe(reply, topic, request)
        case .streamEnded(let stream): self.dispatcher.streamEnded(stream)
        case .streamPaused(let stream, let isPaused): self.dispatcher.streamPaused(stream, isPaused)
        case .slotsChanged(let stream, let slots): self.dispatcher.slotsChanged(stream, to: slots)
        case .lost(let stream, let wake, let takingBackAttempt):
            self.dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
        case .webhookChanged(let topic, let status): self.webhooks[topic] = status
        case .report(let reply, let wake, let result): self.report(reply, wake, result)
        case .extend(let reply, let wake, let milliseconds): self.extend(reply, wake, milliseconds)
        case .drainStream(let reply, let stream): self.drainStream(reply, stream)
        case .register(let reply, let token, let topic): self.register(reply, token, topic)
        case .unregister(let reply, let token): self.unregister(reply, token)
        case .conditions(let reply, let token, let report): self.conditions(reply, token, report)
        case .simulateLaunch(let reply, let token): self.simulateLaunch(reply, token)
        case .simulateExpiration(let reply, let token): self.simulateExpiration(reply, token)
        case .explain(let reply, let token): self.explain(reply, token)
        case .devicePushes(let reply, let token): self.devicePushes(reply, token)
        case .whatIf(let reply, let token, let whatIf): self.whatIf(reply, token, whatIf)
        case .push(let reply, let apnsID, let token):
            self.ask(reply, .push(apnsID, device: token.map { self.historyNumber($0) }))
        case .statistics(let reply): self.statistics(reply)
        case .topicStatistics(let reply, let topic): self.topicStatistics(reply, topic)
        case .topics(let reply): self.topicLists.append(reply, self.scope)
        case .readiness(let reply): self.readiness(reply)
        case .metrics(let reply, let figures): self.metrics(reply, figures)
        case .within(let scope, let command): self.reaching(scope) { self.perform(command) }
        case .configure(let settings): self.configure(settings)
        case .workersAsked: self.workersAsked()
        case .drain: self.drain()
        }
    }

    /// Questions are answered still, everything else but the shutdown is refused.
    func performAfterFailure(_ command: EngineCommand) {
        switch command {
        case .explain(let reply, _), .devicePushes(let reply, _), .whatIf(let reply, _, _), .statistics(let reply),
            .topicStatistics(let reply, _):
            if let error = self.failure?.durableError {
                self.answer(reply, .storeFailed(error))
            } else {
                self.perform(command)
            }
        case .readiness, .rejected, .push, .webhookChanged, .metrics, .configure, .topics: self.perform(command)
        case .within(let scope, let command): self.reaching(scope) { self.performAfterFailure(command) }
        case .streamEnded, .streamPaused, .slotsChanged, .lost, .workersAsked: break
        case .drain: self.drain()
        case .subscribe(let reply, _, _), .report(let reply, _, _), .register(let reply, _, _),
            .extend(let reply, _, _), .drainStream(let reply, _),
            .unregister(let reply, _), .conditions(let reply, _, _), .simulateLaunch(let reply, _),
            .simulateExpiration(let reply, _):
            self.answer(reply, .storeFailed(self.failure?.error))
        }
    }
}

// MARK: - Callers bound to topics

extension EngineCore {
    private func reaching(_ scope: TopicScope, _ perform: () -> Void) {
        self.scope = scope
        perform()
        self.scope = .all
    }

    private func reaches(_ topic: TopicIndex) -> Bool {
        self.scope == .all || self.scope.contains(self.engine.snapshot(topic).name)
    }

    /// The device with this token; one of a topic beyond the caller's is not found.
    private func find(_ token: DeviceToken) -> DeviceIndex? {
        guard let device = self.engine.find(token), self.reaches(self.engine.identity(device).topic) else { return nil }
        return device
    }
}

// MARK: - Workers

extension EngineCore {
    private func subscribe(_ reply: StreamAddress, _ topic: [UInt8], _ request: SubscriptionRequest) {
        guard !self.isDraining else { return self.answer(reply, .shutdown) }
        // The stream begins before the wakes that its subscription brings at once.
        if let limit = topic.withByteView({ self.dispatcher.limitMet(topic: $0, request) }) {
            self.limitMet(limit)
            return self.answer(reply, limit == .streamsPerDeviceMax ? .tooManyStreamsOfDevice : .full)
        }
        self.answerSubscribed(reply)
        _ = topic.withByteView { self.dispatcher.subscribed(reply, topic: $0, request) }
    }

    private func report(_ reply: StreamAddress, _ wake: WakeID, _ result: FetchResult) {
        guard self.engine.topic(ofWake: wake).map({ self.reaches($0) }) ?? true else {
            return self.answer(reply, .unknownWake)
        }
        switch self.dispatcher.report(result, wake: wake) {
        case .ended, .repeated: self.answer(reply, status: 204)
        case .endedOtherwise(let outcome): self.answer(reply, .wakeEnded(outcome.rawValue))
        case .unknown: self.answer(reply, .unknownWake)
        }
    }

    private func extend(_ reply: StreamAddress, _ wake: WakeID, _ milliseconds: Int64?) {
        let topic = self.engine.topic(ofWake: wake)
        guard let topic, self.reaches(topic) else { return self.answer(reply, .unknownWake) }
        let milliseconds = milliseconds ?? self.engine.executionWindow(topic)
        switch self.dispatcher.extend(wake, by: milliseconds) {
        case .lasts(let deadline):
            self.writer.beginObject()
            self.writer.key("wake")
            self.writer.hex { wake.write(to: &$0) }
            self.writer.key("deadline")
            self.writer.integer(self.offset.wall(deadline))
            self.writer.key("timeLeft")
            self.writer.integer(deadline.milliseconds - self.engine.now.milliseconds)
            self.writer.endObject()
            self.answer(reply, status: 200)
        case .limitReached(let deadline): self.answer(reply, .extensionLimitReached(self.offset.wall(deadline)))
        case .ended(let outcome): self.answer(reply, .wakeEnded(outcome.rawValue))
        case .unknown: self.answer(reply, .unknownWake)
        }
    }

    private func drainStream(_ reply: StreamAddress, _ stream: StreamAddress) {
        guard self.dispatcher.streamDraining(stream, isAdmitted: { self.reaches($0) }) else {
            return self.answer(reply, .unknownStream)
        }
        self.answer(reply, status: 204)
    }

    private func register(_ reply: StreamAddress, _ token: DeviceToken, _ topic: [UInt8]) {
        // A token that was removed may move to another topic, but nobody takes it from a topic beyond their own.
        if self.engine.find(token) != nil, self.find(token) == nil { return self.answer(reply, .otherTopic) }
        switch topic.withByteView({ self.dispatcher.register(token, topic: $0) }) {
        case .refused(.otherTopic): self.answer(reply, .otherTopic)
        case .refused(let refusal):
            if let limit = refusal.limit { self.limitMet(limit) }
            self.answer(reply, .full)
        case .device, .newcomer:
            self.writer.beginObject()
            self.writer.key("token")
            self.writer.hex { token.writeHex(to: &$0) }
            self.writer.key("topic")
            topic.withByteView { self.writer.string($0) }
            self.writer.endObject()
            self.answer(reply, status: 201)
        }
    }

    private func unregister(_ reply: StreamAddress, _ token: DeviceToken) {
        guard let device = self.find(token) else { return self.answer(reply, .unknownDevice) }
        self.dispatcher.unregister(device)
        self.answer(reply, status: 204)
    }

    private func conditions(_ reply: StreamAddress, _ token: DeviceToken, _ report: ConditionsReport) {
        guard let device = self.registered(token, reply) else { return }
        let conditions = self.dispatcher.conditions(report, device)
        conditions.write(to: &self.writer)
        self.answer(reply, status: 200)
    }
}

// MARK: - Operators

extension EngineCore {
    private func simulateLaunch(_ reply: StreamAddress, _ token: DeviceToken) {
        guard let device = self.registered(token, reply) else { return }
        switch self.dispatcher.simulateLaunch(device) {
        case .launched: self.answerAccepted(reply)
        case .wakeInFlight: self.answer(reply, .wakeInFlight)
        case .noWorker: self.answer(reply, .noWorker)
        }
    }

    private func simulateExpiration(_ reply: StreamAddress, _ token: DeviceToken) {
        guard let device = self.find(token) else { return self.answer(reply, .unknownDevice) }
        guard self.dispatcher.simulateExpiration(device) else { return self.answer(reply, .noWakeInFlight) }
        self.answerAccepted(reply)
    }

    private func explain(_ reply: StreamAddress, _ token: DeviceToken) {
        guard let device = self.find(token) else { return self.answer(reply, .unknownDevice) }
        let snapshot = self.dispatcher.snapshot(device)
        let explanation = Explanation(
            device: snapshot,
            webhook: self.webhooks[snapshot.topic],
            policy: self.policies.current,
            now: self.engine.now,
            offset: self.offset
        )
        explanation.writeBeginning(to: &self.writer)
        self.ask(reply, .recent(device: self.historyNumber(token), beginning: self.writer.buffer.view.array))
        self.writer.removeAll()
    }

    private func devicePushes(_ reply: StreamAddress, _ token: DeviceToken) {
        guard self.find(token) != nil else { return self.answer(reply, .unknownDevice) }
        self.writer.beginObject()
        self.writer.key("token")
        self.writer.hex { token.writeHex(to: &$0) }
        self.writer.key("pushes")
        self.ask(reply, .pushes(device: self.historyNumber(token), beginning: self.writer.buffer.view.array))
        self.writer.removeAll()
    }

    private func whatIf(_ reply: StreamAddress, _ token: DeviceToken, _ whatIf: WhatIf) {
        guard let device = self.find(token) else { return self.answer(reply, .unknownDevice) }
        let parameters = self.engine.snapshot(device).parameters
        let replay = PolicyReplay(token: token, whatIf: whatIf, parameters: parameters, now: self.engine.now)
        self.ask(reply, .whatIf(replay, device: self.historyNumber(token)))
    }

    private func historyNumber(_ token: DeviceToken) -> UInt64 {
        HistoryEvent.device(of: token, self.engine.historyKey)
    }

    /// The history answers, behind everything that happened until now.
    private func ask(_ reply: StreamAddress, _ subject: HistoryQuestion.Subject) {
        let question = HistoryQuestion(
            reply: reply,
            subject: subject,
            offset: self.offset,
            policies: self.policies
        )
        self.stage.group.history.questions.append(question)
    }

    private func statistics(_ reply: StreamAddress) {
        let statistics = Statistics(
            books: self.engine.totals,
            rejected: self.rejections.total,
            workers: self.workerCounts(nil),
            since: self.countingSince,
            limits: self.timesLimitsWereMet,
            acceptedLoss: self.acceptedLoss
        )
        statistics.write(to: &self.writer)
        self.answer(reply, status: 200)
    }

    private func topicStatistics(_ reply: StreamAddress, _ name: [UInt8]) {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }) else {
            return self.answer(reply, .unknownTopic)
        }
        let statistics = Statistics(
            books: self.engine.snapshot(topic).books,
            rejected: self.rejections[topic],
            workers: self.workerCounts(topic),
            since: self.countingSince
        )
        statistics.write(to: &self.writer)
        self.answer(reply, status: 200)
    }

    private func readiness(_ reply: StreamAddress) {
        if let failure = self.failure {
            self.answer(reply, .storeFailed(failure.error))
        } else if self.isDraining {
            self.answer(reply, .shutdown)
        } else {
            self.writer.beginObject()
            self.writer.key("ready")
            self.writer.bool(true)
            self.writer.endObject()
            self.answer(reply, status: 200)
        }
    }

    /// Workers of one topic, or of all; after a failure those there were.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
    }

    private func answerAccepted(_ reply: StreamAddress) {
        self.writer.beginObject()
        self.writer.key("accepted")
        self.writer.bool(true)
        self.writer.endObject()
        self.answer(reply, status: 202)
    }

    /// The registered device with this token; when there is none, that is the answer.
    private func registered(_ token: DeviceToken, _ reply: StreamAddress) -> DeviceIndex? {
        guard let device = self.find(token) else {
            self.answer(reply, .unknownDevice)
            return nil
        }
        guard self.engine.identity(device).isRegistered else {
            let moment = self.engine.snapshot(device).registrationChangedAt
            self.answer(reply, .unregistered(at: self.offset.wall(moment)))
            return nil
        }
        return device
    }
}
