import Engine
import Policy

/// Which transactions begin.
extension SharedGatewayEngine {
    /// Begins as many as may be open: commands and everything else take turns where there is room for few.
    func beginTransactions() {
        guard self.isAttached, self.attachment == nil else { return }
        self.beginCount()
        self.beginReads()
        while self.hasRoom, !self.waitingForRoom.isEmpty { self.begin(self.waitingForRoom.removeFirst()) }
        while self.hasRoom {
            let isBegun =
                self.isTurnOfCommands
                ? self.beginCommands() || self.beginOther() : self.beginOther() || self.beginCommands()
            guard isBegun else { return }
            self.isTurnOfCommands.toggle()
        }
    }

    /// Begins what only reads, which takes no place of a transaction.
    private func beginReads() {
        if !self.overdueWakes.isEmpty {
            var plan = ReadPlan()
            plan.wakes = self.overdueWakes
            self.begin(.heldWakes(self.overdueWakes), reading: plan)
            self.overdueWakes = []
        }
        self.beginConditions()
        self.beginDeviceQuestions()
        self.beginListing()
        if case .read(let token)? = self.sweep.next {
            self.sweep.begun()
            var plan = ReadPlan()
            plan.selection = .inOrder(topics: nil, after: token, countMax: PolicySweep.rowsMax)
            self.begin(.sweepRead, reading: plan)
        }
    }

    /// Begins commands. Those of locked rows take turns with all others, so that neither wait for the end of the other.
    ///
    /// - Returns: false when no command may begin.
    private func beginCommands() -> Bool {
        let isLookDue = self.queue.lockedAt.map { $0 <= self.clock.boot } ?? false
        if isLookDue, self.isTurnOfLocked || !self.queue.hasNext {
            self.isTurnOfLocked = false
            let taken = self.queue.takeLocked(rowsMax: Claims.countMax, at: self.clock.boot)
            if self.begin(taken, passesOverLocked: true) { return true }
        }
        self.isTurnOfLocked = true
        return self.begin(self.queue.take(rowsMax: Claims.countMax))
    }

    /// - Returns: false if `taken` contains no command.
    private func begin(_ taken: CommandQueue.Taken, passesOverLocked: Bool = false) -> Bool {
        guard !taken.commands.isEmpty else { return false }
        var plan = LoadPlan()
        plan.passesOverLocked = passesOverLocked
        plan.tokens.reserveCapacity(taken.rows.count)
        for row in taken.rows {
            switch row {
            case .device(let token): plan.tokens.append(token)
            case .wake(let wake): plan.wakes.append(wake)
            }
        }
        self.begin(.commands, commands: taken.commands, plan)
        return true
    }

    /// Begins one of what no command asks for.
    ///
    /// - Returns: false when there is nothing.
    private func beginOther() -> Bool {
        if let dead = self.members.nextBurial() {
            var plan = LoadPlan()
            plan.selection = .wakes(of: dead, countMax: Claims.countMax)
            self.begin(.burial(dead), plan)
        } else if self.due.isDue(at: self.clock.now) {
            self.due.begun()
            var plan = LoadPlan()
            plan.selection = .due(countMax: Claims.countMax)
            self.begin(.due, plan)
        } else if self.areRefusalsDue {
            self.areRefusalsDue = false
            self.questions.refusalsCounted()
            self.begin(.refusals)
        } else {
            return self.beginClaim() || self.beginSweep()
        }
        return true
    }

    private func beginClaim() -> Bool {
        guard !self.requests.isDraining, !self.claims.isEmpty,
            self.claims.openCount < max(1, self.store.transactionsMax / 2),
            let (shape, ready) = self.claims.next(
                { self.dispatcher.freeSlots($0) },
                devices: { self.dispatcher.devices($0) }
            )
        else { return false }
        var plan = LoadPlan()
        plan.selection = .ready(ready)
        self.begin(.claim(shape, slots: ready.countMax), plan)
        return true
    }

    private func beginSweep() -> Bool {
        guard case .judge(let tokens)? = self.sweep.next else { return false }
        self.sweep.begun()
        var plan = LoadPlan()
        plan.tokens = tokens
        self.begin(.sweep, plan)
        return true
    }

    /// Has streams hear of conditions of devices that are not in memory, some changed by others, some here.
    private func beginConditions() {
        guard !self.open.values.contains(where: { if case .conditions = $0.purpose { true } else { false } }) else {
            return
        }
        let owed = self.dispatcher.conditionsOwed
        guard !owed.isEmpty || !self.conditionsChanged.isEmpty else { return }
        let changed = self.conditionsChanged.take(countMax: Claims.countMax)
        let known = Set(changed)
        var plan = ReadPlan()
        plan.tokens = changed + owed.filter { !known.contains($0) }
        self.begin(.conditions(changedElsewhere: changed), reading: plan)
    }
}
