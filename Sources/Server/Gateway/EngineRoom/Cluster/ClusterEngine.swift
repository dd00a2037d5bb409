package import Engine
import Platform
import Policy
package import Wire

/// The engine of a gateway that shares its store with other gateways. Devices are rows of the store. They are in memory
/// only during one step of a transaction.
///
/// A step processes the store's replies, queues new commands, and begins as many transactions as allowed: for commands,
/// for due devices, and for free slots. When the rows of a transaction are loaded, the services of `EngineShell`
/// perform the transaction in one call. Its effects are released when it is durable. The engine never blocks.
package final class ClusterEngine: EngineShell, GatewayEngine {
    /// The maximum time that a stop waits for commits and locked rows, in milliseconds.
    static let finishMax: Int64 = 5000
    private static let lockedMaxAtFinish: Int64 = 1000
    /// The time for which a commit may stay unconfirmed before the gateway refuses commands, in milliseconds. One cause
    /// is a missing standby server.
    private static let silenceMax: Int64 = 10_000
    /// The maximum number of known devices whose rows cannot be read, and the time for which each is remembered after
    /// the last attempt, in milliseconds.
    static let unreadableMax = 1000
    private static let unreadableMemory: Int64 = 60_000
    /// The maximum number of rounds in one step. A round processes replies and begins transactions.
    private static let turnsMax = 64

    let store: any ClusterStore
    let remote: RemoteWorkers
    let workers: WorkerAuthentication
    private let live: LiveService
    private let world: EngineWorld
    private let times: SharedCommitTimes
    let onNews: @Sendable (News) -> Void

    /// A change that operators must learn about.
    package enum News {
        /// The reason why nothing can be stored for now; nil if storing is possible again.
        case status(StoreError?)
        /// The names of the configuration keys that differ between gateways.
        case differences([String])
        /// The locks of other sessions that delay devices, when they must be logged.
        case locks([DeviceLocks])
        /// A device whose row cannot be read, and the cause.
        case unreadable(DeviceToken, StoreError)
    }

    var clock: ClusterClock
    /// The failure because of which no transaction can begin; nil while the store is attached.
    var failure: StoreFailure?
    /// True if the store is attached but has confirmed nothing for too long.
    var isSilent = false
    /// The time since which every load has failed because a table is locked, in milliseconds since the start of the
    /// machine. Nil if the last load succeeded.
    var tableLockedSince: Int64?
    /// The time of the last load that failed because a table was locked, in milliseconds since the start of the
    /// machine.
    var tableLockedAt: Int64 = 0
    var refusals = CommitRefusals()
    /// The reason why no commit is confirmed although the store is attached; nil while commits are confirmed.
    var trouble: StoreError?
    /// A new attachment. It takes effect when all transactions of the previous attachment have ended.
    var attachment: Attachment?
    var queue = CommandQueue()
    var claims = Claims()
    var due = DueDriver()
    var sweep = PolicySweep()
    var members: Membership
    var held = HeldWakes()
    /// The requests for counters, for single devices and for lists whose reads have not begun.
    var countQuestions: [ClusterQuestion] = []
    var deviceQuestions: [ClusterQuestion] = []
    var listings: [DeviceListing] = []
    /// The transactions that have begun and have not ended, by number.
    var open: [TransactionNumber: ClusterTransaction] = [:]
    /// The transactions that wait for topics, and those whose topics were created and that wait until they may begin.
    var waitingForTopics: [ClusterTransaction] = []
    var waitingForRoom: [ClusterTransaction] = []
    var subscriptions: [EngineRequest] = []
    /// The callers who wait for topics to be paused or resumed, and the stored pauses by topic.
    var pauses: [EngineRequest] = []
    var storedPauses: [String: Bool] = [:]
    /// The shared values, by name, that could not be stored. They are submitted again each second.
    var unstoredValues: [String: [UInt8]] = [:]
    /// The losses of wakes that could not be recorded. They are retried each second.
    var losses: [(work: QueuedCommand.Work, row: RequestedRow)] = []
    /// The devices whose conditions other gateways changed, of which streams here must be notified.
    var conditionsChanged = ChangedDevices()
    /// The pushes refused by loops that are not counted yet.
    var rejected: [RejectedPush] = []
    var areRefusalsDue = false
    /// The earliest time of the next read of devices for conditions owed to streams, in boot time.
    var owedConditionsAt: Int64 = 0
    /// True once the gateway is stopping. Notifications from other gateways then begin no transactions.
    var isFinishing = false
    /// The counts of this gateway's refused pushes, as last stored.
    var rejectionsStored = Rejections()
    /// True if commands have priority when the next transaction may begin.
    var isTurnOfCommands = true
    /// True if commands of locked rows have priority when the next commands begin.
    var isTurnOfLocked = true
    var replies: [ClusterReply] = []
    private var lockLog = LockLog()
    private var lastNumber: UInt64 = 0
    private var spareGroups: [StepGroup] = []
    /// The start of the next second, in milliseconds since the start of the machine.
    var tickAt: Int64

    /// Creates an engine that refuses commands until its store is attached.
    ///
    /// - `historyKey`: the key for the numbers of devices in events. It must be the same on all gateways.
    /// - `workers`: the requirement for workers to authenticate.
    /// - `report`: the report of this gateway, without its workers and the settings that must be equal.
    /// - `world`: the clocks and the random numbers.
    /// - `store`: the store, which wakes the engine's thread when it has replies.
    /// - `output`: receives the effects for the loops and the requests to the history.
    /// - `onNews`: called with each change that operators must learn about.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkerAuthentication = .unrecorded,
        report: GatewayReport,
        world: EngineWorld = .system,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        store: any ClusterStore,
        output: GroupOutput,
        limits: LimitCounts = LimitCounts(),
        live: LiveService = LiveService(),
        onNews: @escaping @Sendable (News) -> Void = { _ in }
    ) {
        let clock = ClusterClock(world)
        let engine = DeviceEngine(
            configuration: configuration,
            now: clock.now,
            historyKey: historyKey,
            random: world.makeRandom()
        )
        engine.useSharedStore()
        let stage = EffectStage(group: output.makeGroup(), offset: clock.offset)
        let remote = RemoteWorkers()
        let times = SharedCommitTimes()
        self.store = store
        self.times = times
        self.remote = remote
        self.workers = workers
        self.live = live
        self.world = world
        self.onNews = onNews
        self.clock = clock
        self.members = Membership(report)
        self.members.configured(configuration)
        self.tickAt = clock.boot
        super.init(
            engine,
            stage,
            output,
            RoomState(GatewayRecords(countingSince: world.wall()), limits, commitTimes: { times.value }),
            configuration,
            wakeBytesPerStreamMax: wakeBytesPerStreamMax,
            live
        )
        self.dispatcher.useSharedStore { remote.mayTakePush($0) }
        self.failure = self.failure(StoreError(message: "The database has not been reached yet."))
    }

    /// The workspace of the services. It contains devices only during a transaction.
    var workspace: Workspace { self.workspace(self.failure) }

    /// Returns the workspace for refusals after `error`.
    func workspace(failed error: StoreError) -> Workspace { self.workspace(self.failure(error)) }

    private func workspace(_ failure: StoreFailure?) -> Workspace {
        Workspace(
            engine: self.engine,
            dispatcher: self.dispatcher,
            offset: self.clock.offset,
            failure: failure,
            remote: self.remote
        )
    }

    var isAttached: Bool { self.failure == nil }

    /// True if nothing is pending, except for the regular work of each second.
    package var isIdle: Bool {
        self.queue.count == 0 && self.open.isEmpty && self.waitingForTopics.isEmpty && self.waitingForRoom.isEmpty
            && self.subscriptions.isEmpty && self.pauses.isEmpty && self.listings.isEmpty
            && self.countQuestions.isEmpty && self.deviceQuestions.isEmpty
            && (self.conditionsChanged.isEmpty || self.conditionsChanged.isPaused(at: self.clock.boot))
            && self.rejected.isEmpty && !self.areRefusalsDue
    }

    func failure(_ error: StoreError) -> StoreFailure {
        StoreFailure(
            error: error,
            workers: WorkersAtFailure(self.dispatcher, self.engine),
            durableError: error,
            isPassing: true
        )
    }
}

