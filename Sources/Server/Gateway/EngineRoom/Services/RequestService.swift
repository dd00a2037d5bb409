import Engine
import Policy
import Wire

/// A service that performs requests and answers each of them exactly once: immediately, when the history answers, or
/// when a long list is complete.
package final class RequestService {
    private let stage: EffectStage
    private let pushes: PushService
    let room: RoomState
    private var lists = LongLists()

    package init(
        _ stage: EffectStage,
        _ records: GatewayRecords,
        _ limits: LimitCounts,
        _ pushes: PushService,
        commitTimes: @escaping () -> CommitTimes
    ) {
        self.stage = stage
        self.pushes = pushes
        self.room = RoomState(records, limits, commitTimes: commitTimes)
    }

    package var isDraining: Bool { self.room.isDraining }

    /// The last reported status of each webhook, by topic.
    var webhooks: [String: WebhookStatus] { self.room.webhooks }

    package func perform(_ request: EngineRequest, _ workspace: Workspace) {
        do throws(APIError) {
            switch try request.work.perform(AuthorizedScope(workspace, request.caller, self.room)) {
            case .outcome(let outcome): self.stage.answer(request.reply, outcome)
            case .history(let subject): self.ask(request, subject, workspace)
            case .stream(let topic, let subscription):
                // The stream must begin before its first wakes, which the subscription may launch immediately.
                let warning = workspace.engine.configuration.permittedTasks.warning(
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

    /// Handles a request after the store has failed: performs or refuses it, according to its `afterFailedStore`.
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

    /// Stops launching wakes, and tells all outputs to end their streams.
    package func drain(_ workspace: Workspace) {
        self.room.isDraining = true
        workspace.dispatcher.drain()
        self.stage.draining()
    }

    /// Records the status of a topic's webhook; nil if the topic no longer has a webhook.
    package func webhookChanged(_ topic: String, _ status: WebhookStatus?) { self.room.webhooks[topic] = status }

    /// True if the next step will continue or write a long list.
    package var isLongListNext: Bool { self.lists.isNext(self.stage.group) }

    /// Continues the next long list if the step has room for it, and answers its request when the list is complete.
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

/// The queue of requests for long lists.
///
/// A list examines every topic or every device with tasks, and may take as long as a thousand pushes. So that many
/// lists neither delay other requests nor fill the memory, a step writes at most one list, and none while another list
/// waits for its commit. A list of devices examines all devices and takes several steps.
private struct LongLists {
    private var entries: [(list: LongList, request: EngineRequest)] = []
    /// The index of the first list that is not written yet.
    private var first = 0

    mutating func append(_ list: LongList, _ request: EngineRequest) { self.entries.append((list, request)) }

    /// Returns true if a list is waiting and `group` has room for it.
    func isNext(_ group: StepGroup) -> Bool { self.first < self.entries.count && !group.hasLongList }

    /// Continues the search of the next list.
    ///
    /// - Returns: the list and its request when the search has ended, or when the store has failed and cannot be read;
    ///   otherwise nil.
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
