import Engine
import Policy
import WakeGateTestKit

/// Pushes that come again, as those of clients do that had no answer.
extension DispatchSimulation {
    /// How long a push is remembered, in milliseconds.
    private static var memory: Int64 { 600_000 }

    /// A sender says again what it said to a device: one of the last four times, and not long ago.
    func repeatPush() {
        let device = self.repeats.number(below: self.deviceCount)
        let token = self.tokens[device]
        let sent = (self.models.sentPushes[token] ?? []).filter {
            self.now.milliseconds - $0.at.milliseconds < Self.memory
        }
        guard !sent.isEmpty, !self.models.removed.contains(token) else { return }
        let first = self.repeats.pick(sent)
        let books = self.rig.engine.totals
        let before = self.rig.rig.find(device).map { FrozenDevice(self.rig.engine.snapshot($0)) }
        let number = self.rig.rig.lastPush
        let answer = self.rig.push(
            device,
            topic: self.topic(of: device),
            self.repeats.pick(Priority.allCases),
            self.repeats.pick([.absent, .nowOrNever] as [ArrivingPush.Expiration]),
            clientID: first.number
        )
        // Numbers go on without it: it was no push of its own.
        self.rig.rig.lastPush = number
        guard let answer, first.matches(answer) else {
            return self.fail("push \(first.number) was answered \(first), and \(answer as Any) when it came again")
        }
        if self.rig.engine.totals != books { self.fail("push \(first.number) is counted again") }
        if self.rig.rig.find(device).map({ FrozenDevice(self.rig.engine.snapshot($0)) }) != before {
            self.fail("push \(first.number) changed its device again")
        }
        self.coverage.repeatedPushes += 1
        self.lives?.coverage.note(.repeatedPush)
        if let lives = self.lives, lives.bornAt > first.at { self.lives?.coverage.note(.repeatedPushAfterRestart) }
    }
}
