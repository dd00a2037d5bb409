import Engine
import Policy
import Wire

/// Does what callers ask for who wait for an answer: every request is answered once, now or, by the history or with a
/// list, a little later.
package final class RequestDesk {
    private let stage: EffectStage
    private let pushes: PushDesk
    private let room: RoomState
    private var lists = LongLists()

    package init(
        _ stage: EffectStage,
        _ records: GatewayRecords,
        _ limits: LimitCounts,
        _ pushes: PushDesk,
        commitTimes: @escaping () -> CommitTimes
    ) {
        self.stage = stage
        self.pushes = pushes
        self.room = RoomState(records, limits, commitTimes: commitTimes)
    }

    package var isDraining: Bool { self.room.isDraining }

    /// How the webhooks are, by topic, as they said last.
    var webhooks: [String: WebhookStatus] { self.room.webhooks }

    package func perform(_ request: EngineRequest, _ workspace: Workspace) {
        do throws(APIError) {
            switch try request.work.perform(Reach(workspace, request.caller, self.room)) {
            case .outcome(let outcome): self.stage.answer(request.reply, outcome)
            case .history(let subject): self.ask(request, subject, workspace)
            case .stream(let topic, let subscription):
                // The stream begins before the wakes that its subscription brings at once.
                let warning = workspace.engine.permittedTasks.warning(
                    topic: topic.withByteView { $0.string },
                    tasks: subscription.tasks,
                    worker: subscription.label
                )
                self.stage.subscribed(request.reply, warning)
                _ = topic.withByteView { workspace.dispatcher.subscribed(request.reply, topic: $0, subscription) }
            case .list(let list): self.lists.append(list, request)
            case .push(let push, let token, let topic):
                self.stage.answer(request.reply, .pushed(self.pushes.take(push, to: token, of: topic, workspace)))
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
        self.room.isDraining = true
        workspace.dispatcher.drain()
        self.stage.draining()
    }

    /// A webhook says how it is; nil when its topic has none any more.
    package func webhookChanged(_ topic: String, _ status: WebhookStatus?) { self.room.webhooks[topic] = status }

    /// The next step has a long list to write.
    package var isLongListNext: Bool { self.lists.isNext(self.stage.group) }

    /// Writes the long list that is next, if there is room for one.
    package func writeNextLongList(_ workspace: Workspace) {
        guard self.lists.isNext(self.stage.group), let (list, request) = self.lists.takeNext(workspace) else { return }
        self.stage.group.hasLongList = true
        if let failure = workspace.failure, let error = failure.durableError {
            return self.stage.answer(request.reply, .refused(failure.refusal(error)))
        }
        switch list.finish(workspace) {
        case .outcome(let outcome): self.stage.answer(request.reply, outcome)
        case .history(let subject): self.ask(request, subject, workspace)
        }
    }

    private func ask(_ request: EngineRequest, _ subject: HistoryQuestion.Subject, _ workspace: Workspace) {
        self.stage.ask(
            HistoryQuestion(
                request,
                subject: subject,
                key: workspace.engine.historyKey,
                offset: workspace.offset,
                policies: self.room.records.policies
            )
        )
    }
}

/// Who waits for a long list, the first first, and the lists.
///
/// A list passes over every topic or every device with tasks, and may take as long as a thousand pushes: a step writes
/// one, and none while another waits for its commit, so that neither the others nor the memory wait for a crowd of
/// them. A list of devices passes over all there are, and takes several steps.
private struct LongLists {
    private var entries: [(list: LongList, request: EngineRequest)] = []
    /// The first entry that has no list yet.
    private var first = 0

    mutating func append(_ list: LongList, _ request: EngineRequest) { self.entries.append((list, request)) }

    /// Whether `group` has room for a list that somebody waits for.
    func isNext(_ group: StepGroup) -> Bool { self.first < self.entries.count && !group.hasLongList }

    /// Searches on for the next list, and takes it once its search has ended.
    mutating func takeNext(_ workspace: Workspace) -> (list: LongList, request: EngineRequest)? {
        let next = self.entries[self.first]
        guard workspace.failure?.durableError != nil || next.list.search(workspace) else { return nil }
        self.first += 1
        if self.first == self.entries.count {
            self.entries.removeAll()
            self.first = 0
        }
        return next
    }
}
