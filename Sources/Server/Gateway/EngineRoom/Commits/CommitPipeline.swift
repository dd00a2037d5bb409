package import Engine
import Platform
package import Policy
import Storage
package import Wire

/// Makes groups durable on a thread of its own.
///
/// While it syncs one group, the engine steps on and collects the next: one sync covers all that arrived during the
/// last one, and a group that finds the store idle waits for nobody. While pushes come fast, the store rests before the
/// next group (`CommitPace`).
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field that changes; the store is used by the
/// pipeline's thread alone, until the engine takes over a failure.
package final class CommitPipeline: Committer, @unchecked Sendable {
    private let store: any RecordStore
    private let outlet: GroupOutlet
    /// Wakes the engine.
    private let ring: @Sendable () -> Void
    private let monitor = Monitor()
    private var group: StepGroup
    private var status = CommitStatus.idle
    /// The engine has something for the store.
    private var ringsWhenIdle = false
    /// The engine has something to let out behind the group that is being committed.
    private var ringsWhenDurable = false
    private var isClosed = false
    private var hasEnded = false
    private var times = CommitTimes()
    private var pace: CommitPace

    /// - Throws: `StoreError` when the system has no room for its thread.
    package convenience init(
        store: any RecordStore,
        outlet: GroupOutlet,
        ring: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        try self.init(store: store, outlet: outlet, pace: CommitPace(), ring: ring)
    }

    /// - `pace`: what is known of how fast pushes come.
    /// - Throws: `StoreError` when the system has no room for its thread.
    package init(
        store: any RecordStore,
        outlet: GroupOutlet,
        pace: CommitPace,
        ring: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        self.pace = pace
        self.store = store
        self.outlet = outlet
        self.ring = ring
        self.group = outlet.makeGroup()
        do throws(ThreadFailure) {
            try NamedThread("store") { self.run() }
        } catch {
            throw StoreError(message: error.message)
        }
    }

    package func status(of group: StepGroup, waitingFor wish: CommitWish) -> CommitStatus {
        let status = self.monitor.withLock {
            self.pace.collected(group.pushCount)
            var status = self.status
            if case .idle = status, SystemClock.monotonicMicroseconds < self.pace.nextMayBegin { status = .resting }
            switch (status, wish) {
            case (.busy, .release): self.ringsWhenDurable = true
            case (.busy, .commit), (.resting, .commit): self.ringsWhenIdle = true
            case _: break
            }
            return status
        }
        // A store may fail between two commits, too: its files were taken away. It is asked outside the lock, and an
        // idle pipeline stays so, since nobody else submits.
        guard case .idle = status, let failure = self.store.failure else { return status }
        return self.monitor.withLock {
            self.status = .failed(failure)
            return self.status
        }
    }

    package var commitTimes: CommitTimes { self.monitor.withLock { self.times } }

    package func submit(_ group: inout StepGroup) {
        self.monitor.withLock {
            swap(&self.group, &group)
            self.status = .busy
            self.ringsWhenIdle = false
            self.ringsWhenDurable = false
            self.pace.begun()
            self.monitor.broadcast()
        }
    }

    package func waitUntilIdle() -> CommitStatus {
        self.monitor.withLock {
            while case .busy = self.status { self.monitor.wait() }
            self.pace.endRest()
            return self.status
        }
    }

    package func takeFailure(_ group: inout StepGroup) -> any RecordStore {
        self.monitor.withLock {
            swap(&self.group, &group)
            return self.store
        }
    }

    package func stop() {
        self.monitor.withLock {
            self.isClosed = true
            self.monitor.broadcast()
            while !self.hasEnded { self.monitor.wait() }
        }
    }

    private func run() {
        while let turn = self.waitForTurn() {
            switch turn {
            case .ring: self.ring()
            case .commit: self.commitGroup()
            }
        }
        self.monitor.withLock {
            self.hasEnded = true
            self.monitor.broadcast()
        }
    }

    private func commitGroup() {
        var status = CommitStatus.idle
        do throws(StoreError) {
            // A group without records waits only for its place behind the one before it.
            if !self.group.records.isEmpty { try self.commit() }
            self.outlet.release(self.group)
        } catch {
            status = .failed(error)
        }
        self.monitor.withLock {
            self.status = status
            if case .failed = status { self.ringsWhenDurable = true }
            self.monitor.broadcast()
        }
    }

    private func commit() throws(StoreError) {
        let start = SystemClock.monotonicMicroseconds
        try self.store.commit(self.group.records)
        let end = SystemClock.monotonicMicroseconds
        self.monitor.withLock {
            let pushes = self.times.committed(self.group.arrivals, from: start, to: end)
            self.pace.committed(pushes, from: start, to: end)
        }
    }

    private enum Turn {
        case commit
        /// The engine need not wait any longer.
        case ring
    }

    /// - Returns: nil once there is nothing more to do.
    private func waitForTurn() -> Turn? {
        self.monitor.withLock {
            while true {
                if case .busy = self.status { return .commit }
                if self.isClosed { return nil }
                let now = SystemClock.monotonicMicroseconds
                if self.ringsWhenDurable || self.ringsWhenIdle && now >= self.pace.nextMayBegin {
                    self.ringsWhenDurable = false
                    self.ringsWhenIdle = false
                    return .ring
                }
                // What waits may be let out without a commit, and something else come for which the store rests.
                if now < self.pace.restEnd {
                    _ = self.monitor.wait(untilNanoseconds: self.pace.restEnd * 1_000)
                } else {
                    self.monitor.wait()
                }
            }
        }
    }
}

