package import Engine
import Platform
import Policy
package import Wire

/// The engine of a gateway that shares its store with others: devices are rows there, and here in memory only while a
/// transaction is performed on them.
///
/// A step takes what the store has answered, queues what has come, and begins as many transactions as may be open: of
/// commands, of what is due, of claims for free slots. Each is performed by the desks of the embedded engine, in one
/// call, when its rows have come; what it has to tell is let out when it is durable. The engine waits for nothing.
package final class SharedGatewayEngine: EngineShell, GatewayEngine {
    /// The longest wait of a stop for commits and for the locks of other sessions, in milliseconds.
    static let finishMax: Int64 = 5000
    private static let lockedMaxAtFinish: Int64 = 1000
    /// For how long a commit may be unconfirmed until nothing more is taken, in milliseconds: as when no standby
    /// confirms.
    private static let silenceMax: Int64 = 10_000
    /// How often a step looks for replies before others have their turn.
    private static let turnsMax = 64

    /// Whether transactions can be begun.
    enum Status {
        case attached
        /// Not, for this cause.
        case unattached(StoreFailure)
    }

    let store: any ClusterStore
    let remote: RemoteWorkers
    let workers: WorkersAsked
    private let live: LiveDesk
    private let world: EngineWorld
    private let times: SharedCommitTimes
    private let waitForStore: @Sendable (Int64) -> Void
    /// Called with why nothing can be stored for now, and with nil when it can again.
    let onStatus: @Sendable (StoreError?) -> Void
    /// Called with the keys that gateways do not have alike, when they are others than before.
    let onUnlike: @Sendable ([String]) -> Void
    /// Called with the locks of other sessions that devices wait for, when these are to be logged.
    private let onLocks: @Sendable ([DeviceLocks]) -> Void

    var clock: ClusterClock
    var status: Status
    /// The store is attached, and has confirmed nothing for too long.
    var isSilent = false
    /// Since when no load succeeds as a table is locked, in milliseconds since the machine started; nil if one did.
    var tableLockedSince: Int64?
    /// The last time that a load failed because a table was locked, by the same clock.
    var tableLockedAt: Int64 = 0
    var refusals = CommitRefusals()
    /// The reason for which no commit is confirmed although the store is attached; nil while commits are.
    var trouble: StoreError?
    /// A number that was given while transactions of the one before were open.
    var attachment: Attachment?
    var queue = CommandQueue()
    var claims = Claims()
    var due = DueDriver()
    var sweep = PolicySweep()
    var members: Membership
    var held = HeldWakes()
    var questions = ClusterQuestions()
    var deviceQuestions = DeviceQuestions()
    var listings: [DeviceListing] = []
    /// Transactions that have begun and not ended.
    var open: [TransactionNumber: ClusterTransaction] = [:]
    /// Transactions that wait for topics, those whose topics are there and that wait for room, and streams that wait
    /// for topics.
    var waitingForTopics: [ClusterTransaction] = []
    var waitingForRoom: [ClusterTransaction] = []
    /// Pieces of lists that nobody waits for any more, and that the store has not answered yet.
    var orphans: Set<TransactionNumber> = []
    var subscriptions: [EngineRequest] = []
    /// Who waits for topics to be paused or resumed, and what is kept of that by the topics' names.
    var pauses: [EngineRequest] = []
    var pausesKept: [String: Bool] = [:]
    /// Values by name that the store could not keep. They are given to it again each second.
    var unkept: [String: [UInt8]] = [:]
    /// Wakes that are to be lost, which failed; they are tried again each second.
    var losses: [(work: QueuedCommand.Work, row: RequestedRow)] = []
    /// Devices whose conditions others have changed, which streams here are to hear of.
    var conditionsChanged = ChangedDevices()
    var overdueWakes: [WakeID] = []
    /// Pushes that were refused before they got here, and are not counted yet.
    var rejected: [RejectedPush] = []
    var areRefusalsDue = false
    /// The gateway stops: what it learns of others leads to nothing new.
    var isFinishing = false
    /// The refused pushes of this gateway as they were stored last.
    var rejectionsStored = Rejections()
    /// Whether commands go before everything else, the next time a transaction may begin.
    var isTurnOfCommands = true
    /// True if commands of locked rows go before the other commands, the next time that commands begin.
    var isTurnOfLocked = true
    var replies: [ClusterReply] = []
    private var lockLog = LockLog()
    private var lastNumber: UInt64 = 0
    private var spareGroups: [StepGroup] = []
    /// When the next second begins, in milliseconds since the machine started.
    private var tickAt: Int64

    /// An engine that takes nothing until its store is attached.
    ///
    /// - `historyKey`: makes the numbers by which events name devices; all gateways have the same.
    /// - `workers`: whether workers are asked who they are.
    /// - `report`: what it says of itself to the others, but for its workers and what must be equal in all.
    /// - `world`: its clocks, and chance.
    /// - `store`: rings the engine's thread when it has replies.
    /// - `waitForStore`: waits until the store has rung, for so many milliseconds at most: when a stop waits for what
    ///   is not durable yet.
    /// - `outlet`: where it leaves what it has for the loops, and where the history is asked.
    /// - `onStatus`: called with why nothing can be stored for now, and with nil when it can again.
    /// - `onUnlike`: called with the keys that gateways do not have alike, when they are others than before.
    /// - `onLocks`: called with the locks of other sessions that devices wait for, when these are to be logged.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkersAsked = .unrecorded,
        report: GatewayReport,
        world: EngineWorld = .system,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        store: any ClusterStore,
        waitForStore: @escaping @Sendable (Int64) -> Void,
        outlet: GroupOutlet,
        meter: LimitMeter = LimitMeter(),
        live: LiveDesk = LiveDesk(),
        limitWatch: LimitWatch = LimitWatch(),
        onStatus: @escaping @Sendable (StoreError?) -> Void = { _ in },
        onUnlike: @escaping @Sendable ([String]) -> Void = { _ in },
        onLocks: @escaping @Sendable ([DeviceLocks]) -> Void = { _ in }
    ) {
        let clock = ClusterClock(world)
        let engine = EmbeddedEngine(
            configuration: configuration,
            now: clock.now,
            historyKey: historyKey,
            random: world.makeRandom()
        )
        engine.share()
        let stage = EffectStage(group: outlet.makeGroup(), offset: clock.offset)
        let parts = EngineParts(
            engine,
            stage,
            outlet,
            GatewayRecords(countingSince: world.wall()),
            configuration,
            wakeBytesPerStreamMax: wakeBytesPerStreamMax
        )
        let remote = RemoteWorkers()
        parts.dispatcher.share { remote.mayTakePush($0) }
        let times = SharedCommitTimes()
        self.store = store
        self.times = times
        self.remote = remote
        self.workers = workers
        self.live = live
        self.world = world
        self.waitForStore = waitForStore
        self.onStatus = onStatus
        self.onUnlike = onUnlike
        self.onLocks = onLocks
        self.clock = clock
        self.members = Membership(report)
        self.members.configured(configuration)
        self.tickAt = clock.boot
        self.status = .unattached(
            Self.failure(StoreError(message: "The database has not been reached yet."), engine, parts.dispatcher)
        )
        super.init(parts, LimitCounts(meter, limitWatch), live, commitTimes: { times.value })
    }

    /// What the desks work on. Devices are there in a transaction alone.
    var workspace: Workspace {
        var failure: StoreFailure?
        if case .unattached(let cause) = self.status { failure = cause }
        return self.workspace(failure)
    }

    /// What the desks work on when something cannot be stored for this cause.
    func workspace(failed error: StoreError) -> Workspace {
        self.workspace(Self.failure(error, self.engine, self.dispatcher))
    }

    private func workspace(_ failure: StoreFailure?) -> Workspace {
        Workspace(
            engine: self.engine,
            dispatcher: self.dispatcher,
            offset: self.clock.offset,
            failure: failure,
            remote: self.remote
        )
    }

    var isAttached: Bool {
        if case .attached = self.status { true } else { false }
    }

    /// Nothing waits, and nothing is under way, but for what each second brings.
    package var isIdle: Bool {
        self.queue.count == 0 && self.open.isEmpty && self.waitingForTopics.isEmpty && self.waitingForRoom.isEmpty
            && self.subscriptions.isEmpty && self.pauses.isEmpty && self.questions.isEmpty && self.listings.isEmpty
            && self.deviceQuestions.isEmpty
            && (self.conditionsChanged.isEmpty || self.conditionsChanged.isPaused(at: self.clock.boot))
            && self.rejected.isEmpty && !self.areRefusalsDue
    }

    static func failure(_ error: StoreError, _ engine: EmbeddedEngine, _ dispatcher: Dispatcher) -> StoreFailure {
        StoreFailure(
            error: error,
            workers: WorkersAtFailure(dispatcher, engine),
            durableError: error,
            isPassing: true
        )
    }
}

