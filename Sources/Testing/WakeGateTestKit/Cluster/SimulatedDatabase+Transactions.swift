import Engine
import Policy
import Wire

// MARK: - Rows

extension SimulatedDatabase {
    /// Starts a transaction: finds the devices that its plan names, and locks their rows.
    func load(_ transaction: DatabaseTransaction) {
        guard !transaction.isOver, !self.isDown else { return }
        if self.heldLoads != nil {
            self.heldLoads?.append { self.load(transaction) }
            return
        }
        self.log.note(.load)
        let plan = transaction.plan
        var tokens = self.named(plan.tokens, plan.wakes)
        self.transactions.append(transaction)
        if plan.passesOverLocked { tokens = tokens.filter { self.locks[$0] == nil } }
        transaction.found = tokens
        if self.happens(onceIn: self.faults.deadlocks) {
            self.log.note(.deadlock)
            return self.fail(transaction, .conflict)
        }
        transaction.wanted = tokens.inOrder
        self.lock(transaction)
    }

    /// Returns the existing devices that have these tokens or wakes.
    private func named(_ tokens: [DeviceToken], _ wakes: [WakeID]) -> Set<DeviceToken> {
        Set(tokens.filter { self.rows.has($0) }).union(self.rows.devices(of: wakes, at: self.policyNow))
    }

    /// Returns the named devices that a load skips because other transactions have locked them, and the locks' holders.
    private func passedOver(_ transaction: DatabaseTransaction) -> [PassedOverDevice] {
        let plan = transaction.plan
        guard plan.passesOverLocked else { return [] }
        var names = plan.tokens.filter { self.rows.has($0) }.map { (token: $0, wake: WakeID?.none) }
        for wake in plan.wakes {
            names += self.rows.devices(of: [wake], at: self.policyNow).map { (token: $0, wake: WakeID?.some(wake)) }
        }
        return names.filter { !transaction.found.contains($0.token) }.map { name in
            let holder = self.locks[name.token].map { lock in
                LockHolder(pid: lock.holder.gateway.rawValue, application: "simulation", queryStart: nil)
            }
            return (token: name.token, wake: name.wake, holder: holder)
        }
    }

    /// Reads the last committed version of the rows for a query.
    func read(_ plan: ReadPlan) -> LoadedDevices {
        self.log.note(.read)
        let named = self.named(plan.tokens, plan.wakes)
        var devices = named.inOrder
        var hasMore = false
        func select(_ found: [DeviceToken], _ countMax: Int) {
            let chosen = found.filter { !named.contains($0) }.prefix(countMax)
            hasMore = chosen.count == countMax
            devices += chosen
        }
        switch plan.selection {
        case .none: break
        case .withTasks(let topic, let token, let countMax):
            // A device with requests, sessions or habitual hours has a record of them.
            select(self.rows.devices(topic.map { [$0] }, after: token) { !$0.tasks.isEmpty }, countMax)
        case .inOrder(let topics, let token, let countMax): select(self.rows.devices(topics, after: token), countMax)
        case .pending(let topics, let token, let countMax):
            let (byte, bit) = SharedDevice.pendingBit.quotientAndRemainder(dividingBy: 8)
            select(self.rows.devices(topics, after: token) { $0.derived[byte] & 1 << bit != 0 }, countMax)
        }
        return LoadedDevices(
            now: self.policyNow,
            wall: self.wall,
            devices: devices.compactMap { self.rows.devices[$0]?.device },
            hasMore: hasMore
        )
    }

    /// Takes the remaining locks in order, and then reads the rows. Waits at a lock that another transaction holds.
    private func lock(_ transaction: DatabaseTransaction) {
        while let token = transaction.wanted.first {
            guard self.locks[token] == nil else {
                self.log.note(.wait)
                self.locks[token]?.waiting.append(transaction)
                return self.watchLock(transaction)
            }
            transaction.wanted.removeFirst()
            transaction.locked.append(token)
            self.locks[token] = (transaction, [])
        }
        self.read(transaction)
    }

    /// Fails a transaction that waits too long for the lock of one row.
    private func watchLock(_ transaction: DatabaseTransaction) {
        transaction.waitCount += 1
        let wait = transaction.waitCount
        self.plan(after: Self.lockMax) {
            guard case .loading = transaction.state, transaction.waitCount == wait, !transaction.wanted.isEmpty else {
                return
            }
            self.log.note(.lockTimeout)
            self.fail(transaction, .locked(nil))
        }
    }

