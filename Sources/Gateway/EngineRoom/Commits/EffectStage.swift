import Answers
import Bytes
import DeviceEngine
import History
import WakeDispatch

/// Collects what steps have for the loops, the webhooks and the history until it is durable.
final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset

    init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
    }

    func answer(_ reply: PushReply) {
        self.group.effects[reply.address].append(reply)
    }

    func answer(_ address: StreamAddress, _ outcome: Outcome) {
        self.group.effects[address].append(outcome, to: address)
    }

    /// The history answers, behind everything that happened until now.
    func ask(_ question: HistoryQuestion) {
        self.group.history.questions.append(question)
    }

    /// A stream begins.
    func subscribed(_ address: StreamAddress) {
        self.group.effects[address].appendSubscribed(address)
    }

    /// Nothing is launched any more.
    func draining() {
        for effects in self.group.effects.loops { effects.appendDraining() }
        self.group.effects.webhooks.appendDraining()
    }

    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.group.effects[stream].appendWake(wake, self.offset, to: stream)
    }

    func expire(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendExpired(wake, on: stream)
    }

    func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(wake, from: stream)
    }

    func drained(_ stream: StreamAddress) {
        self.group.effects[stream].appendDrained(stream)
    }
}