// MARK: - Steps

extension SharedGatewayEngine {
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
        self.letOut()
        return isDone ? self.milliseconds : 0
    }

    package func finish() {
        self.isFinishing = true
        self.countRejected(all: true)
        self.areRefusalsDue = self.isAttached && self.records.rejections.hasChanges
        let end = self.world.monotonic() + Self.finishMax
        // A clock that stands still must not keep a process from its end.
        for _ in 0..<Self.finishMax where !self.isIdle && self.isAttached && self.world.monotonic() < end {
            self.clock.step()
            self.takeReplies()
            self.refuseOverdue(after: Self.lockedMaxAtFinish)
            self.beatAtFinish()
            _ = self.turn()
            self.letOut()
            if !self.isIdle { self.waitForStore(50) }
        }
        // A commit that was confirmed in the last wait is an answer, and no refusal.
        self.takeReplies()
        self.refuseEverybody(self.failureError)
        self.letOut()
        self.store.stop()
    }

    /// Begins what may begin, and takes what is answered at once, until nothing more comes.
    ///
    /// - Returns: false when there is more than a step may.
    private func turn() -> Bool {
        for _ in 0..<Self.turnsMax {
            self.countRejected()
            self.beginTransactions()
            guard self.takeReplies() else { return true }
        }
        return false
    }

    /// What each second brings.
    private func tick() {
        self.sample()
        guard self.clock.boot >= self.tickAt else { return }
        self.tickAt = self.clock.boot + 1000
        self.reportLocks()
        guard self.isAttached else { return }
        self.judgeSilence()
        self.report()
        self.due.isForced = true
        self.sweep.secondPassed()
        self.areRefusalsDue = self.areRefusalsDue || self.records.rejections.hasChanges
        self.held.foresee(from: self.clock.now)
        self.overdueWakes = self.held.overdue(at: self.clock.now, countMax: Claims.countMax)
        for (name, content) in self.unkept { self.keep(name, content) }
        let losses = self.losses
        self.losses = []
        for loss in losses { self.queue.append(loss.work, loss.row) }
    }

    /// Says that this gateway lives, until its last commit is confirmed: others would take it for dead.
    private func beatAtFinish() {
        guard self.clock.boot >= self.tickAt else { return }
        self.tickAt = self.clock.boot + 1000
        self.report()
    }

    private func report() {
        let report = self.members.report(
            self.dispatcher,
            topicCount: self.engine.topicCount,
            isDraining: self.isFinishing || self.requests.isDraining
        )
        self.store.submit(.report(report))
    }

    /// Refuses what would be stored while a load or a commit is unanswered for too long, which may yet succeed. A
    /// transaction that waits for topics waits for a commit, too.
    func judgeSilence() {
        let open = self.open.values.filter { !$0.isRead }.map { $0.step.committedSince ?? $0.begunAt }
        let waiting = self.waitingForTopics.compactMap(\.step.committedSince)
        // While pushes are refused, no load meets the lock. After as long they are let in, to see if it is still there.
        let isRecent = self.clock.boot - self.tableLockedAt < Self.silenceMax
        let locked = isRecent ? self.tableLockedSince : nil
        let since = ([locked ?? self.clock.boot] + open + waiting).min() ?? self.clock.boot
        self.isSilent = self.clock.boot - since >= Self.silenceMax
        let trouble =
            self.isSilent ? Self.silence : self.refusals.cause(boot: self.clock.boot, after: Self.silenceMax)
        guard trouble?.message != self.trouble?.message else { return }
        self.trouble = trouble
        self.onStatus(trouble)
    }

    /// A commit is confirmed.
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

    /// Reports the locks of other sessions that devices wait for.
    private func reportLocks() {
        guard self.queue.hasLocked || self.lockLog.hasLogged || !self.remote.locks.isEmpty else { return }
        self.queue.forgetUnusedLocks(before: self.clock.boot - DeviceLocks.memory)
        let holders = self.queue.lockHolders(at: self.clock.boot)
        self.remote.locks = DeviceLocks.report(holders)
        if self.lockLog.isDue(Set(holders.keys), at: self.clock.boot) { self.onLocks(self.remote.locks) }
    }

    /// Has the sample of this second taken, if it is due: once it is known what all gateways have counted.
    private func sample() {
        guard self.sampler.nextAt <= self.clock.now.milliseconds else { return }
        guard self.isAttached else { return self.takeSample() }
        guard !self.questions.hasSample else { return }
        self.ask(nil, self.live.isWatched ? .every : .none)
    }

    func takeSample() {
        self.takeSample(at: self.clock.now, self.workspace)
    }

    /// How many milliseconds may pass until the next step, if nothing comes before.
    private var milliseconds: Int64 {
        let now = self.clock.now.milliseconds
        var next = min(self.tickAt - self.clock.boot, 1000)
        if self.isAttached, !self.due.isOpen, let moment = self.due.next { next = min(next, moment.milliseconds - now) }
        if self.isAttached, self.mayReadWarnings, let moment = self.held.nextWarning {
            next = min(next, moment.milliseconds - now)
        }
        if !self.questions.hasSample { next = min(next, self.sampler.nextAt - now) }
        if let moment = self.questions.nextAt { next = min(next, moment - self.clock.boot) }
        if let moment = self.deviceQuestions.nextAt { next = min(next, moment - self.clock.boot) }
        if let moment = self.queue.lockedAt { next = min(next, moment - self.clock.boot) }
        // What could not be done though it is its time waits for a reply of the store, which rings.
        return next > 0 ? next : 1
    }
}

