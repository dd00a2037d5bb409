import APNSProtocol
package import Access
import Answers
package import Bytes
package import DeviceEngine
import LaunchPolicy
import Settings
import WakeDispatch

/// What the engine's thread owns: engine, dispatcher, and what the next commit will let out.
///
/// One step: go on to the present, take every command in order, and hand what changed to the store if it is idle.
/// Otherwise the changes wait for the steps to come; a device that changes again is written once.
package final class EngineCore {
    /// The most devices looked at in one step, so that pushes never wait long for a crowd that is due at once.
    private static let dueDevicesMax = 4096
    /// How long refused pushes may stay unwritten, in milliseconds.
    private static let rejectionsInterval: Int64 = 1000

    private(set) var engine: EmbeddedEngine
    private(set) var dispatcher: Dispatcher
    /// Wall clock minus policy time at the current step.
    var offset: WallOffset
    var rejections: Rejections
    /// When the counters began, in milliseconds since 1970.
    let countingSince: Int64
    /// What this start gave up of what was once committed; nil when nothing was missing.
    let acceptedLoss: StoreLoss?
    let stage: EffectStage
    var isDraining = false
    /// How the webhooks are, by topic, as they said last.
    var webhooks: [String: WebhookStatus] = [:]
    /// Who waits for a list of topics.
    var topicLists = TopicListQueue()
    /// Why the engine takes nothing more: a commit failed.
    private(set) var failure: StoreFailure?
    /// How often the engine's bounds were met; those of the dispatcher that is in use are not among them.
    private var limitsMet = PerCase<EngineLimit>()
    private let meter: LimitMeter
    /// Where those who watch find how things are.
    let live: LiveDesk
    /// When the next sample is due, in milliseconds of policy time.
    var sampleAt: Int64 = 0
    private var limitWatch: LimitWatch
    /// Which launch policies were in force when.
    private(set) var policies: PolicyVersions
    private var arePoliciesChanged = false
    /// The state says, or is about to say, that workers were asked who they are.
    private var wereWorkersAsked: Bool
    private var isAskingNew = false
    private var wakeBytesPerStreamMax: Int
    private var configuration: EngineConfiguration
    private var clock: PolicyClock
    /// Numbers the records of events; nil when nothing is kept.
    private var numbers: EventNumbers?
    private let outlet: GroupOutlet
    /// nil when nothing is kept.
    private let committer: (any Committer)?
    private let world: EngineWorld
    private let onFailure: @Sendable (StoreError) -> Void
    private var rejectionsStoredAt: Int64 = 0

    /// An engine as `store` kept it; the wakes that were in flight are lost, and that is durable.
    ///
    /// - `historyKey`: the key of the history that hears what happens.
    /// - `workers`: whether workers are asked who they are.
    /// - `store`: nil to keep nothing.
    /// - `jumpWatch`: how far the wall clock may have gone across a boot, and who hears that it went farther.
    /// - `world`: its clocks, and chance.
    /// - `makeCommitter`: makes what commits to the store; by default it has a thread of its own.
    /// - `wakeBytesPerStreamMax`: the bytes of payloads that a worker's stream may hold unanswered.
    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `live`: takes a sample a second.
    /// - `limitWatch`: tells of bounds that were met.
    /// - `ring`: wakes the engine's thread.
    /// - `onLossAccepted`: called here when the store lacks what was committed, and the start goes on without it.
    /// - `onFailure`: called once, when nothing can be stored any more.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkersAsked = .unrecorded,
        jumpWatch: ClockJumpWatch = ClockJumpWatch(),
        world: EngineWorld = .system,
        makeCommitter: CommitterMaker = CommitPipeline.init,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        store: (any RecordStore)?,
        outlet: GroupOutlet,
        meter: LimitMeter = LimitMeter(),
        live: LiveDesk = LiveDesk(),
        limitWatch: LimitWatch = LimitWatch(),
        ring: @escaping @Sendable () -> Void,
        onLossAccepted: (StoreLoss) -> Void = { _ in },
        onFailure: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) {
        let (wall, boot) = (world.wall(), world.boot())
        let events = store.map { _ in EventRecovery(historyKey) }
        let engine = Self.makeEngine(configuration, historyKey, world, now: Instant(milliseconds: wall))
        let stored = try StoredGateway.load(store, into: engine, events, workers)
        self.engine = stored.engine
        self.wereWorkersAsked = stored.wereWorkersAsked || workers == .asked
        self.configuration = configuration
        self.clock = Self.resumeClock(stored.clock, world, wall: wall, boot: boot, jumpWatch)
        let now = self.clock.now(boot: boot)
        try self.engine.finishRestoring(now: now)
        // No other process uses the store, and the workers of the one before are gone.
        self.engine.loseEveryWake()
        // A start that is refused leaves the store as it is, and the history.
        let beginsAnother = store?.beginsAnother ?? false
        // Told before it is given up: a start that is cut off in between must not have done it without a word.
        self.acceptedLoss = store?.loss
        if let loss = self.acceptedLoss { onLossAccepted(loss) }
        try store?.begin()
        try outlet.history.open()
        events?.compare(with: outlet.history.waitUntilOpened())
        self.policies = stored.policies
        let isPolicyNew = self.policies.begin(configuration, at: now)
        self.countingSince = stored.countingSince ?? wall
        self.rejections = stored.rejections
        self.offset = WallOffset(wall: wall, now: now)
        self.numbers = events?.numbers(wall: wall, beginsAnother: beginsAnother)
        self.outlet = outlet
        self.world = world
        self.onFailure = onFailure
        self.stage = EffectStage(group: outlet.makeGroup(), offset: self.offset)
        self.meter = meter
        self.live = live
        self.limitWatch = limitWatch
        self.wakeBytesPerStreamMax = wakeBytesPerStreamMax
        let bytesMax = wakeBytesPerStreamMax
        self.dispatcher = Dispatcher(engine: self.engine, output: self.stage, wakeBytesPerStreamMax: bytesMax)
        if let store {
            let clock = self.clock.record(now, self.offset)
            var beginning = Self.beginning(since: self.countingSince, clock, workers, isPolicyNew ? self.policies : nil)
            self.engine.takeStep(into: &beginning)
            self.engine.takeEvents(into: &self.stage.group.history.events)
            self.numbers?.write(self.stage.group.history, to: &beginning)
            try store.commit(beginning)
        }
        if let events {
            events.finish(at: EventRecovery.Start(isFirst: stored.clock == nil, now: now, offset: self.offset))
            self.stage.group.history.recovery = events
            outlet.release(self.stage.group)
        }
        self.committer = try store.map { store throws(StoreError) in try makeCommitter(store, outlet, ring) }
    }

    private static func resumeClock(
        _ stored: ClockRecord?,
        _ world: EngineWorld,
        wall: Int64,
        boot: Int64,
        _ jumpWatch: ClockJumpWatch
    ) -> PolicyClock {
        let bootID = world.bootID
        guard let stored else { return PolicyClock(wall: wall, boot: boot, bootID: bootID) }
        let jumpMax = jumpWatch.millisecondsMax
        let resumed = PolicyClock.resumed(stored, wall: wall, boot: boot, bootID: bootID, jumpMax: jumpMax)
        if let jump = resumed.jump { jumpWatch.onJump(jump) }
        return resumed.clock
    }

    /// What a start commits besides the clock and what changed.
    ///
    /// - Parameters:
    ///   - since: when the counters began, in milliseconds since 1970.
    ///   - policies: nil when they are as before.
    private static func beginning(
        since: Int64,
        _ clock: ClockRecord,
        _ workers: WorkersAsked,
        _ policies: PolicyVersions?
    ) -> RecordBatch {
        var batch = RecordBatch()
        batch.append(RecordKey(.origin)) { $0.append(memoryOf: since.littleEndian) }
        if workers == .asked { batch.append(.workersAsked) { $0.append(memoryOf: since.littleEndian) } }
        if let policies { batch.append(RecordKey(.policies)) { policies.store(to: &$0) } }
        batch.append(RecordKey(.clock)) { clock.store(to: &$0) }
        return batch
    }

    private static func makeEngine(
        _ configuration: EngineConfiguration,
        _ historyKey: HashKey,
        _ world: EngineWorld,
        now: Instant
    ) -> EmbeddedEngine {
        EmbeddedEngine(configuration: configuration, now: now, historyKey: historyKey, random: world.makeRandom())
    }

    /// Takes a batch, which is empty afterwards.
    ///
    /// - Returns: how many milliseconds may pass until the next step, if nothing arrives before.
    package func step(_ batch: CommandBatch) -> Int64 {
        let boot = self.world.boot()
        let now = self.clock.now(boot: boot)
        let wall = self.world.wall()
        self.offset = self.offset.following(wall: wall, now: now, tolerance: self.world.boot() - boot)
        self.stage.offset = self.offset
        if now.milliseconds >= self.sampleAt { self.takeSample(now) }
        self.limitWatch.look(now) { self.timesLimitsWereMet }
        guard self.failure == nil else {
            self.refuse(batch)
            return self.isTopicListNext ? 0 : 1000
        }
        let isDone = self.dispatcher.advance(to: now, devicesMax: Self.dueDevicesMax)
        batch.forEach(
            push: { self.push($0, $1) },
            command: { self.perform($0) }
        )
        self.stage.group.arrivals += batch.arrivals
        batch.removeAll()
        self.writeNextTopicList()
        self.flush()
        guard isDone, !self.dispatcher.isBehind, !self.isTopicListNext else { return 0 }
        // A wait is never longer than a second, so that a suspended machine's wakes are late by no more than that.
        let next = min(self.sampleAt, self.engine.nextDue?.milliseconds ?? .max)
        return max(0, min(1000, next - self.clock.now(boot: self.world.boot()).milliseconds))
    }

    /// Makes the rest durable and lets it out; nothing is stepped afterwards.
    package func finish() {
        guard let committer = self.committer else { return self.flush() }
        self.rejectionsStoredAt = 0
        for _ in 0..<2 where self.failure == nil {
            _ = committer.waitUntilIdle()
            self.flush()
        }
        committer.stop()
    }
}

