import Engine
import HTTPTransport
import Wire

/// A push that a fault rule has caught.
final class FaultedPush {
    let effect: FaultEffect
    let stream: StreamID
    let apnsID: APNsID
    /// What the engine would be given.
    let kept: KeptPush
    /// The value of `authorization`; nil when it is absent.
    let authorization: [UInt8]?

    init(_ effect: FaultEffect, _ push: Push, from address: StreamAddress, _ authorization: ByteView?) {
        self.effect = effect
        self.stream = StreamID(address)
        self.apnsID = push.apnsID
        self.kept = KeptPush(push, from: address)
        self.authorization = authorization?.array
    }
}
