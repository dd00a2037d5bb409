package import Engine
import Platform
package import Policy
import Storage
package import Wire

/// Makes groups durable on a separate thread.
///
/// While the thread syncs one group, the engine collects the next, so one sync covers everything that arrived during
/// the previous one. If the store is idle, a group is committed immediately. While pushes arrive fast, it first waits
/// for the end of a batching window (`CommitBatching`).
///
/// The class is `@unchecked Sendable`: `monitor` guards every field that changes. Only the pipeline's thread uses the
/// store, until a commit fails and the engine takes the store.
package final class CommitPipeline: Committer, @unchecked Sendable {
    private let store: any RecordStore
    private let output: GroupOutput
    /// Wakes the engine.
    private let signal: @Sendable () -> Void
    private let monitor = Monitor()
    private var group: StepGroup
    private var status = CommitStatus.idle
    /// True if the engine must be woken when the store is idle, because the engine has a group to commit.
    private var signalsWhenIdle = false
    /// True if the engine must be woken when the current group is durable, because the engine then has effects to
    /// release.
    private var signalsWhenDurable = false
    private var isClosed = false
    private var hasEnded = false
    private var times = CommitTimes()
    private var batching: CommitBatching

    /// - `batching`: decides when commits begin.
    /// - Throws: `StoreError` if the system cannot create its thread.
    package init(
        store: any RecordStore,
        output: GroupOutput,
        batching: CommitBatching = CommitBatching(),
        signal: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        self.batching = batching
        self.store = store
        self.output = output
        self.signal = signal
        self.group = output.makeGroup()
        do throws(ThreadFailure) {
            try NamedThread("store") { self.run() }
        } catch {
            throw StoreError(message: error.message)
        }
    }

    package func status(of group: StepGroup, waitingFor awaited: AwaitedEvent) -> CommitStatus {
        let status = self.monitor.withLock {
            self.batching.collected(group.pushCount, endsBatch: group.endsBatch)
            var status = self.status
            if case .idle = status, SystemClock.monotonicMicroseconds < self.batching.nextMayBegin {
                status = .batching
            }
            switch (status, awaited) {
            case (.busy, .release): self.signalsWhenDurable = true
            case (.busy, .commit), (.batching, .commit): self.signalsWhenIdle = true
            case _: break
            }
            return status
        }
        // A store can also fail between two commits, if its files disappear. The check is outside the lock. Meanwhile
        // an idle pipeline stays idle, because only the engine submits groups.
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
            self.signalsWhenIdle = false
            self.signalsWhenDurable = false
            self.batching.begun()
            self.monitor.broadcast()
        }
    }

    package func waitUntilIdle() -> CommitStatus {
        self.monitor.withLock {
            while case .busy = self.status { self.monitor.wait() }
            self.batching.endBatch()
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
            case .signal: self.signal()
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
            // A group without records only had to wait for earlier groups.
            if !self.group.records.isEmpty { try self.commit() }
            self.output.release(self.group)
        } catch {
            status = .failed(error)
        }
        self.monitor.withLock {
            self.status = status
            if case .failed = status { self.signalsWhenDurable = true }
            self.monitor.broadcast()
        }
    }

    private func commit() throws(StoreError) {
        let start = SystemClock.monotonicMicroseconds
        try self.store.commit(self.group.records)
        let end = SystemClock.monotonicMicroseconds
        self.monitor.withLock {
            let pushes = self.times.committed(self.group.arrivals, from: start, to: end)
            self.batching.committed(pushes, from: start, to: end)
        }
    }

    private enum Turn {
        case commit
        /// Wake the engine, which waited for this state of the store.
        case signal
    }

    /// - Returns: nil when the pipeline is closed and has no group to commit.
    private func waitForTurn() -> Turn? {
        self.monitor.withLock {
            while true {
                if case .busy = self.status { return .commit }
                if self.isClosed { return nil }
                let now = SystemClock.monotonicMicroseconds
                if self.signalsWhenDurable || self.signalsWhenIdle && now >= self.batching.nextMayBegin {
                    self.signalsWhenDurable = false
                    self.signalsWhenIdle = false
                    return .signal
                }
                // The engine may release its group without a commit, and then collect another group in the same window.
                if now < self.batching.batchEnd {
                    _ = self.monitor.wait(untilNanoseconds: self.batching.batchEnd * 1_000)
                } else {
                    self.monitor.wait()
                }
            }
        }
    }
}

/// Makes groups durable one at a time, and then releases their effects.
///
/// While one group is being committed, the engine collects the next.
package protocol Committer: AnyObject {
    /// Returns the state of the store.
    ///
    /// - Parameters:
    ///   - group: the group collected for the next commit.
    ///   - awaited: the event that the group waits for. The committer wakes the engine after this event and after any
    ///     failure.
    func status(of group: StepGroup, waitingFor awaited: AwaitedEvent) -> CommitStatus

    /// The durations of commits so far.
    var commitTimes: CommitTimes { get }

    /// Takes ownership of a group and replaces it with an empty one. The store must be idle.
    func submit(_ group: inout StepGroup)

    /// Waits until no commit is in progress, and ends any batching window.
    func waitUntilIdle() -> CommitStatus

    /// Returns the failed store, from which the durable state can be read. Also exchanges the empty `group` for the
    /// failed group, whose requests the caller must refuse.
    func takeFailure(_ group: inout StepGroup) -> any RecordStore

    /// Commits every submitted group, and then stops.
    func stop()
}