// MARK: - Commits

extension EngineCore {
    /// Hands what changed to the store, if it is idle; what needs no commit is let out when none is under way.
    private func flush() {
        guard let committer = self.committer else {
            _ = self.engine.takeStep()
            return self.release()
        }
        let storesRejections =
            self.rejections.hasChanges
            && self.world.monotonic() - self.rejectionsStoredAt >= Self.rejectionsInterval
        let hasRecords =
            self.engine.hasChanges || self.engine.hasEvents || storesRejections || self.arePoliciesChanged
            || self.isAskingNew
        switch committer.status(ringingWhenIdle: hasRecords || !self.stage.group.isEmpty) {
        case .busy: break
        case .failed(let error): self.fail(error, committer)
        case .idle:
            guard hasRecords else { return self.release() }
            self.takeHistory(into: &self.stage.group.records)
            let clock = self.clock.record(self.engine.now, self.offset)
            self.stage.group.records.append(RecordKey(.clock)) { clock.store(to: &$0) }
            self.engine.takeStep(into: &self.stage.group.records)
            if self.arePoliciesChanged {
                self.stage.group.records.append(RecordKey(.policies)) { self.policies.store(to: &$0) }
                self.arePoliciesChanged = false
            }
            if self.isAskingNew {
                self.stage.group.records.append(.workersAsked) {
                    $0.append(memoryOf: self.countingSince.littleEndian)
                }
                self.isAskingNew = false
            }
            if storesRejections {
                self.rejections.takeChanges(into: &self.stage.group.records)
                self.rejectionsStoredAt = self.world.monotonic()
            }
            committer.submit(&self.stage.group)
        }
    }