// MARK: - Steps

extension ClusterEngine {
    package var briefStep: ((CommandBatch) -> Int64)? { nil }

    package func step(_ batch: CommandBatch) -> Int64 {
        self.clock.step()
        self.stage.offset = self.clock.offset
        self.watch()
        self.takeReplies()
        self.enqueue(batch)
        self.refuseOverdue()
        self.tick()
        let isDone = self.turn()
        self.limits.look(self.clock.now, self.dispatcher)
        self.publish()
        return isDone ? self.milliseconds : 0
    }

    package func finish() {
        self.isFinishing = true
        self.countRejected(all: true)
        self.areRefusalsDue = self.isAttached && self.hasUnwritten
        let end = self.world.monotonic() + Self.finishMax
        // The number of rounds is limited, so that the process ends even if the clock stops.
        for _ in 0..<Self.finishMax where !self.isIdle && self.isAttached && self.world.monotonic() < end {
            self.clock.step()
            self.takeReplies()
            self.refuseOverdue(after: Self.lockedMaxAtFinish)
            self.beatAtFinish()
            _ = self.turn()
            self.publish()
            if !self.isIdle { self.store.waitForReplies(milliseconds: 50) }
        }
        // A commit confirmed during the last wait must be answered, not refused.
        self.takeReplies()
        self.refuseEverybody(self.failureError)
        self.publish()
        self.store.stop()
    }

