import HTTPTransport
import Wire

/// A push that a fault rule has caught, with copies of what the engine would be given.
final class FaultedPush {
    let effect: FaultEffect
    let stream: StreamID
    let command: PushCommand
    let topic: [UInt8]
    let collapseID: [UInt8]
    let payload: [UInt8]
    let trace: [UInt8]
    /// The value of `authorization`; nil when it is absent.
    let authorization: [UInt8]?

    init(
        _ effect: FaultEffect,
        stream: StreamID,
        command: PushCommand,
        topic: ByteView,
        collapseID: ByteView,
        payload: ByteView,
        trace: ByteView,
        authorization: ByteView?
    ) {
        self.effect = effect
        self.stream = stream
        self.command = command
        self.topic = topic.array
        self.collapseID = collapseID.array
        self.payload = payload.array
        self.trace = trace.array
        self.authorization = authorization?.array
    }
}