    /// Lets out what waits, without a commit.
    private func release() {
        self.takeHistory()
        self.outlet.release(self.stage.group)
    }

    private func takeHistory() {
        self.stage.group.history.offset = self.engine.hasEvents ? self.offset : self.stage.group.history.offset
        self.engine.takeEvents(into: &self.stage.group.history.events)
    }

    /// Takes what the history is told, also into records of the commit whose changes it tells of.
    private func takeHistory(into records: inout RecordBatch) {
        self.takeHistory()
        self.numbers?.write(self.stage.group.history, to: &records)
    }

    /// Nothing is stepped or stored from now on: refuses what was not made durable, and goes back to what was.
    private func fail(_ error: StoreError, _ committer: any Committer) {
        var failed = self.outlet.makeGroup()
        let store = committer.takeFailure(&failed)
        let workers = WorkersAtFailure(self.dispatcher, self.engine)
        // The engine that went too far is let go of before another is filled.
        self.replaceEngine()
        var stored = StoredGateway(engine: self.engine)
        var durableError: StoreError?
        do throws(StoreError) {
            try store.reload { key, content throws(StoreError) in try stored.take(key, content) }
            try self.engine.finishRestoring(now: stored.clock?.now ?? self.engine.now)
        } catch {
            durableError = error
        }
        self.failure = StoreFailure(error: error, workers: workers, durableError: durableError)
        self.refuse(failed)
        self.refuse(self.stage.group)
        self.outlet.release(failed)
        self.release()
        self.onFailure(error)
    }

