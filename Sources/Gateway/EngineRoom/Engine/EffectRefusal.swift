import APNSProtocol
import Answers
import Bytes
import DeviceEngine
import WakeDispatch

/// Turns what a group had for one loop into refusals: the group did not become durable.
///
/// Every request of the group has exactly one answer in it, so every request is refused once. Wakes and their ends are
/// dropped: as far as anybody will know, they were never launched, or are in flight still.
final class EffectRefusal: EffectTaker {
    private(set) var refused = EffectBatch()
    /// How many accepted pushes are refused after all.
    private(set) var pushCount: Int64 = 0
    private let body: [UInt8]

    init(_ error: APIError) {
        var writer = JSONWriter()
        error.write(to: &writer)
        self.body = writer.buffer.view.array
    }

    func answerPush(_ reply: PushReply) {
        if reply.reason == PushReply.accepted { self.pushCount += 1 }
        self.refused.append(
            PushReply(
                address: reply.address,
                apnsID: reply.apnsID,
                reason: UInt8(APNSReason.serviceUnavailable.index),
                disposition: PushReply.none,
                held: PushReply.none,
                eligibleAt: PushReply.noMoment,
                timestamp: PushReply.noMoment
            )
        )
    }

    func answer(_ address: StreamAddress, status: Int, body: ByteView) { self.refuse(address) }

    func answerMetrics(_ address: StreamAddress, _ text: ByteView) { self.refuse(address) }

    func subscribed(_ address: StreamAddress) { self.refuse(address) }

    func event(_ address: StreamAddress, isWake: Bool, _ bytes: ByteView) {}

    func released(_ address: StreamAddress, _ wake: WakeID) {}

    func drained(_ address: StreamAddress) {}

    func startDraining() { self.refused.appendDraining() }

    private func refuse(_ address: StreamAddress) {
        self.body.withByteView { self.refused.appendAnswer(address, status: 503, body: $0) }
    }
}
