import Engine
import Policy
import WakeGateTestKit

/// A shutdown, as the gateway goes through it: it takes no push, request, transfer or subscription any more, and all
/// else as before.
extension DispatchSimulation {
    var isDraining: Bool { self.models.checker.isDraining }

    /// From here on nothing is launched.
    func drain() {
        self.coverage.openAtDrain += self.models.checker.open.count
        self.models.checker.isDraining = true
        self.rig.dispatcher.drain()
        self.took()
        self.check()
    }

    /// Waits until no wake is in flight, as a gateway does before it ends.
    func endDrain() {
        var rounds = 0
        while self.isDraining, !self.models.checker.open.isEmpty, self.fault == nil {
            rounds += 1
            let moments = [self.rig.engine.nextDue?.milliseconds, self.nextAnswer].compactMap { $0 }
            guard rounds < 10_000, let next = moments.min() else { return self.fail("a shutdown never ends") }
            self.pass(max(1, next - self.now.milliseconds))
            self.answer()
        }
        guard self.isDraining, self.fault == nil else { return }
        if self.rig.dispatcher.workerCounts(nil).busy != 0 { self.fail("a wake is in flight after a shutdown") }
        self.pass(3_600_000)
    }
}
