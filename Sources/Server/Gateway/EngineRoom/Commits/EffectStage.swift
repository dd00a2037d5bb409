package import Engine
package import Policy
import Storage
package import Wire

/// Collects what steps have for the loops, the webhooks and the history until it is durable.
package final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    package var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset

    package init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
    }

    package func answer(_ reply: PushReply) {
        self.group.effects[reply.address].append(reply)
    }

    package func answer(_ address: StreamAddress, _ outcome: Outcome) {
        self.group.effects[address].append(outcome, to: address)
    }

    /// The history answers, behind everything that happened until now.
    package func ask(_ question: HistoryQuestion) {
        self.group.history.questions.append(question)
    }

    /// A stream begins.
    package func subscribed(_ address: StreamAddress) {
        self.group.effects[address].appendSubscribed(address)
    }

    /// Nothing is launched any more.
    package func draining() {
        for effects in self.group.effects.loops { effects.appendDraining() }
        self.group.effects.webhooks.appendDraining()
    }

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.group.effects[stream].appendWake(wake, self.offset, to: stream)
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.group.effects[stream].appendExpired(wake, reason, on: stream)
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.group.effects[stream].append(conditions, of: token, to: stream)
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(wake, from: stream)
    }

    package func drained(_ stream: StreamAddress) {
        self.group.effects[stream].appendDrained(stream)
    }
}
