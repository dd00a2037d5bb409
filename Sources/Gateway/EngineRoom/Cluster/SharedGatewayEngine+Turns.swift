import ClusterStore
import DeviceEngine
import LaunchPolicy
import WakeDispatch

/// Which transactions begin.
extension SharedGatewayEngine {
    /// Begins as many as may be open: commands and everything else take turns where there is room for few.
    func beginTransactions() {
        guard self.isAttached, self.attachment == nil else { return }
        self.beginCount()
        while self.hasRoom, !self.waitingForRoom.isEmpty { self.beginAgain(self.waitingForRoom.removeFirst()) }
        while self.hasRoom {
            let isBegun =
                self.isTurnOfCommands
                ? self.beginCommands() || self.beginOther() : self.beginOther() || self.beginCommands()
            guard isBegun else { return }
            self.isTurnOfCommands.toggle()
        }
    }

    /// - Returns: false when no command may begin.
    private func beginCommands() -> Bool {
        guard self.queue.hasNext else { return false }
        let taken = self.queue.take(rowsMax: Claims.countMax)
        guard !taken.commands.isEmpty else { return false }
        var plan = LoadPlan()
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
        } else if !self.overdueWakes.isEmpty {
            var plan = LoadPlan()
            plan.isReadOnly = true
            plan.wakes = self.overdueWakes
            self.begin(.heldWakes(self.overdueWakes), plan)
            self.overdueWakes = []
        } else {
            return self.beginConditions() || self.beginListing() || self.beginClaim() || self.beginSweep()
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
        guard let step = self.sweep.next else { return false }
        self.sweep.begun()
        var plan = LoadPlan()
        switch step {
        case .read(let token):
            plan.isReadOnly = true
            plan.selection = .inOrder(topics: nil, after: token, countMax: PolicySweep.rowsMax)
            self.begin(.sweepRead, plan)
        case .judge(let tokens):
            plan.tokens = tokens
            self.begin(.sweep, plan)
        }
        return true
    }

    /// Has streams hear of conditions of devices that are not in memory, some changed by others, some here.
    private func beginConditions() -> Bool {
        guard !self.open.values.contains(where: { if case .conditions = $0.purpose { true } else { false } }) else {
            return false
        }
        let owed = self.dispatcher.conditionsOwed
        guard !owed.isEmpty || !self.conditionsChanged.isEmpty else { return false }
        let changed = self.conditionsChanged.take(countMax: Claims.countMax)
        let known = Set(changed)
        var plan = LoadPlan()
        plan.isReadOnly = true
        plan.tokens = changed + owed.filter { !known.contains($0) }
        self.begin(.conditions(changedElsewhere: changed), plan)
        return true
    }
}
