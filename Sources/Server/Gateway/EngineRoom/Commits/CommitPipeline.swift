package import Engine
import Platform

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
