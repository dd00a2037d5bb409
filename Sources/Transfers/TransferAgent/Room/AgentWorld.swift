package import Engine
package import HTTPClient
import Platform
import Policy
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

    /// Asks the gateway, once, whether the app was force-quit on a device; reports nil if it does not say.
    func askForceQuit(_ device: String, _ report: @escaping @Sendable (Bool?) -> Void)

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

    package func askForceQuit(_ device: String, _ report: @escaping @Sendable (Bool?) -> Void) {
        let question = ForceQuitQuestion(device, self.settings, report: report)
        self.network.submit { question.begin(on: $0) }
    }

    package func move(_ step: @escaping @Sendable () -> Bool) {
        self.workers.moving.submit(step)
    }
}

/// The agent's time, in milliseconds: it goes on with the machine's uptime however the wall clock is set, so that no
/// deadline passes because of that.
///
/// It began at the wall clock of the first start. Moments that people read or write are the wall clock's; they are
/// translated where they leave and come.
package struct AgentClock {
    /// The moment of the current turn.
    package private(set) var now: Int64
    /// The wall clock's jump between the last commit and the start, where it is more than is believed.
    package let jump: WallClockJump?
    private var clock: PolicyClock
    private var offset: WallOffset
    private let world: any AgentWorld

    /// The longest time between two starts that is believed: a year, more than the longest time-out of a transfer.
    package static let jumpMax: Int64 = 366 * 86_400_000

    /// Goes on from the clocks of the last commit; begins where there was none.
    ///
    /// - Parameters:
    ///   - stored: the clocks of the last commit.
    ///   - boot: tells this boot of the machine from others.
    ///   - world: where the clocks are read.
    package init(resuming stored: ClockRecord?, boot: String, _ world: any AgentWorld) {
        let bootID = BootID(text: boot)
        let uptime = world.boot
        let wall = world.wall
        if let stored {
            let resumed = PolicyClock.resumed(
                stored,
                wall: wall,
                boot: uptime,
                bootID: bootID,
                jumpMax: Self.jumpMax
            )
            self.clock = resumed.clock
            self.jump = resumed.jump
        } else {
            self.clock = PolicyClock(wall: wall, boot: uptime, bootID: bootID)
            self.jump = nil
        }
        let now = self.clock.now(boot: uptime)
        self.now = now.milliseconds
        let before = stored.map { WallOffset(wall: $0.wall, now: $0.now) } ?? WallOffset(wall: wall, now: now)
        // What two clocks differ by as they are read makes nobody's moment another.
        self.offset = before.following(wall: wall, now: now, tolerance: world.boot - uptime)
        self.world = world
    }

    /// A turn begins: reads both clocks.
    ///
    /// - Returns: by how much the wall clock was set since the last turn.
    package mutating func step() -> Int64 {
        let uptime = self.world.boot
        let now = self.clock.now(boot: uptime)
        let before = self.offset
        let wall = self.world.wall
        self.offset = before.following(wall: wall, now: now, tolerance: self.world.boot - uptime)
        self.now = now.milliseconds
        return self.offset.milliseconds - before.milliseconds
    }

    /// How many milliseconds there are from the present, not the turn's, to a moment.
    package func milliseconds(until moment: Int64) -> Int64 {
        moment - self.clock.now(boot: self.world.boot).milliseconds
    }

    /// A moment as the wall clock has it, in milliseconds since 1970.
    package func wall(_ moment: Int64) -> Int64 {
        self.offset.wall(Instant(milliseconds: moment))
    }

    /// The moment at which the wall clock has so many milliseconds since 1970; never before all others.
    package func moment(wall milliseconds: Int64) -> Int64 {
        max(0, self.offset.instant(wallMilliseconds: milliseconds).milliseconds)
    }

    /// How much further ahead the wall clock is than it was at `stored`.
    package func stepped(since stored: ClockRecord) -> Int64 {
        self.offset.milliseconds - WallOffset(wall: stored.wall, now: stored.now).milliseconds
    }

    /// What is kept of the clocks with a commit of this turn.
    package mutating func record() -> ClockRecord {
        self.clock.record(Instant(milliseconds: self.now), self.offset)
    }
}
