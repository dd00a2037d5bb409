import Engine
import Foundation
import Gateway
import Storage
import Synchronization
import WakeGateTestKit

/// Commits on command, on the test's thread.
final class SteppedCommitter: Committer {
    private let store: any RecordStore
    private let output: GroupOutput
    private var group: StepGroup
    private var status = CommitStatus.idle
    let commitTimes = CommitTimes()
    /// True while a group is submitted and its effects are not released.
    private(set) var isBusy = false

    init(_ store: any RecordStore, _ output: GroupOutput) {
        self.store = store
        self.output = output
        self.group = output.makeGroup()
    }

    /// True if it rests while it is idle.
    var isBatching = false

    /// True if a commit has failed.
    var hasFailed: Bool { if case .failed = self.status { true } else { false } }

    func status(of _: StepGroup, waitingFor _: AwaitedEvent) -> CommitStatus {
        if case .idle = self.status, self.isBatching { .batching } else { self.status }
    }

    func submit(_ group: inout StepGroup) {
        swap(&self.group, &group)
        self.status = .busy
        self.isBusy = true
    }

    func waitUntilIdle() -> CommitStatus {
        self.isBatching = false
        self.commit()
        return self.status
    }

    func takeFailure(_ group: inout StepGroup) -> any RecordStore {
        swap(&self.group, &group)
        return self.store
    }

    func stop() { self.commit() }

    /// Commits the submitted group, if there is one.
    func commit() {
        guard self.isBusy else { return }
        self.isBusy = false
        do throws(StoreError) {
            if !self.group.records.isEmpty { try self.store.commit(self.group.records) }
            self.output.release(self.group)
            self.status = .idle
        } catch {
            self.status = .failed(error)
        }
    }
}

/// Keeps the history on the test's thread, and makes it durable at every second batch.
///
/// The class is `@unchecked Sendable`, because only one thread uses it.
final class SteppedHistory: HistoryOutput, @unchecked Sendable {
    private let medium: any SimulatedMedium
    private let mailboxes: PerOutput<LoopMailbox>
    private var feed: HistoryFeed?
    private var file: HistoryFile?
    private var batches = 0

    init(_ medium: any SimulatedMedium, _ mailboxes: PerOutput<LoopMailbox>) {
        self.medium = medium
        self.mailboxes = mailboxes
    }

    func open() {
        let file =
            self.medium.openHistory()
            ?? HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        self.medium.retention.advance(to: file.durableSequence)
        self.file = file
        self.feed = HistoryFeed(file, self.medium.retention, nil) { _ in }
    }

    func waitUntilOpened() -> OpenedHistory? { self.file?.found }

    func submit(_ batch: inout HistoryBatch) {
        guard let feed = self.feed, let file = self.file else { return }
        feed.take(batch)
        for question in batch.questions { question.answer(from: file, self.mailboxes) }
        batch.removeAll()
        self.batches += 1
        feed.flush()
        if self.batches.isMultiple(of: 2) { feed.sync() }
    }
}

/// A gate at which the commits of a store wait until a test opens it.
///
/// The class is `@unchecked Sendable`: `condition` guards every field.
final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isClosed = false
    /// The number of commits that have reached the gate.
    private var arrivals = 0
    /// The number of commits that have passed it.
    private var departures = 0

    /// Makes the next commit wait here.
    func close() {
        self.condition.withLock { self.isClosed = true }
    }

    func open() {
        self.condition.withLock {
            self.isClosed = false
            self.condition.broadcast()
        }
    }

    /// Called by a commit between writing and syncing.
    ///
    /// - Parameter onArrival: called before it waits.
    func pass(_ onArrival: () -> Void) {
        self.condition.withLock { self.arrivals += 1 }
        onArrival()
        self.condition.withLock {
            while self.isClosed { self.condition.wait() }
            self.departures += 1
        }
    }

    /// True if a commit is waiting at the gate.
    var isOccupied: Bool { self.condition.withLock { self.arrivals > self.departures } }
}

/// The failure of a test that waited in vain.
struct RigFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A wakeup for the test's thread: the store has finished, or effects were released.
///
/// The class is `@unchecked Sendable`: `condition` guards every field.
final class Wakeup: @unchecked Sendable {
    private let condition = NSCondition()
    private var isSignaled = false
    private var isDelivered = false
    private var failureTexts: [String] = []

    /// Signals that the engine needs a step.
    func signal() { self.change { $0.isSignaled = true } }

    /// Signals that the mailbox of the loop has contents.
    func deliver() { self.change { $0.isDelivered = true } }

    /// Records that the engine reported a failure of its store.
    func fail(_ message: String) { self.change { $0.failureTexts.append(message) } }

    /// The reports of the engine about its store, one per report.
    var failures: [String] { self.condition.withLock { self.failureTexts } }

    /// Waits for a signal.
    ///
    /// - Returns: true if the engine needs a step; nil if there was no signal until `limit`.
    func wait(until limit: Date) -> Bool? {
        self.condition.withLock {
            while !self.isSignaled, !self.isDelivered {
                guard self.condition.wait(until: limit) else { return nil }
            }
            defer { (self.isSignaled, self.isDelivered) = (false, false) }
            return self.isSignaled
        }
    }

    private func change(_ body: (Wakeup) -> Void) {
        self.condition.withLock {
            body(self)
            self.condition.broadcast()
        }
    }
}

/// Clocks that a test controls. An engine reads them through closures that any thread may call.
final class SharedClock: Sendable {
    private let clock: Mutex<VirtualClock>

    init(boot: Int64, wall: Int64) {
        self.clock = Mutex(VirtualClock(boot: boot, wall: wall))
    }

    var now: VirtualClock { self.clock.withLock { $0 } }

    func change(_ change: (inout VirtualClock) -> Void) { self.clock.withLock { change(&$0) } }
}

extension EngineWorld {
    /// Creates a world with these clocks and without randomness: each sequence continues from a separate seed.
    init(_ clock: SharedClock, seed: UInt64, bootID: BootID? = nil) {
        let sequences = Mutex(seed)
        self.init(
            wall: { clock.now.wall },
            boot: { clock.now.boot },
            monotonic: { clock.now.boot },
            bootID: bootID,
            makeRandom: {
                let seed = sequences.withLock { seed in
                    defer { seed &+= 0x9E37_79B9_7F4A_7C15 }
                    return seed
                }
                var generator = SeededGenerator(seed: seed)
                return { (generator.next(), generator.next()) }
            }
        )
    }
}
