import Bytes
import LaunchPolicy

/// Traces of pushes that take the place of others.
extension EmbeddedEngine {
    /// The content of an arriving push, with the traces of what it takes the place of if it is not discarded.
    func content(of push: IncomingPush, _ device: DeviceIndex) -> PushContent {
        let older = self.devices[device].state.pending.flatMap { PushContent($0.handle) }
        guard let trace = older.flatMap({ PushTrace($0.trace) }) else {
            return PushContent(
                apnsID: push.apnsID,
                collapseID: push.collapseID,
                payload: push.payload,
                trace: push.trace
            )
        }
        self.joinedTrace.removeAll()
        PushTrace.write(PushTrace(push.trace), standingFor: trace, to: &self.joinedTrace)
        return PushContent(
            apnsID: push.apnsID,
            collapseID: push.collapseID,
            payload: push.payload,
            trace: self.joinedTrace.view
        )
    }

    /// Notes with the pending push the traces of an older one, whose wake has ended and which is coalesced into it.
    func linkTraces(of older: PushHandle, _ device: DeviceIndex) {
        let state = self.devices[device].state
        guard let trace = PushContent(older).flatMap({ PushTrace($0.trace) }), var pending = state.pending,
            let newer = PushContent(pending.handle)
        else { return }
        self.joinedTrace.removeAll()
        PushTrace.write(PushTrace(newer.trace), standingFor: trace, to: &self.joinedTrace)
        let joined = PushContent(
            apnsID: newer.apnsID,
            collapseID: newer.collapseID,
            payload: newer.payload,
            trace: self.joinedTrace.view
        )
        let topic = self.devices[device].topic
        self.hold(joined, topic)
        pending.handle = joined.handle
        self.devices[device].state = DeviceState(
            pending: pending,
            inFlight: state.inFlight,
            spacing: state.spacing,
            conditions: state.conditions,
            penalty: state.penalty
        )
        self.letGo(newer, topic)
    }
}
