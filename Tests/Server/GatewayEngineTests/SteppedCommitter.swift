import Engine
import Foundation
import Gateway
import Storage
import Synchronization
import WakeGateTestKit

/// Commits when the test says so, on its thread.
final class SteppedCommitter: Committer {
    private let store: any RecordStore
    private let outlet: GroupOutlet
    private var group: StepGroup
    private var status = CommitStatus.idle
    let commitTimes = CommitTimes()
    /// What the group under way may let out, and nobody has heard of.
    private(set) var isBusy = false

    init(_ store: any RecordStore, _ outlet: GroupOutlet) {
        self.store = store
        self.outlet = outlet
        self.group = outlet.makeGroup()
    }

    /// Whether it rests while it is idle.
    var isResting = false

    /// Whether a commit has failed.
    var hasFailed: Bool { if case .failed = self.status { true } else { false } }

    func status(of _: StepGroup, waitingFor _: CommitWish) -> CommitStatus {
        if case .idle = self.status, self.isResting { .resting } else { self.status }
    }

    func submit(_ group: inout StepGroup) {
        swap(&self.group, &group)
        self.status = .busy
        self.isBusy = true
    }

    func waitUntilIdle() -> CommitStatus {
        self.isResting = false
        self.commit()
        return self.status
    }

    func takeFailure(_ group: inout StepGroup) -> any RecordStore {
        swap(&self.group, &group)
        return self.store
    }

    func stop() { self.commit() }

    /// Commits the group under way, if there is one.
    func commit() {
        guard self.isBusy else { return }
        self.isBusy = false
        do throws(StoreError) {
            if !self.group.records.isEmpty { try self.store.commit(self.group.records) }
            self.outlet.release(self.group)
            self.status = .idle
        } catch {
            self.status = .failed(error)
        }
    }
}

/// Keeps the history on the thread of the test, and makes it durable at every second batch.
///
/// `@unchecked Sendable`: one thread uses it.
final class SteppedHistory: HistoryOutlet, @unchecked Sendable {
    private let medium: any SimulatedMedium
    private let mailboxes: PerOutlet<LoopMailbox>
    private var feed: HistoryFeed?
    private var file: HistoryFile?
    private var batches = 0
    /// What the history lacks for good, in words.
    private(set) var faults: [String] = []

    init(_ medium: any SimulatedMedium, _ mailboxes: PerOutlet<LoopMailbox>) {
        self.medium = medium
        self.mailboxes = mailboxes
    }

    func open() {
        let file =
            self.medium.openHistory()
            ?? HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        self.medium.retention.advance(to: file.durableSequence)
        self.file = file
        self.feed = HistoryFeed(file, self.medium.retention, nil) { [weak self] in self?.faults.append($0) }
    }

    func waitUntilOpened() -> HistoryFound? { self.file?.found }

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

/// Where the commits of a store wait until a test lets them go on.
///
/// `@unchecked Sendable`: `condition` guards every field.
final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isClosed = false
    /// How many commits have come to the gate.
    private var arrivals = 0
    /// How many of them have gone on.
    private var departures = 0

    /// The next commit stops here.
    func close() {
        self.condition.withLock { self.isClosed = true }
    }

    func open() {
        self.condition.withLock {
            self.isClosed = false
            self.condition.broadcast()
        }
    }

    /// Called by a commit, between writing and syncing.
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

    /// A commit stands at the gate.
    var isOccupied: Bool { self.condition.withLock { self.arrivals > self.departures } }
}

/// What a test waited for and did not get.
struct RigFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// What wakes the thread of a test: the store is done, or something was let out.
///
/// `@unchecked Sendable`: `condition` guards every field.
final class Bell: @unchecked Sendable {
    private let condition = NSCondition()
    private var isRung = false
    private var isDelivered = false
    private var droppedEventsCount = 0
    private var failureTexts: [String] = []

    /// The engine is to be stepped.
    func ring() { self.change { $0.isRung = true } }

    /// Something lies in the mailbox of the loop.
    func deliver() { self.change { $0.isDelivered = true } }

    /// The history dropped events.
    func drop(_ count: Int) { self.change { $0.droppedEventsCount += count } }

    /// The engine said that its store has failed.
    func fail(_ message: String) { self.change { $0.failureTexts.append(message) } }

    /// How many events the history dropped.
    var droppedEvents: Int { self.condition.withLock { self.droppedEventsCount } }

    /// What the engine said of its store, once for each time it said so.
    var failures: [String] { self.condition.withLock { self.failureTexts } }

    /// Waits until something happens.
    ///
    /// - Returns: whether the engine is to be stepped; nil when nothing happened until `limit`.
    func wait(until limit: Date) -> Bool? {
        self.condition.withLock {
            while !self.isRung, !self.isDelivered {
                guard self.condition.wait(until: limit) else { return nil }
            }
            defer { (self.isRung, self.isDelivered) = (false, false) }
            return self.isRung
        }
    }

    private func change(_ body: (Bell) -> Void) {
        self.condition.withLock {
            body(self)
            self.condition.broadcast()
        }
    }
}

/// Clocks that a test moves, and an engine reads through closures that any thread may call.
final class SharedClock: Sendable {
    private let clock: Mutex<VirtualClock>

    init(boot: Int64, wall: Int64) {
        self.clock = Mutex(VirtualClock(boot: boot, wall: wall))
    }

    var now: VirtualClock { self.clock.withLock { $0 } }

    func change(_ change: (inout VirtualClock) -> Void) { self.clock.withLock { change(&$0) } }
}

extension EngineWorld {
    /// A world with these clocks, in which nothing is left to chance: each sequence goes on from a seed of its own.
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
