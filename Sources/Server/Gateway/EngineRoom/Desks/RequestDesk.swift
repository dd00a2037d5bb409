import Engine
import Policy
import Wire

/// Does what callers ask for who wait for an answer: every request is answered once, now or, by the history or with a
/// list, a little later.
package final class RequestDesk {
    private let stage: EffectStage
    private let records: GatewayRecords
    private let limits: LimitCounts
    private let pushes: PushDesk
    private let commitTimes: () -> CommitTimes
    private var lists = LongLists()
    /// How the webhooks are, by topic, as they said last.
    private(set) var webhooks: [String: WebhookStatus] = [:]
    package private(set) var isDraining = false

    /// What comes of a request.
    private enum Reply {
        case outcome(Outcome)
        /// The history answers.
        case question(HistoryQuestion.Subject)
        /// The stream begins.
        case stream([UInt8], SubscriptionRequest)
        /// Long lists are written one by one.
        case list(LongLists.Subject)
    }

    package init(
        _ stage: EffectStage,
        _ records: GatewayRecords,
        _ limits: LimitCounts,
        _ pushes: PushDesk,
        commitTimes: @escaping () -> CommitTimes
    ) {
        self.stage = stage
        self.records = records
        self.limits = limits
        self.pushes = pushes
        self.commitTimes = commitTimes
    }

    package func perform(_ request: EngineRequest, _ workspace: Workspace) {
        do throws(APIError) {
            switch try self.reply(to: request, workspace) {
            case .outcome(let outcome): self.stage.answer(request.reply, outcome)
            case .question(let subject): self.ask(request.reply, subject, workspace)
            case .stream(let topic, let subscription):
                // The stream begins before the wakes that its subscription brings at once.
                self.stage.subscribed(request.reply)
                _ = topic.withByteView { workspace.dispatcher.subscribed(request.reply, topic: $0, subscription) }
            case .list(let subject): self.lists.append(subject, request.reply, request.caller)
            }
        } catch {
            self.stage.answer(request.reply, .refused(error))
        }
    }

    /// Answers as the request says it is to be once the store has failed.
    package func performAfterFailure(_ request: EngineRequest, _ workspace: Workspace) {
        let error: StoreError?
        switch request.afterFailedStore {
        case .refused: error = workspace.failure?.error
        case .answeredFromDurableState: error = workspace.failure?.durableError
        case .answered: error = nil
        }
        guard let error, let failure = workspace.failure else { return self.perform(request, workspace) }
        self.stage.answer(request.reply, .refused(failure.refusal(error)))
    }

    /// Launches nothing more, and has the outlets say goodbye.
    package func drain(_ workspace: Workspace) {
        self.isDraining = true
        workspace.dispatcher.drain()
        self.stage.draining()
    }

    /// A webhook says how it is; nil when its topic has none any more.
    package func webhookChanged(_ topic: String, _ status: WebhookStatus?) { self.webhooks[topic] = status }

    /// The next step has a long list to write.
    package var isLongListNext: Bool { self.lists.isNext(self.stage.group) }

    /// Writes the long list that is next, if there is room for one.
    package func writeNextLongList(_ workspace: Workspace) {
        self.lists.writeNext(to: self.stage, workspace, self.webhooks)
    }

    private func reply(to request: EngineRequest, _ workspace: Workspace) throws(APIError) -> Reply {
        let reach = Reach(workspace, request.caller)
        // Made where it is asked for: results of wakes, which are the most, have no use for it.
        var tasks: TaskDesk { TaskDesk(reach: reach, limits: self.limits, isDraining: self.isDraining) }
        switch request.verb {
        case .subscribe(let topic, let subscription): return try self.subscribe(topic, subscription, workspace)
        case .report(let wake, let report): return .outcome(try reach.report(wake, report))
        case .progress(let wake, let progress): return .outcome(try tasks.progress(wake, progress))
        case .extend(let wake, let milliseconds): return .outcome(try reach.extend(wake, by: milliseconds))
        case .release(let wake, let reason): return .outcome(try reach.release(wake, reason))
        case .drainStream(let stream): return .outcome(try reach.drain(stream))
        case .register(let token, let topic): return .outcome(try self.register(token, topic, reach))
        case .unregister(let device): return .outcome(try reach.unregister(device))
        case .conditions(let device, let report): return .outcome(try reach.conditions(device, report))
        case .submitTask(let device, let task): return .outcome(try tasks.submit(device, task))
        case .cancelTask(let device, let identifier): return .outcome(try tasks.cancel(device, identifier))
        case .transfersFinished(let device, let finished):
            return .outcome(try tasks.transfersFinished(device, finished))
        case .listTasks(let device): return .outcome(try tasks.list(device))
        case .tasks(let question): return .list(.tasks(question))
        case .devices(let question):
            return .list(.devices(question, workspace.search(question, for: request.caller)))
        case .resources(let topic): return .outcome(tasks.resources(topic))
        case .simulateTaskLaunch(let device, let identifier):
            return .outcome(try tasks.simulateLaunch(device, identifier))
        case .simulateTaskExpiration(let device, let identifier):
            return .outcome(try tasks.simulateExpiration(device, identifier))
        case .simulateLaunch(let device, let ofPendingAlone):
            return .outcome(try reach.simulateLaunch(device, ofPendingAlone: ofPendingAlone))
        case .simulateExpiration(let device): return .outcome(try reach.simulateExpiration(device))
        case .pauseTopic(let topic, let isPaused): return .outcome(try reach.pause(topic, isPaused))
        case .testPush(let push):
            let topic = try reach.topic(of: push)
            return .outcome(.pushed(self.pushes.take(push, of: topic, reply: request.reply, workspace)))
        case .pendingPush(let device): return .outcome(try reach.pendingPush(device))
        case .cancelPending(let device): return .outcome(try reach.cancelPending(device))
        case .explain(let device): return .question(.explanation(try self.explanation(device, reach)))
        case .devicePushes(let device): return .question(.pushes(try reach.device(device).token))
        case .deviceEvents(let device, let selection):
            return .question(.events(try reach.device(device).token, selection))
        case .whatIf(let device, let whatIf): return .question(.whatIf(try reach.replay(device, whatIf)))
        case .pushes(let question): return .question(.allPushes(question, request))
        case .listedPushes(let listing): return .outcome(workspace.pushes(listing))
        case .push(let apnsID, let device): return .question(.push(apnsID, device: device))
        case .statistics: return .outcome(.statistics(workspace.statistics(self.records, self.limits)))
        case .topicStatistics(let topic):
            guard let topic = topic.withByteView({ workspace.engine.findTopic($0) }) else { throw .unknownTopic }
            return .outcome(.statistics(workspace.statistics(topic, self.records)))
        case .topics: return .list(.topics)
        case .readiness: return .outcome(try self.readiness(workspace))
        case .metrics(let figures): return .outcome(self.metrics(figures, workspace))
        }
    }

    private func subscribe(
        _ topic: [UInt8],
        _ subscription: SubscriptionRequest,
        _ workspace: Workspace
    ) throws(APIError) -> Reply {
        guard !self.isDraining else { throw .shutdown }
        if let limit = topic.withByteView({ workspace.dispatcher.limitMet(topic: $0, subscription) }) {
            self.limits.met(limit)
            throw limit == .streamsPerDeviceMax ? .tooManyStreamsOfDevice : .full
        }
        return .stream(topic, subscription)
    }

    private func register(_ token: DeviceToken, _ topic: [UInt8], _ reach: Reach) throws(APIError) -> Outcome {
        switch try reach.register(token, topic) {
        case .refused(.otherTopic): throw .otherTopic
        case .refused(let refusal):
            if let limit = refusal.limit { self.limits.met(limit) }
            throw .full
        case .device, .newcomer: return .registered(token, topic: topic)
        }
    }

    private func readiness(_ workspace: Workspace) throws(APIError) -> Outcome {
        if let failure = workspace.failure { throw failure.refusal(failure.error) }
        guard !self.isDraining else { throw .shutdown }
        return .ready
    }

    private func explanation(_ name: Named<DeviceToken>, _ reach: Reach) throws(APIError) -> Explanation {
        let device = try reach.device(name)
        let snapshot = reach.workspace.dispatcher.snapshot(device.index)
        return Explanation(
            device: snapshot,
            webhook: self.webhooks[snapshot.topic],
            workers: reach.workspace.workerCounts(reach.workspace.engine.topic(of: device.index)),
            policy: self.records.policies.current,
            now: reach.workspace.engine.now,
            offset: reach.workspace.offset
        )
    }

    private func ask(_ reply: StreamAddress, _ subject: HistoryQuestion.Subject, _ workspace: Workspace) {
        self.stage.ask(
            HistoryQuestion(
                reply: reply,
                subject: subject,
                key: workspace.engine.historyKey,
                offset: workspace.offset,
                policies: self.records.policies
            )
        )
    }

    private func metrics(_ figures: GatewayFigures, _ workspace: Workspace) -> Outcome {
        let metrics = EngineMetrics(
            workspace: workspace,
            records: self.records,
            limits: self.limits,
            webhooks: self.webhooks,
            isDraining: self.isDraining,
            commitTimes: self.commitTimes()
        )
        return .document(metrics.document(figures))
    }
}