/// Makes groups durable, one at a time, and lets out what they have to tell.
///
/// While a group is being committed, the engine steps on and collects the next.
package protocol Committer: AnyObject {
    /// What the store is at.
    ///
    /// - Parameters:
    ///   - group: what is collected for the next commit.
    ///   - wish: what that waits for; where it has to, the engine is woken when it need not wait any longer. After a
    ///     failure the engine always is.
    func status(of group: StepGroup, waitingFor wish: CommitWish) -> CommitStatus

    /// How long commits took until now.
    var commitTimes: CommitTimes { get }

    /// Takes a group over, and gives an empty one for it. The store must be idle.
    func submit(_ group: inout StepGroup)

    /// Waits until nothing is being committed; the store does not rest.
    func waitUntilIdle() -> CommitStatus

    /// After a failure: the group that failed, to be refused, in exchange for an empty one; and the store, to be
    /// asked what is durable.
    func takeFailure(_ group: inout StepGroup) -> any RecordStore

    /// Ends once it has committed what it was given, and waits for that.
    func stop()
}

/// What a group waits for.
package enum CommitWish {
    case nothing
    /// To be let out behind the group before it; it has nothing to commit.
    case release
    case commit
}

/// What a store is at.
package enum CommitStatus {
    case idle, busy
    /// Nothing is being committed, and nothing is to be yet.
    case resting
    /// A commit failed; nothing is committed any more.
    case failed(StoreError)
}

/// Makes the committer of a store: groups leave by the outlet once they are durable, and the engine is woken with
/// `ring`.
package typealias CommitterMaker = (
    _ store: any RecordStore, _ outlet: GroupOutlet, _ ring: @escaping @Sendable () -> Void
) throws(StoreError) -> any Committer

