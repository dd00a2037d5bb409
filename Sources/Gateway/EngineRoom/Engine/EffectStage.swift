import Bytes
import DeviceEngine
import WakeDispatch

/// Collects what steps have for the loops and webhooks until it is durable.
final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset

    init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
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
