import Wire

/// Turns what a group had for one outlet into refusals: the group did not become durable.
///
/// Every request of the group has exactly one answer in it, so every request is refused once. Wakes, their ends and
/// changed conditions are dropped: as far as anybody will know, wakes were never launched, or are in flight still.
struct EffectRefusal {
    let refused = EffectBatch()
    /// How many accepted pushes are refused after all.
    private(set) var pushCount: Int64 = 0
    private let error: APIError

    init(_ error: APIError) {
        self.error = error
    }

    mutating func refuse(_ effects: EffectBatch) {
        effects.handOver { effect in
            switch effect {
            case .pushAnswer(let reply): self.refuse(reply)
            case .answer(let address, _), .subscribed(let address):
                self.refused.append(.refused(self.error), to: address)
            case .asked(let request): self.refused.append(.refused(self.error), to: request.reply)
            case .wake, .expired, .released, .conditions, .drained: break
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
}