/// Hands what steps have changed to the store, one group at a time, and what they have to tell to those whom it is for,
/// once it is durable.
package final class CommitDesk {
    /// Where the steps leave what they have to tell.
    package let stage: EffectStage
    private let outlet: GroupOutlet
    /// nil when nothing is kept.
    private let committer: (any Committer)?
    /// Numbers the records of events; nil when nothing is kept.
    private var numbers: EventNumbers?
    private let records: GatewayRecords

    package init(
        stage: EffectStage,
        outlet: GroupOutlet,
        committer: (any Committer)?,
        numbers: EventNumbers?,
        records: GatewayRecords
    ) {
        self.stage = stage
        self.outlet = outlet
        self.committer = committer
        self.numbers = numbers
        self.records = records
    }

    /// How long commits took; nothing was committed when nothing is kept.
    package var times: CommitTimes { self.committer?.commitTimes ?? CommitTimes() }

    /// Hands what changed to the store, if it is idle; what needs no commit is let out when none is under way.
    ///
    /// - Returns: why nothing can be stored any more; nil when everything can.
    package func flush(_ engine: EmbeddedEngine, _ clock: inout EngineClock) -> StoreError? {
        guard let committer = self.committer else {
            _ = engine.takeStep()
            self.release(engine, clock.offset)
            return nil
        }
        let monotonic = clock.monotonic
        let hasRecords = engine.hasChanges || engine.hasEvents || self.records.hasChanges(at: monotonic)
        let wish: CommitWish = hasRecords ? .commit : self.stage.group.isEmpty ? .nothing : .release
        switch committer.status(of: self.stage.group, waitingFor: wish) {
        case .busy: return nil
        case .failed(let error): return error
        case .resting where hasRecords: return nil
        case .idle, .resting:
            guard hasRecords else {
                self.release(engine, clock.offset)
                return nil
            }
            self.takeHistory(engine, clock.offset)
            self.numbers?.write(self.stage.group.history, to: &self.stage.group.records)
            let record = clock.record(at: engine.now)
            self.stage.group.records.append(RecordKey(.clock)) { record.store(to: &$0) }
            engine.takeStep(into: &self.stage.group.records)
            self.records.takeChanges(into: &self.stage.group.records, at: monotonic)
            committer.submit(&self.stage.group)
            return nil
        }
    }

    /// Lets out what waits, without a commit.
    package func release(_ engine: EmbeddedEngine, _ offset: WallOffset) {
        self.takeHistory(engine, offset)
        self.outlet.release(self.stage.group)
    }

    package func waitUntilIdle() { _ = self.committer?.waitUntilIdle() }

    /// Ends once everything is committed that was handed over.
    package func stop() { self.committer?.stop() }

    /// The commit that failed, whose effects nobody has heard of, and the store, to be asked what is durable; nil when
    /// nothing is kept.
    package func takeFailure() -> (group: StepGroup, store: any RecordStore)? {
        guard let committer = self.committer else { return nil }
        var failed = self.outlet.makeGroup()
        let store = committer.takeFailure(&failed)
        return (failed, store)
    }

    /// Refuses, once, everybody who waited for `failed` or for what was to come behind it.
    package func refuse(_ failed: StepGroup, _ cause: StoreError) {
        let error = APIError.storeFailed(cause)
        self.refuseEverything(of: failed, error)
        self.refuseEverything(of: self.stage.group, error)
        self.outlet.release(failed)
    }

    private func refuseEverything(of group: StepGroup, _ error: APIError) {
        for loop in group.effects.loops.indices { self.refuse(&group.effects.loops[loop], error) }
        self.refuse(&group.effects.webhooks, error)
        for question in group.history.questions { self.stage.answer(question.request.reply, .refused(error)) }
        group.history.removeAll()
        group.watched.removeAll()
        group.records.removeAll()
    }

    private func refuse(_ effects: inout EffectBatch, _ error: APIError) {
        var refusal = EffectRefusal(error)
        refusal.refuse(effects)
        effects = refusal.refused
        self.records.countRejected(APNSReason.serviceUnavailable.index, nil, by: refusal.pushCount)
    }

    private func takeHistory(_ engine: EmbeddedEngine, _ offset: WallOffset) {
        if engine.hasEvents { self.stage.group.history.offset = offset }
        engine.takeEvents(into: &self.stage.group.history.events)
        engine.takeWatched(into: &self.stage.group.watched)
    }
}

/// What leaves the engine together: the records of one commit, and everything that may be told once they are durable.
///
/// `@unchecked Sendable`: a group has one owner at a time, and changes owners under the lock of `CommitPipeline`.
package final class StepGroup: @unchecked Sendable {
    package internal(set) var records = RecordBatch()
    var effects: PerOutlet<EffectBatch>
    /// When the pushes came that wait for its commit.
    private(set) var arrivals: [PushArrival] = []
    /// How many these are.
    private(set) var pushCount: Int64 = 0
    /// Among the effects is a long list; there is room for no other one.
    var hasLongList = false
    /// What happened, for the history.
    var history = HistoryBatch()
    /// What happened, for those who follow it.
    var watched = WatchedEvents()

    init(loopCount: Int) {
        self.effects = PerOutlet(loops: (0..<loopCount).map { _ in EffectBatch() }, webhooks: EffectBatch())
    }

    /// More pushes wait for its commit.
    func append(_ arrivals: [PushArrival]) {
        for arrival in arrivals { self.pushCount += arrival.count }
        self.arrivals += arrivals
    }

    /// A push of the group left its loop at this moment, by the monotonic clock in microseconds.
    func note(leftAt: Int64) {
        if let last = self.arrivals.last, last.at == leftAt {
            self.arrivals[self.arrivals.count - 1] = PushArrival(at: leftAt, count: last.count + 1)
        } else {
            self.arrivals.append(PushArrival(at: leftAt, count: 1))
        }
        self.pushCount += 1
    }

    /// No push waits for its commit any more.
    func forgetArrivals() {
        self.arrivals.removeAll(keepingCapacity: true)
        self.pushCount = 0
    }

    var isEmpty: Bool {
        self.records.isEmpty && self.history.isEmpty && self.watched.isEmpty
            && self.effects.loops.allSatisfy { $0.isEmpty }
            && self.effects.webhooks.isEmpty
    }
}

