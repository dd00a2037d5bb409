package import Engine
import Platform
import Wire

/// Makes groups durable on a thread of its own.
///
/// While it syncs one group, the engine steps on and collects the next: one sync covers all that arrived during the
/// last one, and a group that finds the store idle waits for nobody. After a commit of several pushes the store rests
/// for a moment, so that the next one takes as many (`CommitPace`).
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

    /// - `pace`: what the last commit leaves to wait for.
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
            self.pace.committed(pushes, from: start)
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

/// The rest of the store between two commits, so that each has many pushes.
///
/// Without a rest a commit has the pushes that came during the last one. Where syncs are short that is a handful, and
/// most of what a push costs is its part of a commit: calls of the system, and threads that wake for it. So after a
/// commit of several pushes the store rests until as many wait, at most until a millisecond has passed since that
/// commit began. A push that comes alone has its commit to itself, and senders that wait for their answers end the
/// rest as they come again.
///
/// Times are in microseconds of any clock that never goes back.
package struct CommitPace {
    /// The longest time between the beginnings of two commits that the store rests for.
    package static let intervalMax: Int64 = 1_000

    /// When the rest after the last commit is over, if it is not before.
    package private(set) var restEnd = Int64.min
    /// The pushes with which it is over.
    private var restPushes: Int64 = 0
    /// The pushes that wait for the next commit.
    private var waiting: Int64 = 0

    package init() {}

    /// When the next commit may begin; long ago when it may at once.
    package var nextMayBegin: Int64 { self.waiting >= self.restPushes ? .min : self.restEnd }

    /// So many pushes wait for the next commit.
    package mutating func collected(_ pushes: Int64) { self.waiting = pushes }

    /// A commit of everything that waits begins.
    package mutating func begun() { self.waiting = 0 }

    /// The rest is over, whatever waits.
    package mutating func endRest() { self.restEnd = .min }

    /// A commit that began at `start` has made so many pushes durable.
    package mutating func committed(_ pushes: Int64, from start: Int64) {
        // What has no push in it does not wait behind one that came alone.
        self.restEnd = pushes > 1 ? start + Self.intervalMax : .min
        self.restPushes = pushes
    }
}
