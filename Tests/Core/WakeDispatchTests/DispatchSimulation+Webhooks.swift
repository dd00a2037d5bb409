import Engine
import Policy
import WakeGateTestKit
import Wire

extension DispatchSimulation {
    /// A stream does what only a webhook's does: it takes more or fewer wakes, or loses one and goes on.
    func actAsWebhook() {
        let streams = self.workers.keys.sorted { $0.number < $1.number }
        guard !streams.isEmpty else { return }
        let stream = self.webhooks.pick(streams)
        let open = self.models.checker.streams[stream]?.open ?? []
        let wakes = open.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
        if wakes.isEmpty || self.webhooks.once(in: 2) {
            let slots = self.webhooks.pick([0, 1, 2, 4, 4])
            self.coverage.slotChanges += 1
            self.changeSlots(stream, to: slots)
        } else {
            self.coverage.lossesAlone += 1
            self.lose(self.webhooks.pick(wakes), on: stream, takingBackAttempt: self.webhooks.once(in: 2))
        }
    }
}