/// Where a group goes once nothing of it can be lost: its effects to the loops and webhooks, what happened to the
/// history and to those who follow it.
package struct GroupOutlet: Sendable {
    package let mailboxes: PerOutlet<LoopMailbox>
    package let history: any HistoryOutlet
    /// Where those are who follow what happens.
    package let events: EventDesk

    package init(mailboxes: PerOutlet<LoopMailbox>, history: any HistoryOutlet, events: EventDesk = EventDesk()) {
        self.mailboxes = mailboxes
        self.history = history
        self.events = events
    }

    package func makeGroup() -> StepGroup { StepGroup(loopCount: self.mailboxes.loops.count) }

    /// Lets out everything of a group, which is empty afterwards.
    package func release(_ group: StepGroup) {
        for loop in self.mailboxes.loops.indices where !group.effects.loops[loop].isEmpty {
            self.mailboxes.loops[loop].deliver(&group.effects.loops[loop])
        }
        if !group.effects.webhooks.isEmpty { self.mailboxes.webhooks.deliver(&group.effects.webhooks) }
        if !group.history.isEmpty { self.history.submit(&group.history) }
        if !group.watched.isEmpty { self.events.take(&group.watched) }
        group.records.removeAll()
        group.forgetArrivals()
        group.hasLongList = false
    }
}

/// What transactions of a shared store do with groups.
extension StepGroup {
    /// Nothing of what it has is let out.
    func discard() {
        for effects in self.effects.loops where !effects.isEmpty { effects.removeAll() }
        if !self.effects.webhooks.isEmpty { self.effects.webhooks.removeAll() }
        self.history.removeAll()
        self.watched.removeAll()
        self.records.removeAll()
        self.forgetArrivals()
        self.hasLongList = false
    }
}

/// Collects what steps have for the loops, the webhooks and the history until it is durable.
package final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    package var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset

    package init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
    }

    package func answer(_ reply: PushReply) {
        self.group.effects[reply.address].append(reply)
    }

    package func answer(_ address: StreamAddress, _ outcome: Outcome) {
        self.group.effects[address].append(outcome, to: address)
    }

    /// The history answers, behind everything that happened until now.
    package func ask(_ question: HistoryQuestion) {
        self.group.history.questions.append(question)
    }

    /// A stream begins.
    package func subscribed(_ address: StreamAddress, _ warning: SubscriptionWarning?) {
        self.group.effects[address].appendSubscribed(address, warning)
    }

    /// Nothing is launched any more.
    package func draining() {
        for effects in self.group.effects.loops { effects.appendDraining() }
        self.group.effects.webhooks.appendDraining()
    }

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.group.effects[stream].appendWake(wake, self.offset, to: stream)
    }

    package func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64) {
        let wall = self.offset.wall(deadline)
        self.group.effects[stream].appendExpiring(wake, deadline: wall, timeLeft: timeLeft, on: stream)
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.group.effects[stream].appendExpired(wake, reason, on: stream)
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.group.effects[stream].append(conditions, of: token, to: stream)
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(wake, from: stream)
    }

    package func drained(_ stream: StreamAddress) {
        self.group.effects[stream].appendDrained(stream)
    }
}

/// Turns what a group had for one outlet into refusals: the group did not become durable.
///
/// Every request of the group has exactly one answer in it, so every request is refused once. Wakes, their ends and
/// changed conditions are dropped: as far as anybody will know, wakes were never launched, or are in flight still.
struct EffectRefusal {
    let refused = EffectBatch()
    /// How many accepted pushes are refused after all.
    private(set) var pushCount: Int64 = 0
    private let error: APIError

    init(_ error: APIError) {
        self.error = error
    }

    mutating func refuse(_ effects: EffectBatch) {
        effects.handOver { effect in
            switch effect {
            case .pushAnswer(let reply): self.refuse(reply)
            case .answer(let address, _), .subscribed(let address, _):
                self.refused.append(.refused(self.error), to: address)
            case .asked(let request): self.refused.append(.refused(self.error), to: request.reply)
            case .wake, .expiring, .expired, .released, .conditions, .drained: break
            case .draining: self.refused.appendDraining()
            }
        }
    }

    private mutating func refuse(_ reply: PushReply) {
        if reply.reason == nil { self.pushCount += 1 }
        self.refused.append(PushReply(reply.address, reply.apnsID, refused: .serviceUnavailable))
    }
}