    /// Begins transactions and processes replies until neither is possible.
    ///
    /// - Returns: false if more work remains than one step may do.
    private func turn() -> Bool {
        for _ in 0..<Self.turnsMax {
            self.countRejected()
            self.beginTransactions()
            guard self.takeReplies() else { return true }
        }
        return false
    }

    /// True if refusals or subscription events have not been written. Both are written by the same transactions.
    private var hasUnwritten: Bool { self.records.rejections.hasChanges || self.engine.hasEvents }

    /// Performs the regular work of each second.
    private func tick() {
        self.sample()
        guard self.clock.boot >= self.tickAt else { return }
        self.tickAt = self.clock.boot + 1000
        self.reportLocks()
        let forgotten = self.clock.boot - Self.unreadableMemory
        self.remote.unreadable = self.remote.unreadable.filter { $0.value > forgotten }
        guard self.isAttached else { return }
        self.judgeSilence()
        self.report()
        self.members.secondPassed()
        self.due.secondPassed()
        self.sweep.secondPassed()
        self.areRefusalsDue = self.areRefusalsDue || self.hasUnwritten
        self.held.foresee(from: self.clock.now)
        for (name, content) in self.unstoredValues { self.storeValue(name, content) }
        let losses = self.losses
        self.losses = []
        for loss in losses { self.queue.append(loss.work, loss.row) }
    }

    /// Sends the regular report while a stop waits for commits, so that other gateways do not declare this one dead.
    private func beatAtFinish() {
        guard self.clock.boot >= self.tickAt else { return }
        self.tickAt = self.clock.boot + 1000
        self.report()
    }

    private func report() {
        let report = self.members.report(
            self.dispatcher,
            topicCount: self.engine.topicCount,
            isDraining: self.isFinishing || self.room.isDraining
        )
        self.store.submit(.report(report))
    }

    /// Refuses new commands if a load or a commit is unanswered for too long, although it may still succeed. The
    /// creation of topics is also a commit.
    func judgeSilence() {
        let open = self.open.values.filter { !$0.isRead }.map { $0.step.committedSince ?? $0.begunAt }
        let waiting = self.waitingForTopics.compactMap(\.step.committedSince)
        // While pushes are refused, no load can find out if the table is still locked. So after a lock has not been
        // seen for `silenceMax`, pushes are accepted again.
        let isRecent = self.clock.boot - self.tableLockedAt < Self.silenceMax
        let locked = isRecent ? self.tableLockedSince : nil
        let since = ([locked ?? self.clock.boot] + open + waiting).min() ?? self.clock.boot
        self.isSilent = self.clock.boot - since >= Self.silenceMax
        let trouble =
            self.isSilent ? Self.silence : self.refusals.cause(boot: self.clock.boot, after: Self.silenceMax)
        guard trouble?.message != self.trouble?.message else { return }
        self.trouble = trouble
        self.onNews(.status(trouble))
    }

    /// Records that a commit was confirmed.
    func commitConfirmed() {
        self.refusals.confirmed()
        if self.trouble != nil { self.judgeSilence() }
    }

    static var silence: StoreError {
        StoreError(
            message: "The database has confirmed no commit for \(Self.silenceMax / 1000) seconds. See that a "
                + "synchronous standby is connected (pg_stat_replication), that no session holds the lock of a table "
                + "(pg_locks), and that the disk is not full."
        )
    }

    /// Reports the locks of other sessions that delay devices.
    private func reportLocks() {
        guard !self.queue.locked.isEmpty || self.lockLog.hasLogged || !self.remote.locks.isEmpty else { return }
        self.queue.forgetUnusedLocks(before: self.clock.boot - DeviceLocks.memory)
        let holders = self.queue.locked.holders(before: self.clock.boot - DeviceLocks.delay)
        self.remote.locks = DeviceLocks.report(holders)
        if self.lockLog.isDue(Set(holders.keys), at: self.clock.boot) { self.onNews(.locks(self.remote.locks)) }
    }

    /// Takes the sample of this second when it is due and the counts of all gateways are known.
    private func sample() {
        guard self.sampler.nextAt <= self.clock.now.milliseconds else { return }
        guard self.isAttached else { return self.takeSample() }
        guard !self.isSampleAsked else { return }
        self.countQuestions.append(ClusterQuestion(request: nil, wait: self.wait(behind: self.queue.last)))
    }

