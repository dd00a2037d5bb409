import Engine
import Policy
import WakeGateTestKit
import Wire

/// The state of a simulated gateway across restarts.
struct SimulatedLives {
    struct Settled {
        let wake: WakeID
        let result: WakeReport
        let at: Instant
    }

    /// The average number of steps between two deaths; 0 for none.
    var diesEvery: Int
    /// The records of all steps. Failing stores are simulated with the production engine room.
    var records: SimulatedStore.Records = [:]
    /// The start of the current run, in policy time.
    var bornAt: Instant
    /// The last result of each device.
    var settled: [DeviceToken: Settled] = [:]
}

/// Deaths and restarts of the gateway.
extension DispatchSimulation {
    /// Lets the gateway die and restart.
    func live(diesEvery: Int) { self.lives = SimulatedLives(diesEvery: diesEvery, bornAt: self.now) }

    /// Stores a step. The gateway may die after it.
    func keep() {
        guard let diesEvery = self.lives?.diesEvery, self.fault == nil else { return }
        self.rig.engine.flushProgress()
        var batch = RecordBatch()
        self.rig.engine.takeStep(into: &batch)
        for (key, content) in batch.records { self.lives?.records[key] = content }
        if diesEvery > 0, self.generator.once(in: diesEvery) { self.die() }
    }

    /// Kills the gateway and starts it again on its records.
    func die() {
        guard let records = self.lives?.records else { return }
        self.coverage.note("death")
        let rig = DispatchRig(self.configuration, start: self.now.milliseconds, seed: self.generator.next())
        rig.rig.lastPush = self.rig.rig.lastPush
        do throws(StoreError) {
            // Records have no particular order; sorted here so that runs are reproducible.
            let sorted = records.sorted { ($0.key.index, $0.key.kind.rawValue) > ($1.key.index, $1.key.kind.rawValue) }
            for (key, content) in sorted { try rig.engine.restore(key, content) }
            try rig.engine.finishRestoring(now: self.now)
        } catch {
            return self.fail("after a restart the records are refused: \(error.message)")
        }
        self.compare(rig)
        rig.engine.loseEveryWake()
        self.begin(rig)
        let open = self.models.checker.restarted()
        self.coverage.note("wake lost at a restart", open.count)
        for delivery in open { self.lost(delivery, takingBackAttempt: true) }
        // Nothing expires before all wakes are lost.
        for delivery in open { self.models.ledger.expire(delivery.token, at: self.now) }
        self.pass(self.generator.pick([0, 0, 1, 1000, 60_000, 3_600_000] as [Int64]))
    }

    /// Compares a restarted gateway with the former one.
    private func compare(_ rig: DispatchRig) {
        for device in self.tokens.indices {
            let (before, after) = (self.frozen(device, self.rig), self.frozen(device, rig))
            if before == after { continue }
            self.fail("device \(device) is restored as \(after as Any), and was \(before as Any)")
        }
        let (before, after) = (self.rig.engine.totals, rig.engine.totals)
        if before != after { self.fail("after a restart the counters are \(after), and were \(before)") }
    }

    func frozen(_ device: Int, _ rig: DispatchRig) -> FrozenDevice? {
        rig.rig.find(device).map { FrozenDevice(rig.engine.snapshot($0)) }
    }

    /// Checks that a worker that repeats a result after its 204 gets the same answer.
    func checkRemembered(_ wake: WakeID, _ result: WakeReport, _ outcome: ReportOutcome) {
        guard let settled = self.lives?.settled.first(where: { $0.value.wake == wake }),
            self.models.endedWakes[settled.key]?.contains(wake) == true, outcome != .otherKind
        else { return }
        guard self.now.milliseconds - settled.value.at.milliseconds < 600_000 else {
            self.coverage.note("forgotten answer")
            if outcome != .unknown { self.fail("a result of long ago is \(outcome) when it comes again") }
            return
        }
        guard result == settled.value.result else {
            if case .endedOtherwise = outcome { return }
            return self.fail("a result that was answered is \(outcome) when another comes")
        }
        self.coverage.note("remembered answer")
        if outcome != .repeated { self.fail("a result that was answered is \(outcome) when it comes again") }
    }
}

/// A shutdown of the gateway: it accepts no more pushes, requests, transfers or subscriptions, and everything else as
/// before.
extension DispatchSimulation {
    var isDraining: Bool { self.models.checker.isDraining }

    /// Begins the shutdown. Nothing is launched from here on.
    func drain() {
        self.coverage.note("in flight at the drain", self.models.checker.open.count)
        self.models.checker.isDraining = true
        self.rig.dispatcher.drain()
        self.settle()
    }

    /// Waits until no wake is in flight, as a gateway does before it exits.
    func endDrain() {
        self.pass { !self.isDraining || self.models.checker.open.isEmpty }
        guard self.isDraining, self.fault == nil else { return }
        if self.rig.dispatcher.workerCounts(nil).busy != 0 { self.fail("a wake is in flight after a shutdown") }
        self.pass(3_600_000)
    }
}
