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
        case .request(let request): self.perform(request)
        case .rejected(let reason, let topic): topic.withByteView { self.countRejected(reason, $0) }
        case .streamEnded(let stream): self.dispatcher.streamEnded(stream)
        case .streamPaused(let stream, let isPaused): self.dispatcher.streamPaused(stream, isPaused)
        case .slotsChanged(let stream, let slots): self.dispatcher.slotsChanged(stream, to: slots)
        case .lost(let stream, let wake, let takingBackAttempt):
            self.dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
        case .webhookChanged(let topic, let status): self.webhooks[topic] = status
        case .configure(let settings): self.configure(settings)
        case .workersAsked: self.workersAsked()
        case .drain: self.drain()
        }
    }

    /// What changes nothing goes on, and requests are answered as they say.
    func performAfterFailure(_ command: EngineCommand) {
        switch command {
        case .request(let request): self.performAfterFailure(request)
        case .rejected, .webhookChanged, .configure: self.perform(command)
        case .streamEnded, .streamPaused, .slotsChanged, .lost, .workersAsked: break
        case .drain: self.drain()
        }
    }

    private func performAfterFailure(_ request: EngineRequest) {
        switch request.afterFailedStore {
        case .refused: self.answer(request.reply, .refused(.storeFailed(self.failure?.error)))
        case .answeredFromDurableState:
            if let error = self.failure?.durableError {
                self.answer(request.reply, .refused(.storeFailed(error)))
            } else {
                self.perform(request)
            }
        case .answered: self.perform(request)
        }
    }

    private func perform(_ request: EngineRequest) {
        let (reply, caller) = (request.reply, request.caller)
        switch request.verb {
        case .subscribe(let topic, let subscription): self.subscribe(reply, topic, subscription)
        case .report(let wake, let result): self.report(reply, caller, wake, result)
        case .extend(let wake, let milliseconds): self.extend(reply, caller, wake, milliseconds)
        case .drainStream(let stream): self.drainStream(reply, caller, stream)
        case .register(let token, let topic): self.register(reply, caller, token, topic)
        case .unregister(let device): self.unregister(reply, caller, device)
        case .conditions(let device, let report): self.conditions(reply, caller, device, report)
        case .simulateLaunch(let device): self.simulateLaunch(reply, caller, device)
        case .simulateExpiration(let device): self.simulateExpiration(reply, caller, device)
        case .explain(let device): self.explain(reply, caller, device)
        case .devicePushes(let device): self.devicePushes(reply, caller, device)
        case .whatIf(let device, let whatIf): self.whatIf(reply, caller, device, whatIf)
        case .push(let apnsID, let device): self.ask(reply, .push(apnsID, device: device))
        case .statistics: self.statistics(reply)
        case .topicStatistics(let topic): self.topicStatistics(reply, topic)
        case .topics: self.topicLists.append(reply, caller)
        case .readiness: self.readiness(reply)
        case .metrics(let figures): self.metrics(reply, figures)
        }
    }
}

// MARK: - Workers

extension EngineCore {
    private func subscribe(_ reply: StreamAddress, _ topic: [UInt8], _ request: SubscriptionRequest) {
        guard !self.isDraining else { return self.answer(reply, .refused(.shutdown)) }
        // The stream begins before the wakes that its subscription brings at once.
        if let limit = topic.withByteView({ self.dispatcher.limitMet(topic: $0, request) }) {
            self.limitMet(limit)
            return self.answer(reply, .refused(limit == .streamsPerDeviceMax ? .tooManyStreamsOfDevice : .full))
        }
        self.answerSubscribed(reply)
        _ = topic.withByteView { self.dispatcher.subscribed(reply, topic: $0, request) }
    }