/// The event that a group waits for.
package enum AwaitedEvent {
    case nothing
    /// The previous group is durable. This group has nothing to commit.
    case release
    case commit
}

/// The state of a store.
package enum CommitStatus {
    case idle, busy
    /// No commit is in progress, and the batching window has not ended.
    case batching
    /// A commit failed. The store accepts no more commits.
    case failed(StoreError)
}

/// A function that creates the committer of a store. The committer passes durable groups to `output`, and calls
/// `signal` to wake the engine.
package typealias CommitterMaker = (
    _ store: any RecordStore, _ output: GroupOutput, _ signal: @escaping @Sendable () -> Void
) throws(StoreError) -> any Committer

/// The records of one commit, and the effects that are released when the records are durable.
///
/// The class is `@unchecked Sendable`: a group has one owner at a time, and changes owners under the lock of
/// `CommitPipeline`.
package final class StepGroup: @unchecked Sendable {
    package internal(set) var records = RecordBatch()
    var effects: PerOutput<EffectBatch>
    /// The arrival times of the pushes that wait for this group's commit.
    private(set) var arrivals: [PushArrival] = []
    /// The number of pushes that wait for this group's commit.
    private(set) var pushCount: Int64 = 0
    /// True if a push of a quiet topic is among these pushes.
    private(set) var endsBatch = false
    /// True if the effects contain a long list. A group holds at most one.
    var hasLongList = false
    /// The events for the history.
    var history = HistoryBatch()
    /// The events for operators who follow them.
    var watched = WatchedEvents()

    init(loopCount: Int) {
        self.effects = PerOutput(loops: (0..<loopCount).map { _ in EffectBatch() }, webhooks: EffectBatch())
    }

    /// Adds pushes that wait for this group's commit.
    ///
    /// - `endsBatch`: true if a push of a quiet topic is among them.
    func append(_ arrivals: [PushArrival], endsBatch: Bool) {
        for arrival in arrivals { self.pushCount += arrival.count }
        self.arrivals += arrivals
        self.endsBatch = self.endsBatch || endsBatch
    }

    /// Records the time at which a push of the group left its loop, in microseconds of the monotonic clock.
    func note(leftAt: Int64) {
        if let last = self.arrivals.last, last.at == leftAt {
            self.arrivals[self.arrivals.count - 1] = PushArrival(at: leftAt, count: last.count + 1)
        } else {
            self.arrivals.append(PushArrival(at: leftAt, count: 1))
        }
        self.pushCount += 1
    }

    /// Clears the arrival times.
    func forgetArrivals() {
        self.arrivals.removeAll(keepingCapacity: true)
        self.pushCount = 0
        self.endsBatch = false
    }

    var isEmpty: Bool {
        self.records.isEmpty && self.history.isEmpty && self.watched.isEmpty
            && self.effects.loops.allSatisfy { $0.isEmpty }
            && self.effects.webhooks.isEmpty
    }
}

/// The destinations of a durable group. Effects go to the loops and webhooks; events go to the history and to the
/// operators who follow them.
package struct GroupOutput: Sendable {
    package let mailboxes: PerOutput<LoopMailbox>
    package let history: any HistoryOutput
    /// The service for operators who follow events.
    package let events: EventService

    package init(mailboxes: PerOutput<LoopMailbox>, history: any HistoryOutput, events: EventService = EventService()) {
        self.mailboxes = mailboxes
        self.history = history
        self.events = events
    }

    package func makeGroup() -> StepGroup { StepGroup(loopCount: self.mailboxes.loops.count) }

    /// Releases everything in a group and empties it.
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

/// Support for transactions of a shared store.
extension StepGroup {
    /// Discards all contents without releasing them.
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

/// Collects the effects of steps for the loops, the webhooks and the history until they are durable.
package final class EffectStage: DispatchOutput {
    /// The effects that the next commit will release.
    package var group: StepGroup
    /// The difference between wall clock and policy time.
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

    /// Passes a question to the history, which answers it after recording all earlier events.
    package func ask(_ question: HistoryQuestion) {
        self.group.history.questions.append(question)
    }

    /// Begins a stream.
    package func subscribed(_ address: StreamAddress, _ warning: SubscriptionWarning?) {
        self.group.effects[address].append(.subscribed(address, warning))
    }

    /// Notifies all outputs that nothing more is launched.
    package func draining() {
        for effects in self.group.effects.loops { effects.append(.draining) }
        self.group.effects.webhooks.append(.draining)
    }

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.group.effects[stream].appendWake(wake, self.offset, to: stream)
    }

    package func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64) {
        let wall = self.offset.wall(deadline)
        self.group.effects[stream].append(.expiring(stream, wake, deadline: wall, timeLeft: timeLeft))
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.group.effects[stream].append(.expired(stream, wake, reason))
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.group.effects[stream].append(.conditions(stream, token, conditions))
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(wake, from: stream)
    }

    package func drained(_ stream: StreamAddress) {
        self.group.effects[stream].append(.drained(stream))
    }
}
