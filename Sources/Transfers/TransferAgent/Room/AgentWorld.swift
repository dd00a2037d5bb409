package import HTTPClient
import Platform
package import Storage
import Synchronization

/// What an agent's room does outside of itself, and where it reads the clocks; a test has a world of its own.
///
/// It is asked on the room's thread alone. Reports may come from any thread.
package protocol AgentWorld: AnyObject {
    /// Milliseconds since 1970, as the wall clock has it.
    var wall: Int64 { get }
    /// Milliseconds since the machine started, suspended time included.
    var boot: Int64 { get }

    /// 64 unpredictable bits.
    func random() -> UInt64

    /// Stores all of it, or nothing; it is on the disk afterwards.
    func commit(_ writes: [StoreWrite]) throws(SQLiteError)

    /// Begins an attempt, which reports until it has ended or is stopped.
    func begin(_ plan: AttemptPlan, _ report: @escaping @Sendable (AttemptNews) -> Void) -> AttemptHandle

    /// Tells the gateway, once.
    func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxSender.Outcome) -> Void)

    /// Has work done that waits for the disk: `step` is called until it says that nothing is left, in turns with
    /// others'.
    func move(_ step: @escaping @Sendable () -> Bool)
}

/// An attempt that was begun.
package struct AttemptHandle {
    package let plan: AttemptPlan
    package let gauge: AttemptGauge
    /// Ends it without another report.
    package let stop: () -> Void

    package init(plan: AttemptPlan, gauge: AttemptGauge, stop: @escaping () -> Void) {
        self.plan = plan
        self.gauge = gauge
        self.stop = stop
    }

    /// How many bytes have come, those of attempts before included, or have left.
    var progressBytes: Int64 { self.gauge.bytes.load(ordering: .relaxed) }

    /// How many there are in all; -1 while nobody has said.
    var progressTotal: Int64 { self.gauge.total.load(ordering: .relaxed) }
}

/// What an agent's room draws chance from.
struct WorldRandom: RandomNumberGenerator {
    let world: any AgentWorld

    mutating func next() -> UInt64 { self.world.random() }

    mutating func pair() -> (UInt64, UInt64) { (self.next(), self.next()) }
}

/// The world of an agent that runs: its machine, its disk and the network.
package final class MachineWorld: AgentWorld {
    private let settings: AgentSettings
    private let files: StateFiles
    private let store: TransferStore
    private let network: HTTPThread
    private let workers: (syncing: FileWorker, moving: FileWorker)
    private var bits = RandomBits()

    package init(
        settings: AgentSettings,
        files: StateFiles,
        store: TransferStore,
        network: HTTPThread,
        workers: (syncing: FileWorker, moving: FileWorker)
    ) {
        self.settings = settings
        self.files = files
        self.store = store
        self.network = network
        self.workers = workers
    }

    package var wall: Int64 { SystemClock.wall }
    package var boot: Int64 { SystemClock.boot }

    package func random() -> UInt64 { self.bits.next() }

    package func commit(_ writes: [StoreWrite]) throws(SQLiteError) {
        try self.store.commit(writes)
    }

    package func begin(
        _ plan: AttemptPlan,
        _ report: @escaping @Sendable (AttemptNews) -> Void
    ) -> AttemptHandle {
        let attempt = TransferAttempt(plan, files: self.files, worker: self.workers.syncing, report: report)
        let network = self.network
        network.submit { attempt.begin(on: $0) }
        return AttemptHandle(plan: plan, gauge: attempt.gauge) { network.submit { attempt.stop(on: $0) } }
    }

    package func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxSender.Outcome) -> Void) {
        let sender = OutboxSender(entry, self.settings, report: report)
        self.network.submit { sender.begin(on: $0) }
    }

    package func move(_ step: @escaping @Sendable () -> Bool) {
        self.workers.moving.submit(step)
    }
}
