import Engine
import Policy
import WakeGateTestKit
import Wire

/// Commits, as the gateway makes them: one at a time, of all that changed since the last, while steps go on.
extension DispatchSimulation {
    func clocksPassed(_ milliseconds: Int64) {
        guard self.lives != nil else { return }
        self.lives?.boot += milliseconds
        self.lives?.wall += milliseconds
        if let lives = self.lives, lives.clock.now(boot: lives.boot) != self.now { self.fail("policy time stepped") }
    }

    /// Something to tell the world as soon as it is durable.
    func tell(_ effect: SimulatedLives.Effect) {
        self.lives?.staged.append(effect)
    }

    /// A step ended: a commit may end, fail or begin, and the gateway may die.
    func keep() {
        guard let faultsEvery = self.lives?.faultsEvery, self.fault == nil else { return }
        if faultsEvery > 0, self.generator.once(in: faultsEvery) {
            if self.generator.once(in: 2) { return self.die(self.generator.pick(SimulatedDeath.allCases)) }
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

    /// Everything that is staged is made durable and told.
    func keepAll() {
        for _ in 0..<4 where self.lives != nil && self.fault == nil { self.keep() }
    }

    /// What changed since the last commit, and the world as it is.
    func takeCommit() -> SimulatedLives.Commit {
        guard var lives = self.lives else { preconditionFailure("only what has lives makes commits") }
        lives.commits += 1
        let clock = ClockRecord(now: self.now, wall: lives.wall)
        // Every other commit is one of those that a second's progress goes with.
        let hasProgress = lives.commits.isMultiple(of: 2)
        if hasProgress { self.rig.engine.hurryProgress() }
        var batch = RecordBatch()
        batch.append(RecordKey(.clock)) { clock.store(to: &$0) }
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
        commit.books = self.rig.engine.totals
        commit.clock = clock
        commit.records = records
        commit.effects = lives.staged
        lives.staged = []
        self.lives = lives
        return commit
    }

    /// - Parameter hasProgress: how far continued tasks have come counts.
    func frozenDevices(_ rig: DispatchRig, hasProgress: Bool) -> [FrozenDevice?] {
        self.tokens.indices.map { device in
            rig.rig.find(device).map { FrozenDevice(rig.engine.snapshot($0), hasProgress: hasProgress) }
        }
    }

    private func endCommit() {
        guard let commit = self.lives?.underWay, let store = self.lives?.store else { return }
        do throws(StoreError) {
            try store.commit(commit.records)
            self.lives?.coverage.note(.commit)
            self.lives?.underWay = nil
            self.lives?.durable = commit
            self.tellHistory(commit)
            self.release(commit.effects)
        } catch {
            if self.lives?.faultsEvery == 0 { return self.fail("a commit failed by itself: \(error.message)") }
            self.lives?.coverage.note(.failedCommit)
            let isDead = self.lives?.medium.isDead == true
            self.lives?.medium.clearFaults()
            // A dead gateway answers nothing more.
            if !isDead { self.checkAfterFailure(store) }
            self.die(self.generator.pick(SimulatedDeath.allCases))
        }
    }

    /// What the commit covers is durable: now the world may know.
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

    /// A gateway whose store has failed answers questions from what was durable.
    private func checkAfterFailure(_ store: any RecordStore) {
        guard let lives = self.lives else { return }
        do throws(StoreError) {
            _ = self.restored(try store.reloadAll(), as: lives.durable, "after a failed commit")
            self.lives?.coverage.note(.reload)
        } catch {
            self.fail("nothing can be read after a failed commit: \(error.message)")
        }
    }

    /// A worker that had its 204 for a result, and says it again, has its answer as before.
    func checkRemembered(_ wake: WakeID, _ result: WakeReport, _ outcome: ReportOutcome) {
        guard let settled = self.lives?.settled.first(where: { $0.value.wake == wake }),
            self.models.endedWakes[settled.key]?.contains(wake) == true, outcome != .otherKind
        else { return }
        guard self.now.milliseconds - settled.value.at.milliseconds < 600_000 else {
            self.lives?.coverage.note(.forgottenAnswer)
            if outcome != .unknown { self.fail("a result of long ago is \(outcome) when it comes again") }
            return
        }
        guard result == settled.value.result else {
            if case .endedOtherwise = outcome { return }
            return self.fail("a result that was answered is \(outcome) when another comes")
        }
        self.lives?.coverage.note(.repeatedAnswer)
        if outcome != .repeated { self.fail("a result that was answered is \(outcome) when it comes again") }
    }
}

extension RecordStore {
    func commit(_ records: SimulatedStore.Records) throws(StoreError) {
        var batch = RecordBatch()
        let sorted = records.sorted { ($0.key.kind.rawValue, $0.key.index) < ($1.key.kind.rawValue, $1.key.index) }
        for (key, content) in sorted { batch.append(key) { $0.append(content) } }
        try self.commit(batch)
    }

    func loadAll() throws(StoreError) -> SimulatedStore.Records {
        var records: SimulatedStore.Records = [:]
        try self.load { key, content in records[key] = content.array }
        return records
    }

    func reloadAll() throws(StoreError) -> SimulatedStore.Records {
        var records: SimulatedStore.Records = [:]
        try self.reload { key, content in records[key] = content.array }
        return records
    }
}
