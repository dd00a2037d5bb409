import Engine
import Policy
import WakeGateTestKit
import Wire

/// Commits as the gateway makes them: one at a time, each with all changes since the last, while steps continue.
extension DispatchSimulation {
    /// Stages an effect that is published once it is durable.
    func tell(_ effect: SimulatedLives.Effect) {
        self.lives?.staged.append(effect)
    }

    /// Ends a step: a commit may end, fail or begin, and the gateway may die.
    func keep() {
        guard let faultsEvery = self.lives?.faultsEvery, self.fault == nil else { return }
        if faultsEvery > 0, self.generator.once(in: faultsEvery) {
            if self.generator.once(in: 2) { return self.die() }
            self.lives?.medium.planFault(&self.generator)
        }
        if self.lives?.underWay != nil, faultsEvery == 0 || self.generator.once(in: 3) { self.endCommit() }
        guard self.fault == nil, self.lives?.underWay == nil else { return }
        if self.rig.engine.hasChanges {
            let commit = self.takeCommit()
            self.lives?.underWay = commit
        } else if let staged = self.lives?.staged {
            self.lives?.staged = []
            self.release(staged)
        }
    }

    /// Makes all staged effects durable and publishes them.
    func keepAll() {
        for _ in 0..<4 where self.lives != nil && self.fault == nil { self.keep() }
    }

    /// Returns the changes since the last commit, with the current state of the models.
    func takeCommit() -> SimulatedLives.Commit {
        guard var lives = self.lives else { preconditionFailure("only what has lives makes commits") }
        lives.commits += 1
        // Every other commit includes the progress of continued tasks.
        let hasProgress = lives.commits.isMultiple(of: 2)
        if hasProgress { self.rig.engine.flushProgress() }
        var batch = RecordBatch()
        batch.append(RecordKey(.origin)) { $0.append(memoryOf: lives.commits.littleEndian) }
        self.rig.engine.takeStep(into: &batch)
        var commit = SimulatedLives.Commit(number: lives.commits, sequence: lives.durable.sequence)
        self.takeEvents(into: &batch, &commit)
        commit.happened = lives.durable.happened + commit.events
        var records: SimulatedStore.Records = [:]
        func note(key: RecordKey, content: ByteView) {
            if records.updateValue(content.array, forKey: key) != nil { self.fail("a batch has \(key) twice") }
        }
        batch.forEach(note)
        commit.models = self.models
        commit.configuration = self.configuration
        commit.hasProgress = hasProgress
        commit.devices = self.frozenDevices(self.rig, hasProgress: hasProgress)
        commit.counters = self.rig.engine.totals
        commit.now = self.now
        commit.records = records
        commit.effects = lives.staged
        lives.staged = []
        self.lives = lives
        return commit
    }

    /// - Parameter hasProgress: true to compare the progress of continued tasks.
    func frozenDevices(_ rig: DispatchRig, hasProgress: Bool) -> [FrozenDevice?] {
        self.tokens.indices.map { device in
            rig.rig.find(device).map { FrozenDevice(rig.engine.snapshot($0), hasProgress: hasProgress) }
        }
    }

    private func endCommit() {
        guard let commit = self.lives?.underWay, let store = self.lives?.store else { return }
        do throws(StoreError) {
            try store.commit(commit.records)
            self.coverage.note("commit")
            self.lives?.underWay = nil
            self.lives?.durable = commit
            self.release(commit.effects)
        } catch {
            if self.lives?.faultsEvery == 0 { return self.fail("a commit failed without a fault: \(error.message)") }
            self.coverage.note("failed commit")
            self.lives?.medium.clearFaults()
            self.checkAfterFailure(store)
            self.die()
        }
    }

    /// Publishes the effects of a durable commit.
    private func release(_ effects: [SimulatedLives.Effect]) {
        for effect in effects {
            switch effect {
            case .accepted(let id): self.lives?.answered.insert(id)
            case .taken(let number): self.lives?.answeredTasks.insert(number)
            case .ended(let token, let wake, let result, let at):
                self.lives?.settled[token] = SimulatedLives.Settled(wake: wake, result: result, at: at)
            case .delivered(let delivery): self.received(delivery)
            }
        }
    }

