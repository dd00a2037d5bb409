import Engine
import Gateway
import Policy
import Storage
import WakeGateTestKit

/// The services of an engine on devices in memory, without a store, driven by the test.
final class ServiceRig {
    let rig: EngineRig
    let dispatcher: Dispatcher
    let records = GatewayRecords(countingSince: 1_600_000_000_000)
    let limits = LimitCounts()
    let room: RoomState
    let stage: EffectStage
    let pushes: PushService
    let requests: RequestService
    private let loop = LoopMailbox()
    private let output: GroupOutput

    /// The wall clock is ten seconds ahead of policy time.
    static let offset = WallOffset(wall: 10_000, now: Instant(milliseconds: 0))

    init(_ configuration: EngineConfiguration = EngineRig.open()) {
        self.rig = EngineRig(configuration)
        self.output = GroupOutput(mailboxes: PerOutput(self.loop), history: SilentHistory())
        self.stage = EffectStage(group: self.output.makeGroup(), offset: Self.offset)
        self.dispatcher = Dispatcher(engine: self.rig.engine, output: self.stage)
        self.room = RoomState(self.records, self.limits, commitTimes: { CommitTimes() })
        self.pushes = PushService(self.room)
        self.requests = RequestService(self.stage, self.room, self.pushes)
    }

    func workspace() -> Workspace {
        Workspace(engine: self.rig.engine, dispatcher: self.dispatcher, offset: Self.offset, failure: nil)
    }

    /// Performs pushes and requests one after the other.
    func perform(_ fill: (Requests) -> Void) {
        let requests = Requests()
        fill(requests)
        let workspace = self.workspace()
        requests.batch.forEach(
            push: { self.stage.answer(self.pushes.take($0, from: $1, workspace)) },
            command: { command in
                guard case .request(let request) = command else { return }
                self.requests.perform(request, workspace)
            }
        )
    }

    /// Returns the results since the last call.
    func heard() -> [EngineOutput] {
        self.output.release(self.stage.group)
        return EngineOutput.all(from: self.loop)
    }

    /// Returns the replies to pushes since the last call, each as a word.
    func words() -> [String] { self.replies().map(\.word) }

    func replies() -> [PushReply] {
        self.heard().compactMap { heard in
            if case .push(_, let reply) = heard { reply } else { nil }
        }
    }

    /// Returns the answers to requests since the last call, each as status and reason of a refusal.
    func answers() -> [String] {
        self.heard().compactMap { heard in
            guard case .answer(_, let outcome) = heard else { return nil }
            return outcome.reason.map { "\(outcome.status) \($0)" } ?? "\(outcome.status)"
        }
    }
}

/// A history that is never queried and returns nothing.
final class SilentHistory: HistoryOutput {
    func open() {}

    func waitUntilOpened() -> OpenedHistory? { nil }

    func submit(_ batch: inout HistoryBatch) { batch.removeAll() }
}