// MARK: - Transactions

extension SharedGatewayEngine {
    /// True if another transaction that locks rows may be open.
    var hasRoom: Bool { self.open.values.count { !$0.isRead } < self.store.transactionsMax }

    func nextNumber() -> TransactionNumber {
        self.lastNumber += 1
        return TransactionNumber(rawValue: self.lastNumber)
    }

    /// Begins a transaction: its rows are asked for.
    func begin(_ purpose: ClusterTransaction.Purpose, commands: [QueuedCommand] = [], _ plan: LoadPlan = LoadPlan()) {
        self.begin(purpose, commands, .locked(plan))
    }

    /// Begins what reads rows and changes nothing.
    func begin(_ purpose: ClusterTransaction.Purpose, reading plan: ReadPlan) {
        self.begin(purpose, [], .read(plan))
    }

    private func begin(
        _ purpose: ClusterTransaction.Purpose,
        _ commands: [QueuedCommand],
        _ rows: ClusterTransaction.Rows
    ) {
        self.begin(ClusterTransaction(purpose, commands, rows, group: self.makeGroup()))
    }

    /// Begins a transaction, or begins it again, under another number.
    func begin(_ transaction: ClusterTransaction) {
        transaction.number = self.nextNumber()
        transaction.begunAt = self.clock.boot
        self.open[transaction.number] = transaction
        switch transaction.rows {
        case .locked(let plan): self.store.submit(.load(transaction.number, plan))
        case .read(let plan): self.store.submit(.read(transaction.number, plan))
        }
    }