    /// The topics whose counters the sample of this second needs.
    var sampledTopics: CountedTopics {
        let isMinute = self.room.recent.nextAt <= self.clock.now.milliseconds
        return self.live.isWatched || isMinute ? .every : .none
    }

    func takeSample() { self.takeSample(at: self.clock.now, self.workspace) }

    /// The number of milliseconds until the next step, unless the engine is woken earlier.
    private var milliseconds: Int64 {
        let now = self.clock.now.milliseconds
        var next = min(self.tickAt - self.clock.boot, 1000)
        // If something due cannot begin now, a reply of the store will wake the engine.
        let hasRoom = self.isAttached && self.hasRoom
        if hasRoom, self.members.mayExpireWakes, let moment = self.due.next {
            next = min(next, moment.milliseconds - now)
        }
        if self.isAttached, self.mayReadHeldWakes, let moment = self.held.nextLook {
            next = min(next, moment.milliseconds - now)
        }
        if !self.isSampleAsked { next = min(next, self.sampler.nextAt - now) }
        let waitsForRefusals = self.areRefusalsDue || self.areRefusalsOpen
        if self.countedQuestions == nil, let moment = self.countQuestions.lazy.map(\.wait.until).min(),
            moment > self.clock.boot || !waitsForRefusals
        {
            next = min(next, moment - self.clock.boot)
        }
        if self.mayReadDevices, let moment = self.deviceQuestions.lazy.map(\.wait.until).min() {
            next = min(next, moment - self.clock.boot)
        }
        if hasRoom, let moment = self.queue.locked.nextAt { next = min(next, moment - self.clock.boot) }
        return next > 0 ? next : 1
    }
}

// MARK: - Transactions

extension ClusterEngine {
    /// True if the store allows another transaction that locks rows.
    var hasRoom: Bool { self.open.values.count { !$0.isRead } < self.store.transactionsMax }

    /// Begins a transaction by requesting its rows.
    func begin(_ purpose: ClusterTransaction.Purpose, _ plan: LoadPlan, _ commands: [QueuedCommand] = []) {
        self.begin(ClusterTransaction(purpose, commands, plan, nil, group: self.makeGroup()))
    }

    /// Begins a transaction that only reads rows.
    func begin(_ purpose: ClusterTransaction.Purpose, reading plan: ReadPlan?) {
        self.begin(ClusterTransaction(purpose, [], nil, plan, group: self.makeGroup()))
    }

    /// Begins a transaction, or repeats it with a new number.
    func begin(_ transaction: ClusterTransaction) {
        self.lastNumber += 1
        transaction.number = TransactionNumber(rawValue: self.lastNumber)
        transaction.begunAt = self.clock.boot
        self.open[transaction.number] = transaction
        transaction.locked?.findsLostWakes = !self.members.mayExpireWakes
        if let plan = transaction.locked { self.store.submit(.load(transaction.number, plan)) }
        if let plan = transaction.read { self.store.submit(.read(transaction.number, plan)) }
        if case .counts(_, let topics) = transaction.purpose {
            self.store.submit(.count(transaction.number, topics: topics))
        }
    }

    /// Ends a transaction without writing.
    func abandon(_ transaction: ClusterTransaction) {
        if !transaction.isRead { self.store.submit(.abandon(transaction.number)) }
        self.open[transaction.number] = nil
    }

    /// Starts or stops recording events, depending on whether an operator follows them.
    func watch() { self.watch(at: self.clock.now, self.clock.offset) }

    /// Releases the effects that depend on no transaction.
    func publish() {
        self.engine.takeWatched(into: &self.stage.group.watched)
        self.output.release(self.stage.group)
    }

    /// Releases the effects of a transaction that is durable or changes nothing.
    func publish(_ transaction: ClusterTransaction) {
        if transaction.step.committedFrom > 0 {
            let end = SystemClock.monotonicMicroseconds
            self.times.value.committed(transaction.group.arrivals, from: transaction.step.committedFrom, to: end)
        }
        // A stream must begin before its first wake.
        self.publish()
        self.output.release(transaction.group)
    }

    func makeGroup() -> StepGroup { self.spareGroups.popLast() ?? self.output.makeGroup() }

    /// Returns a group to the pool.
    func giveBack(_ group: StepGroup) {
        group.discard()
        if self.spareGroups.count < 64 { self.spareGroups.append(group) }
    }
}

/// The durations of commits. The engine and the services that show them share this object on one thread.
final class SharedCommitTimes {
    var value = CommitTimes()
}
