import APNSProtocol
import Answers
import Bytes
import DeviceEngine
import WakeDispatch

/// Turns what a group had for one outlet into refusals: the group did not become durable.
///
/// Every request of the group has exactly one answer in it, so every request is refused once. Wakes and their ends are
/// dropped: as far as anybody will know, they were never launched, or are in flight still.
struct EffectRefusal {
    let refused = EffectBatch()
    /// How many accepted pushes are refused after all.
    private(set) var pushCount: Int64 = 0
    private let body: [UInt8]

    init(_ error: APIError) {
        var writer = JSONWriter()
        error.write(to: &writer)
        self.body = writer.buffer.view.array
    }

    mutating func refuse(_ effects: EffectBatch) {
        effects.handOver { effect in
            switch effect {
            case .pushAnswer(let reply): self.refuse(reply)
            case .answer(let address, _, _), .metrics(let address, _), .subscribed(let address): self.refuse(address)
            case .wake, .expired, .released, .drained: break
            case .draining: self.refused.appendDraining()
            }
        }
    }

    private mutating func refuse(_ reply: PushReply) {
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

    private func refuse(_ address: StreamAddress) {
        self.body.withByteView { self.refused.appendAnswer(address, status: 503, body: $0) }
    }
}