    /// Ends a transaction without a write.
    func abandon(_ transaction: ClusterTransaction) {
        if !transaction.isRead { self.store.submit(.abandon(transaction.number)) }
        self.open[transaction.number] = nil
    }

    /// Notes what happens from now on, if somebody follows it.
    func watch() { self.watch(at: self.clock.now, self.clock.offset) }

    /// Lets out what waits for no transaction.
    func letOut() {
        self.engine.takeWatched(into: &self.stage.group.watched)
        self.outlet.release(self.stage.group)
    }

    /// Lets out what a transaction has to tell, which is durable, or changes nothing.
    func letOut(_ transaction: ClusterTransaction) {
        if transaction.step.committedFrom > 0 {
            let end = SystemClock.monotonicMicroseconds
            self.times.value.committed(transaction.group.arrivals, from: transaction.step.committedFrom, to: end)
        }
        // A stream begins before its first wake.
        self.letOut()
        self.outlet.release(transaction.group)
    }

    func makeGroup() -> StepGroup { self.spareGroups.popLast() ?? self.outlet.makeGroup() }

    /// A group that nobody uses any more.
    func giveBack(_ group: StepGroup) {
        group.discard()
        if self.spareGroups.count < 64 { self.spareGroups.append(group) }
    }
}

/// How long commits took, where the desks that show it find it; one thread uses it.
final class SharedCommitTimes {
    var value = CommitTimes()
}
