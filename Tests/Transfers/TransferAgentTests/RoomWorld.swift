import Foundation
import Platform
import ServiceManager
import Storage
import Synchronization
import TransferAgent
import WakeGateTestKit
import Wire

/// The world of a room in a test: its clocks move when the test has them move, attempts say what the test has them say,
/// and the disk may fail.
final class RoomWorld: AgentWorld {
    /// An attempt that was begun and has not ended.
    struct Attempt {
        let number: Int
        let plan: AttemptPlan
        let gauge: AttemptGauge
        let report: @Sendable (AttemptNews) -> Void
    }

    /// What the gateway is being told.
    struct Sending {
        let entry: OutboxEntry
        let report: @Sendable (OutboxSender.Outcome) -> Void
    }

    /// What becomes of the next commit.
    enum CommitFault {
        case none
        /// The commit fails, and the next one does not.
        case once
        /// The process ends before it, or after it.
        case deathBefore, deathAfter
    }

    var clock = VirtualClock(boot: 5_000_000, wall: 1_790_000_000_000)
    var generator: SeededGenerator
    var store: TransferStore?
    var fault = CommitFault.none
    /// Returns true if the disk is full now.
    var isDiskFull: () -> Bool = { false }
    /// Whether the process has ended: nothing that it does counts any more.
    private(set) var isDead = false
    private(set) var attempts: [Attempt] = []
    private(set) var sendings: [Sending] = []
    private(set) var moves: [@Sendable () -> Bool] = []
    private(set) var commitCount = 0
    /// How often a transfer that was there before was stored.
    private(set) var updateCount = 0
    private var nextNumber = 0

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
    }

    var wall: Int64 { self.clock.wall }
    var boot: Int64 { self.clock.boot }

    func random() -> UInt64 { self.generator.next() }

    func commit(_ writes: [StoreWrite]) throws(SQLiteError) {
        let failure = SQLiteError(kind: .full, code: 13, message: "the disk of the test is full")
        let death = SQLiteError(kind: .io, code: 10, message: "the process of the test has ended")
        guard !self.isDead else { throw death }
        if self.isDiskFull() { throw failure }
        let fault = self.fault
        self.fault = .none
        switch fault {
        case .none: try self.store?.commit(writes)
        case .once: throw failure
        case .deathBefore:
            self.isDead = true
            throw death
        case .deathAfter:
            try self.store?.commit(writes)
            self.isDead = true
            throw death
        }
        self.commitCount += 1
        self.updateCount += writes.count { if case .updateTransfer = $0 { true } else { false } }
    }

    func begin(_ plan: AttemptPlan, _ report: @escaping @Sendable (AttemptNews) -> Void) -> AttemptHandle {
        let gauge = AttemptGauge()
        self.nextNumber += 1
        let number = self.nextNumber
        if !self.isDead {
            self.attempts.append(Attempt(number: number, plan: plan, gauge: gauge, report: report))
        }
        return AttemptHandle(plan: plan, gauge: gauge) { [weak self] in self?.end(number) }
    }

    /// An attempt has ended, or is stopped.
    func end(_ number: Int) {
        self.attempts.removeAll { $0.number == number }
    }

    func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxSender.Outcome) -> Void) {
        if !self.isDead { self.sendings.append(Sending(entry: entry, report: report)) }
    }

    /// What the gateway was told last, which is answered by whoever takes it.
    func takeSending(at index: Int = 0) -> Sending { self.sendings.remove(at: index) }

    func move(_ step: @escaping @Sendable () -> Bool) {
        if !self.isDead { self.moves.append(step) }
    }

    /// Does the first piece of work that waits for the disk.
    func doMove() {
        guard !self.moves.isEmpty else { return }
        let step = self.moves.removeFirst()
        while step() {}
    }

    /// Another process begins; what the one before was about is no more.
    func liveAgain() {
        self.isDead = false
        self.fault = .none
        self.attempts.removeAll()
        self.sendings.removeAll()
        self.moves.removeAll()
    }
}

/// A log that nobody reads.
struct SilentLog: LogSink {
    func write(_ line: LogLine, _ format: LogFormat) -> Bool { true }
}

/// Messages for a room, from whoever has some.
final class RoomInbox: Sendable {
    private let messages = Mutex<[AgentMessage]>([])

    func leave(_ message: AgentMessage) { self.messages.withLock { $0.append(message) } }

    func take() -> [AgentMessage] {
        self.messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }
}

extension JSONValue {
    var word: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    var number: Int64? {
        if case .number(let number) = self { return Int64(number.text) }
        return nil
    }

    var list: [JSONValue] {
        if case .array(let values) = self { return values }
        return []
    }
}