    private func replaceEngine() {
        self.limitsMet[.wakeBytesPerStreamMax] += self.dispatcher.timesStreamWasFull
        let times = self.engine.times
        self.engine = Self.makeEngine(self.configuration, self.engine.historyKey, self.world, now: self.engine.now)
        self.engine.times = times
        self.dispatcher = Dispatcher(
            engine: self.engine,
            output: self.stage,
            wakeBytesPerStreamMax: self.wakeBytesPerStreamMax
        )
    }

    /// Turns everything a group has to say into refusals.
    private func refuse(_ group: StepGroup) {
        let error = APIError.storeFailed(self.failure?.error)
        for loop in group.effects.loops.indices { self.refuse(&group.effects.loops[loop], error) }
        self.refuse(&group.effects.webhooks, error)
        for question in group.history.questions { self.answer(question.reply, .refused(error)) }
        group.history.removeAll()
        group.records.removeAll()
    }

    private func refuse(_ effects: inout EffectBatch, _ error: APIError) {
        var refusal = EffectRefusal(error)
        refusal.refuse(effects)
        effects = refusal.refused
        self.rejections.count(APNSReason.serviceUnavailable.index, nil, by: refusal.pushCount)
    }

    /// Answers every request of a batch after a failure, and empties it.
    private func refuse(_ batch: CommandBatch) {
        batch.forEach(
            push: { self.refuse($0, .serviceUnavailable, topic: $1[0..<Int($0.topicCount)]) },
            command: { self.performAfterFailure($0) }
        )
        batch.removeAll()
        self.writeNextTopicList()
        self.release()
    }
}

// MARK: - Answers

extension EngineCore {
    func answer(_ address: StreamAddress, _ outcome: Outcome) {
        self.stage.group.effects[address].append(outcome, to: address)
    }

    /// Launches nothing more, and has the loops say goodbye.
    func drain() {
        self.isDraining = true
        self.dispatcher.drain()
        for effects in self.stage.group.effects.loops { effects.appendDraining() }
        self.stage.group.effects.webhooks.appendDraining()
    }

    func answerSubscribed(_ address: StreamAddress) {
        self.stage.group.effects[address].appendSubscribed(address)
    }
}

// MARK: - Configuration

extension EngineCore {
    /// Another configuration is in force for whatever comes behind it.
    func configure(_ settings: EngineSettings) {
        self.configuration = settings.engine
        self.wakeBytesPerStreamMax = settings.wakeBytesPerStreamMax
        self.engine.reconfigure(settings.engine)
        self.dispatcher.wakeBytesPerStreamChanged(to: settings.wakeBytesPerStreamMax)
        if self.policies.begin(settings.engine, at: self.engine.now) { self.arePoliciesChanged = true }
        settings.inForce(self.policies.current?.number ?? 0)
    }
}

// MARK: - Credentials

extension EngineCore {
    /// Workers are asked who they are from here on.
    func workersAsked() {
        guard !self.wereWorkersAsked else { return }
        self.wereWorkersAsked = true
        self.isAskingNew = true
    }
}

// MARK: - Bounds

extension EngineCore {
    func limitMet(_ limit: EngineLimit) { self.limitsMet[limit] += 1 }

    /// The bounds that were met, and how often.
    var timesLimitsWereMet: [(name: String, count: Int64)] { self.timesEveryLimitWasMet.filter { $0.count > 0 } }

    /// How often each bound was met.
    var timesEveryLimitWasMet: [(name: String, count: Int64)] {
        var engine = self.limitsMet
        engine[.wakeBytesPerStreamMax] += self.dispatcher.timesStreamWasFull
        return self.meter.times(engine)
    }

    /// The bytes of pushes that may wait or be in flight.
    var pendingBytesMax: Int { self.configuration.pendingBytesMax }

