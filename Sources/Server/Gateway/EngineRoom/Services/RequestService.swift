import Engine
import Policy
import Wire

/// A service that performs requests and answers each of them exactly once: immediately, when the history answers, or
/// when a long list is complete.
package final class RequestService {
    private let stage: EffectStage
    private let pushes: PushService
    private let room: RoomState
    /// The requests for long lists.
    ///
    /// A list examines every topic, and may take as long as a thousand pushes. So that many lists neither delay other
    /// requests nor fill the memory, a step writes at most one list, and none while another list waits for its commit.
    /// A list of devices or tasks may examine all devices in several steps.
    private var lists = FIFOQueue<(list: LongList, request: EngineRequest)>()

    package init(_ stage: EffectStage, _ room: RoomState, _ pushes: PushService) {
        self.stage = stage
        self.pushes = pushes
        self.room = room
    }

    package func perform(_ request: EngineRequest, _ workspace: Workspace) {
        do throws(APIError) {
            let scope = AuthorizedScope(workspace: workspace, caller: request.caller, room: self.room)
            self.answer(request, try request.work.perform(scope), workspace)
        } catch {
            self.stage.answer(request.reply, .refused(error))
        }
    }

    private func answer(_ request: EngineRequest, _ reply: EngineReply, _ workspace: Workspace) {
        switch reply {
        case .outcome(let outcome): self.stage.answer(request.reply, outcome)
        case .history(let subject):
            self.stage.ask(
                HistoryQuestion(
                    request,
                    subject: subject,
                    key: workspace.engine.historyKey,
                    offset: workspace.offset,
                    policies: self.room.records.policies
                )
            )
        case .stream(let topic, let subscription):
            // The stream must begin before its first wakes, which the subscription may launch immediately.
            let warning = workspace.engine.configuration.permittedTasks.warning(
                topic: topic.withByteView { $0.string },
                tasks: subscription.tasks,
                worker: subscription.label
            )
            self.stage.subscribed(request.reply, warning)
            _ = topic.withByteView { workspace.dispatcher.subscribed(request.reply, topic: $0, subscription) }
        case .list(let list): self.lists.append((list, request))
        case .push(let push, let token, let topic):
            let reply = self.pushes.take(push, to: token, of: topic, workspace)
            self.stage.answer(request.reply, .object { reply.writeMembers(to: &$0) })
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

    /// Refuses all further pushes, stops launching wakes, and tells all outputs to end their streams.
    package func drain(_ workspace: Workspace) {
        self.room.isDraining = true
        workspace.dispatcher.drain()
        self.stage.draining()
    }

    /// True if the next step will continue or write a long list.
    package var isLongListNext: Bool { !self.lists.isEmpty && !self.stage.group.hasLongList }

    /// Continues the next long list if the step has room for it, and answers its request when the list is complete.
    package func writeNextLongList(_ workspace: Workspace) {
        guard !self.stage.group.hasLongList, let (list, request) = self.lists.first else { return }
        let failure = workspace.failure
        guard failure?.durableError != nil || list.search(workspace) else { return }
        _ = self.lists.popFirst()
        self.stage.group.hasLongList = true
        if let failure, let error = failure.durableError {
            return self.stage.answer(request.reply, .refused(failure.refusal(error)))
        }
        self.answer(request, list.finish(workspace), workspace)
    }
}