    /// Reads the last committed rows of a transaction. Also selects and locks rows that other transactions have not
    /// locked.
    private func read(_ transaction: DatabaseTransaction) {
        let plan = transaction.plan
        var devices = transaction.found.inOrder
        var hasMore = false
        var heldWakes: [WakeID] = []
        func select(_ found: [DeviceToken], _ countMax: Int) {
            let chosen = found.filter { !transaction.found.contains($0) }.prefix(countMax)
            hasMore = chosen.count == countMax
            devices += chosen
        }
        switch plan.selection {
        case .none: break
        case .due(let countMax):
            select(self.lockable(self.rows.devicesDue(by: self.policyNow), transaction), countMax)
        case .ready(let ready):
            select(self.lockable(self.rows.devicesReady(ready), transaction), ready.countMax)
        case .wakes(let gateway, let countMax):
            let held = Array(self.rows.devices(heldBy: gateway).prefix(countMax))
            select(self.lockable(held, transaction), countMax)
            hasMore = hasMore || devices.count < held.count
            heldWakes = devices.flatMap { self.rows.wakes(of: $0, heldBy: gateway) }
        }
        for (number, session) in self.sessions where plan.findsLostWakes && !session.isAlive && !session.isRetired {
            heldWakes += transaction.found.inOrder.flatMap { self.rows.wakes(of: $0, heldBy: number) }
        }
        for token in devices where self.locks[token] == nil {
            self.locks[token] = (transaction, [])
            transaction.locked.append(token)
        }
        let passedOver = self.passedOver(transaction)
        self.log.note(.passedOver, passedOver.count)
        transaction.found = Set(devices)
        transaction.moment = self.policyNow
        transaction.state = .open
        let loaded = LoadedDevices(
            now: transaction.moment,
            wall: self.wall,
            devices: devices.compactMap { self.rows.devices[$0]?.device },
            hasMore: hasMore,
            heldWakes: heldWakes,
            passedOver: passedOver
        )
        transaction.store.rows(loaded, of: transaction)
        self.watch(transaction)
    }

    private func lockable(_ devices: [DeviceToken], _ transaction: DatabaseTransaction) -> [DeviceToken] {
        let free = devices.filter { self.locks[$0] == nil }
        self.log.note(.passedOver, devices.count - free.count)
        return free
    }

    /// Rolls back a transaction if its client stays silent for too long.
    private func watch(_ transaction: DatabaseTransaction) {
        guard !self.isImmediate else { return }
        self.plan(after: Int(Self.silenceMax)) {
            guard case .open = transaction.state else { return }
            self.log.note(.idleRollback)
            self.rollBack(transaction)
        }
    }
}

// MARK: - Ends

extension SimulatedDatabase {
    /// Handles the arrival of a commit.
    func commit(_ transaction: DatabaseTransaction, _ commit: DatabaseCommit) {
        guard !self.isDown else { return }
        if self.held != nil {
            self.held?.append { self.decide(transaction, commit) }
            return
        }
        self.decide(transaction, commit)
    }

    private func decide(_ transaction: DatabaseTransaction, _ commit: DatabaseCommit) {
        // The transaction was rolled back, for example because its client has asked about the result.
        guard case .open = transaction.state else {
            return transaction.store.ended(transaction, .failed(self.anyFailure("The transaction is gone.")))
        }
        self.check(commit, of: transaction)
        guard self.sessions[transaction.gateway]?.isAlive == true else {
            self.log.note(.fenced)
            return self.fail(transaction, Self.refusal("The gateway has been found dead."))
        }
        if self.isFull {
            self.log.note(.full)
            return self.fail(transaction, Self.refusal("The disk is full."))
        }
        if self.refusals > 0 || self.happens(onceIn: self.faults.refusedCommits) {
            self.refusals = max(0, self.refusals - 1)
            self.log.note(.refusal)
            return self.fail(transaction, Self.refusal("The commit is refused on command."))
        }
        if self.happens(onceIn: self.faults.deadlocks) {
            self.log.note(.deadlock)
            return self.fail(transaction, .conflict)
        }
        transaction.commit = commit
        self.insert(transaction)
    }

    /// Writes a commit. If another transaction has inserted one of its new devices, the commit fails; while another
    /// transaction is inserting one, the commit waits.
    private func insert(_ transaction: DatabaseTransaction) {
        guard let commit = transaction.commit else { return }
        let newcomers = commit.writes.devices.filter(\.isNew).map(\.device.token)
        guard !newcomers.contains(where: { self.rows.has($0) }) else {
            self.log.note(.insertConflict)
            return self.fail(transaction, .conflict)
        }
        let others = self.replicating.flatMap { $0.commit?.writes.devices.filter(\.isNew) ?? [] }.map(\.device.token)
        guard !newcomers.contains(where: { others.contains($0) }) else {
            transaction.state = .inserting
            self.inserting.append(transaction)
            return
        }
        transaction.state = .replicating
        self.replicating.append(transaction)
        self.lastReplicatedAt = max(self.lastReplicatedAt, self.now + Int64(self.draw(self.pace.replication)))
        self.plan(at: self.lastReplicatedAt) {
            guard case .replicating = transaction.state else { return }
            self.become(durable: transaction)
            self.retryInserts()
        }
    }