    private func report(_ reply: StreamAddress, _ caller: Caller, _ wake: Named<WakeID>, _ result: FetchResult) {
        guard let wake = wake.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownWake))
        }
        switch self.dispatcher.report(result, wake: wake) {
        case .ended, .repeated: self.answer(reply, .done)
        case .endedOtherwise(let outcome): self.answer(reply, .refused(.wakeEnded(outcome.name)))
        case .unknown: self.answer(reply, .refused(.unknownWake))
        }
    }

    private func extend(_ reply: StreamAddress, _ caller: Caller, _ wake: Named<WakeID>, _ milliseconds: Int64?) {
        guard let wake = wake.find(in: self.engine, for: caller), let topic = self.engine.topic(ofWake: wake) else {
            return self.answer(reply, .refused(.unknownWake))
        }
        let milliseconds = milliseconds ?? self.engine.executionWindow(topic)
        switch self.dispatcher.extend(wake, by: milliseconds) {
        case .lasts(let deadline):
            let timeLeft = deadline.milliseconds - self.engine.now.milliseconds
            self.answer(reply, .extended(wake, deadline: self.offset.wall(deadline), timeLeft: timeLeft))
        case .limitReached(let deadline):
            self.answer(reply, .refused(.extensionLimitReached(self.offset.wall(deadline))))
        case .ended(let outcome): self.answer(reply, .refused(.wakeEnded(outcome.name)))
        case .unknown: self.answer(reply, .refused(.unknownWake))
        }
    }

    private func drainStream(_ reply: StreamAddress, _ caller: Caller, _ stream: StreamAddress) {
        guard self.dispatcher.streamDraining(stream, isAdmitted: { caller.reaches($0, in: self.engine) }) else {
            return self.answer(reply, .refused(.unknownStream))
        }
        self.answer(reply, .done)
    }

    private func register(_ reply: StreamAddress, _ caller: Caller, _ token: DeviceToken, _ topic: [UInt8]) {
        // A token that was removed may move to another topic, but nobody takes it from a topic beyond their own.
        if self.engine.find(token) != nil, Named(token).find(in: self.engine, for: caller) == nil {
            return self.answer(reply, .refused(.otherTopic))
        }
        switch topic.withByteView({ self.dispatcher.register(token, topic: $0) }) {
        case .refused(.otherTopic): self.answer(reply, .refused(.otherTopic))
        case .refused(let refusal):
            if let limit = refusal.limit { self.limitMet(limit) }
            self.answer(reply, .refused(.full))
        case .device, .newcomer: self.answer(reply, .registered(token, topic: topic))
        }
    }

    private func unregister(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>) {
        guard let device = device.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownDevice))
        }
        self.dispatcher.unregister(device.index)
        self.answer(reply, .done)
    }

    private func conditions(
        _ reply: StreamAddress,
        _ caller: Caller,
        _ device: Named<DeviceToken>,
        _ report: ConditionsReport
    ) {
        guard let device = self.registered(device, caller, reply) else { return }
        self.answer(reply, .conditions(self.dispatcher.conditions(report, device)))
    }
}

// MARK: - Operators

extension EngineCore {
    private func simulateLaunch(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>) {
        guard let device = self.registered(device, caller, reply) else { return }
        switch self.dispatcher.simulateLaunch(device) {
        case .launched: self.answer(reply, .accepted)
        case .wakeInFlight: self.answer(reply, .refused(.wakeInFlight))
        case .noWorker: self.answer(reply, .refused(.noWorker))
        }
    }

    private func simulateExpiration(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>) {
        guard let device = device.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownDevice))
        }
        guard self.dispatcher.simulateExpiration(device.index) else {
            return self.answer(reply, .refused(.noWakeInFlight))
        }
        self.answer(reply, .accepted)
    }

    private func explain(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>) {
        guard let device = device.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownDevice))
        }
        let snapshot = self.dispatcher.snapshot(device.index)
        let explanation = Explanation(
            device: snapshot,
            webhook: self.webhooks[snapshot.topic],
            policy: self.policies.current,
            now: self.engine.now,
            offset: self.offset
        )
        self.ask(reply, .explanation(explanation))
    }

    private func devicePushes(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>) {
        guard let device = device.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownDevice))
        }
        self.ask(reply, .pushes(device.token))
    }

    private func whatIf(_ reply: StreamAddress, _ caller: Caller, _ device: Named<DeviceToken>, _ whatIf: WhatIf) {
        guard let device = device.find(in: self.engine, for: caller) else {
            return self.answer(reply, .refused(.unknownDevice))
        }
        let parameters = self.engine.snapshot(device.index).parameters
        let replay = PolicyReplay(token: device.token, whatIf: whatIf, parameters: parameters, now: self.engine.now)
        self.ask(reply, .whatIf(replay))
    }

    /// The history answers, behind everything that happened until now.
    private func ask(_ reply: StreamAddress, _ subject: HistoryQuestion.Subject) {
        let question = HistoryQuestion(
            reply: reply,
            subject: subject,
            key: self.engine.historyKey,
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
        self.answer(reply, .statistics(statistics))
    }

    private func topicStatistics(_ reply: StreamAddress, _ name: [UInt8]) {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }) else {
            return self.answer(reply, .refused(.unknownTopic))
        }
        let statistics = Statistics(
            books: self.engine.snapshot(topic).books,
            rejected: self.rejections[topic],
            workers: self.workerCounts(topic),
            since: self.countingSince
        )
        self.answer(reply, .statistics(statistics))
    }

    private func readiness(_ reply: StreamAddress) {
        if let failure = self.failure {
            self.answer(reply, .refused(.storeFailed(failure.error)))
        } else if self.isDraining {
            self.answer(reply, .refused(.shutdown))
        } else {
            self.answer(reply, .ready)
        }
    }

    /// Workers of one topic, or of all; after a failure those there were.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
    }

    /// The registered device with this token; when there is none, that is the answer.
    private func registered(_ device: Named<DeviceToken>, _ caller: Caller, _ reply: StreamAddress) -> DeviceIndex? {
        guard let device = device.find(in: self.engine, for: caller) else {
            self.answer(reply, .refused(.unknownDevice))
            return nil
        }
        guard self.engine.identity(device.index).isRegistered else {
            let moment = self.engine.snapshot(device.index).registrationChangedAt
            self.answer(reply, .refused(.unregistered(at: self.offset.wall(moment))))
            return nil
        }
        return device.index
    }
}