    /// How long commits took; nothing was committed when nothing is kept.
    var commitTimes: CommitTimes { self.committer?.commitTimes ?? CommitTimes() }
}

// MARK: - Pushes

extension EngineCore {
    /// When to send a push again that found no room: for devices and topics somebody has to make it, memory is free
    /// again when wakes have ended.
    private static let retryAfterSeconds: (places: Int64, memory: Int64) = (300, 30)

    private func push(_ push: PushCommand, _ bytes: ByteView) {
        let topic = bytes[0..<Int(push.topicCount)]
        guard !self.isDraining else { return self.refuse(push, .shutdown, topic: topic) }
        let collapseIDEnd = Int(push.topicCount) + Int(push.collapseIDCount)
        let payloadEnd = collapseIDEnd + Int(push.payloadCount)
        let incoming = IncomingPush(
            apnsID: push.apnsID,
            isNamedByClient: push.isNamedByClient,
            priority: Priority(rawValue: push.priority) ?? .immediate,
            expiration: self.expiration(push.expiration),
            collapseID: bytes[Int(push.topicCount)..<collapseIDEnd],
            payload: bytes[collapseIDEnd..<payloadEnd],
            wakes: push.wakes,
            trace: bytes.dropFirst(payloadEnd)
        )
        switch self.dispatcher.push(incoming, token: push.token, topic: topic, isDryRun: push.isDryRun) {
        case .refused(let refusal): self.refuse(push, refusal, topic)
        case .answered(let answer):
            let reply = PushReply(
                address: push.reply,
                apnsID: push.apnsID,
                reason: PushReply.accepted,
                disposition: answer.disposition.rawValue,
                held: answer.held?.rawValue ?? PushReply.none,
                eligibleAt: answer.eligibleAt.map { self.offset.wallSecondsRoundedUp($0) } ?? PushReply.noMoment,
                timestamp: PushReply.noMoment
            )
            self.stage.group.effects[push.reply].append(reply)
        }
    }

    private func expiration(_ seconds: Int64) -> ArrivingPush.Expiration {
        switch seconds {
        case PushCommand.expirationAbsent: .absent
        case 0: .nowOrNever
        default: .at(self.offset.instant(wallSeconds: UInt64(seconds)))
        }
    }

    private func refuse(_ push: PushCommand, _ refusal: Refusal, _ topic: ByteView) {
        let reason: APNSReason
        var timestamp = PushReply.noMoment
        var retryAfterSeconds: Int64 = 0
        if let limit = refusal.limit, !push.isDryRun { self.limitMet(limit) }
        switch refusal {
        case .unknown: reason = .badDeviceToken
        case .unregistered(let moment):
            reason = .unregistered
            timestamp = self.offset.wall(moment)
        case .otherTopic: reason = .deviceTokenNotForTopic
        case .tooManyDevices, .tooManyDevicesOfTopic, .tooManyTopics:
            reason = .tooManyRequests
            retryAfterSeconds = Self.retryAfterSeconds.places
        case .noMemoryForTopic:
            reason = .tooManyRequests
            retryAfterSeconds = Self.retryAfterSeconds.memory
        case .noMemory:
            reason = .serviceUnavailable
            retryAfterSeconds = Self.retryAfterSeconds.memory
        case .tooMany(let end):
            reason = .tooManyRequests
            retryAfterSeconds = max(1, (end.milliseconds - self.engine.now.milliseconds + 999) / 1000)
        }
        self.refuse(push, reason, topic: topic, timestamp: timestamp, retryAfterSeconds: retryAfterSeconds)
    }

    private func refuse(
        _ push: PushCommand,
        _ reason: APNSReason,
        topic: ByteView,
        timestamp: Int64 = PushReply.noMoment,
        retryAfterSeconds: Int64 = 0
    ) {
        if !push.isDryRun { self.countRejected(reason.index, topic) }
        let reply = PushReply(
            address: push.reply,
            apnsID: push.apnsID,
            reason: UInt8(reason.index),
            disposition: PushReply.none,
            held: PushReply.none,
            retryAfterSeconds: UInt32(clamping: retryAfterSeconds),
            eligibleAt: PushReply.noMoment,
            timestamp: timestamp
        )
        self.stage.group.effects[push.reply].append(reply)
    }

    func countRejected(_ reason: Int, _ topic: ByteView) {
        self.rejections.count(reason, self.engine.findTopic(topic))
    }
}