    private func retryInserts() {
        let waiting = self.inserting
        self.inserting = []
        for transaction in waiting { if case .inserting = transaction.state { self.insert(transaction) } }
    }

    /// Makes a commit durable and visible, and notifies its client.
    func become(durable transaction: DatabaseTransaction) {
        guard let commit = transaction.commit else { return }
        self.log.note(commit, at: self.now)
        transaction.state = .committed(self.rows.take(commit))
        self.leave(transaction)
        transaction.store.ended(transaction, .committed)
    }

    /// Rolls back a transaction and notifies its client.
    func fail(_ transaction: DatabaseTransaction, _ failure: ClusterFailure) {
        self.rollBack(transaction)
        transaction.store.ended(transaction, .failed(failure))
    }

    /// Rolls back a transaction, unless it has committed.
    func rollBack(_ transaction: DatabaseTransaction) {
        guard !transaction.isOver else { return }
        transaction.state = .rolledBack
        self.leave(transaction)
    }

    /// Removes a transaction: passes its locks on to the next waiting transactions, and takes it out of the queue in
    /// which it waits.
    private func leave(_ transaction: DatabaseTransaction) {
        self.transactions.removeAll { $0 === transaction }
        self.replicating.removeAll { $0 === transaction }
        if let token = transaction.wanted.first { self.locks[token]?.waiting.removeAll { $0 === transaction } }
        for token in transaction.locked {
            guard var lock = self.locks.removeValue(forKey: token), !lock.waiting.isEmpty else { continue }
            let next = lock.waiting.removeFirst()
            self.locks[token] = (next, lock.waiting)
            next.wanted.removeFirst()
            next.locked.append(token)
            // Lock in a separate event, after this transaction has released everything.
            self.plan(after: 0) { if !next.isOver { self.lock(next) } }
        }
        transaction.locked = []
    }

    /// Tells a client that has lost its connection during a commit whether the transaction has committed.
    ///
    /// Rolls the transaction back if its commit is not written yet. Later requests of the old connection have no
    /// effect.
    func resolve(_ transaction: DatabaseTransaction) {
        guard !self.isDown else {
            return self.plan(after: max(1, self.draw(self.pace.reconnection))) { self.resolve(transaction) }
        }
        switch transaction.state {
        // The reply follows when the commit is durable or fails.
        case .replicating: transaction.isInDoubt = true
        case .loading, .open, .inserting, .rolledBack:
            self.rollBack(transaction)
            self.log.note(.doubtRolledBack)
            transaction.store.resolved(transaction, .failed(self.anyFailure("The connection was cut.")))
        case .committed:
            self.log.note(.doubtCommitted)
            transaction.store.resolved(transaction, .committed)
        }
    }

    /// Returns one of the two failures after which a transaction has changed nothing, chosen at random.
    func anyFailure(_ message: String) -> ClusterFailure {
        self.generator.once(in: 2) ? .conflict : Self.refusal(message)
    }

    static func refusal(_ message: String) -> ClusterFailure { .refused(StoreError(message: message)) }

    /// Records in the log if a commit violates the rules for gateways.
    private func check(_ commit: DatabaseCommit, of transaction: DatabaseTransaction) {
        var seen: Set<DeviceToken> = []
        for change in commit.writes.devices {
            let token = change.device.token
            if !seen.insert(token).inserted { self.log.misuses.append("a device is written twice in a commit") }
            if change.isNew == transaction.found.contains(token) {
                self.log.misuses.append("a device is \(change.isNew ? "new" : "known") that was read otherwise")
            }
            if Int(change.topic.rawValue) >= self.rows.topics.count {
                self.log.misuses.append("a device is of topic \(change.topic.rawValue), which there is not")
            }
            for wake in change.ended where !change.launched.contains(where: { $0.wake == wake }) {
                guard let row = self.rows.wakes[wake], row.ended == nil, row.device == token else {
                    self.log.misuses.append("a wake is ended that is not in flight on its device")
                    continue
                }
            }
        }
        self.checkRetirement(commit, of: transaction)
    }

    /// Checks that a burial, which ends the wakes of a dead gateway, leaves none of these wakes on the devices that it
    /// has read, except in damaged rows.
    private func checkRetirement(_ commit: DatabaseCommit, of transaction: DatabaseTransaction) {
        guard case .wakes(let dead, _) = transaction.plan.selection else { return }
        let ended = Set(commit.writes.devices.flatMap(\.ended))
        for token in transaction.found.inOrder
        where self.damaged[token] == nil && !ended.isSuperset(of: self.rows.wakes(of: token, heldBy: dead)) {
            self.log.misuses.append("a burial leaves a wake of the dead that it has found")
        }
    }
}