    /// Checks that a gateway whose store has failed answers queries from the durable state.
    private func checkAfterFailure(_ store: any RecordStore) {
        guard let lives = self.lives else { return }
        do throws(StoreError) {
            var records: SimulatedStore.Records = [:]
            try store.reload { key, content in records[key] = content.array }
            _ = self.restored(records, as: lives.durable, "after a failed commit")
            self.coverage.note("reload after a failed commit")
        } catch {
            self.fail("nothing can be read after a failed commit: \(error.message)")
        }
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

/// Deaths and restarts of the gateway.
extension DispatchSimulation {
    /// Performs the first start, with an empty store.
    func live(on medium: MemoryMedium, faultsEvery: Int) {
        self.lives = SimulatedLives(medium, faultsEvery: faultsEvery)
        self.lives?.durable.devices = self.tokens.map { _ in nil }
        self.start(at: self.now)
    }

    func die() {
        guard self.lives != nil else { return }
        self.coverage.note("death")
        self.lives?.medium.die(.kill, &self.generator)
        let effects = (self.lives?.underWay?.effects ?? []) + (self.lives?.staged ?? [])
        self.coverage.note("kept-back effects", effects.count)
        for case .accepted(let id) in effects { self.lives?.unanswered.insert(id) }
        for case .taken(let number) in effects { self.lives?.unansweredTasks.insert(number) }
        self.lives?.staged = []
        // Some time passes while the gateway is off.
        self.start(at: self.now + self.generator.pick([0, 0, 1, 1000, 60_000, 3_600_000] as [Int64]))
        self.beginSteps()
    }

    /// Starts the gateway until a start succeeds.
    private func start(at now: Instant) {
        if self.lives?.faultsEvery != 0, self.generator.once(in: 4) { self.lives?.medium.planFault(&self.generator) }
        for _ in 0..<5 where self.fault == nil {
            do throws(StoreError) {
                return try self.tryToStart(at: now)
            } catch {
                self.coverage.note("failed start")
                self.lives?.medium.clearFaults()
                self.lives?.store = nil
                self.lives?.medium.die(.kill, &self.generator)
                if self.lives?.faultsEvery == 0 { self.fail("a start failed without a fault: \(error.message)") }
            }
        }
        self.fail("no start succeeds")
    }

    private func tryToStart(at now: Instant) throws(StoreError) {
        guard let medium = self.lives?.medium else { return }
        self.lives?.store = nil
        let store = try medium.open()
        let records = try store.loadAll()
        guard let found = self.foundCommit(records) else { return }
        guard self.restored(records, as: found, "after a restart") else { return }
        let rig = DispatchRig(self.configuration, start: now.milliseconds, seed: self.generator.next())
        rig.rig.lastPush = self.rig.rig.lastPush
        try rig.restore(records)
        try rig.engine.finishRestoring(now: now)
        rig.engine.loseEveryWake()
        try store.begin()
        // The state found is durable from here on, and no commit is under way.
        self.lives?.durable = found
        self.lives?.underWay = nil
        self.lives?.bornAt = now
        self.lives?.store = store
        self.begin(rig)
        self.models = found.models
        self.loseWakes()
        self.checkAnswered()
        self.checkEvents(records, as: found)
        let beginning = self.takeCommit()
        self.lives?.underWay = beginning
        try store.commit(beginning.records)
        self.lives?.durable = beginning
        self.lives?.underWay = nil
    }

    /// Returns the commit that was found: the last that returned, or the complete one that was under way.
    private func foundCommit(_ records: SimulatedStore.Records) -> SimulatedLives.Commit? {
        guard let lives = self.lives else { return nil }
        let content = records[RecordKey(.origin)] ?? [UInt8](repeating: 0, count: 8)
        let number = content.withByteView { UInt64(littleEndian: $0.load(UInt64.self, at: 0)) }
        if let underWay = lives.underWay, number == underWay.number {
            self.coverage.note("uncertain commit found")
            return underWay
        }
        guard number == lives.durable.number else {
            self.fail("a restart found commit \(number), and commit \(lives.durable.number) had returned")
            return nil
        }
        if lives.underWay != nil { self.coverage.note("uncertain commit lost") }
        return lives.durable
    }

    /// Compares the restored state with the state at the commit.
    func restored(_ records: SimulatedStore.Records, as commit: SimulatedLives.Commit, _ when: String) -> Bool {
        let rig = DispatchRig(commit.configuration, start: commit.now.milliseconds, seed: 1)
        do throws(StoreError) {
            try rig.restore(records)
            try rig.engine.finishRestoring(now: commit.now)
        } catch {
            self.fail("\(when) the records are refused: \(error.message)")
            return false
        }
        let devices = self.frozenDevices(rig, hasProgress: commit.hasProgress)
        for device in devices.indices where devices[device] != commit.devices[device] {
            self.fail("\(when) device \(device) is \(devices[device] as Any), and was \(commit.devices[device] as Any)")
            return false
        }
        guard rig.engine.totals == commit.counters else {
            self.fail("\(when) the counters are \(rig.engine.totals), and were \(commit.counters)")
            return false
        }
        return true
    }

    /// Ends every wake in flight as lost and takes its attempt back. The streams of workers are gone.
    private func loseWakes() {
        let open = self.models.checker.restarted()
        self.coverage.note("wake lost at a restart", open.count)
        for delivery in open { self.lost(delivery, takingBackAttempt: true) }
        // Nothing expires before all wakes are lost.
        for delivery in open { self.models.ledger.expire(delivery.token, at: self.now) }
    }

    /// Checks that every push answered 200 is known.
    private func checkAnswered() {
        guard let lives = self.lives else { return }
        let known = self.models.ledger.known
        if !lives.answered.isSubset(of: known) { self.fail("a push that was answered 200 is unknown") }
        let tasks = self.models.tasks.ledger.known
        if !lives.answeredTasks.isSubset(of: tasks) { self.fail("a submission that was answered is unknown") }
        self.coverage.note("answered submissions found", lives.answeredTasks.count)
        self.coverage.note("unanswered submissions found", lives.unansweredTasks.intersection(tasks).count)
        self.coverage.note("answered push found", lives.answered.count)
        self.coverage.note("unanswered push found", lives.unanswered.intersection(known).count)
    }
}

extension DispatchRig {
    func restore(_ records: SimulatedStore.Records) throws(StoreError) {
        // Records have no particular order; sorted here so that runs are reproducible.
        let sorted = records.sorted { ($0.key.index, $0.key.kind.rawValue) > ($1.key.index, $1.key.kind.rawValue) }
        for (key, content) in sorted { try self.engine.restore(key, content) }
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
