package import Engine
package import HTTPClient
import Platform
import Policy
package import Storage
import Synchronization

/// The environment of an `AgentEngine`: its clocks and its side effects. Tests supply another environment.
///
/// The functions are called only on the room's thread. They may call `report` on any thread.
package protocol AgentWorld: AnyObject {
    /// The wall clock, in milliseconds since 1970.
    var wall: Int64 { get }
    /// The time since the machine's boot, including suspended time, in milliseconds.
    var boot: Int64 { get }

    /// Returns 64 unpredictable bits.
    func random() -> UInt64

    /// Stores all writes atomically. They are durable when the call returns.
    func commit(_ writes: [StoreWrite]) throws(SQLiteError)

    /// Starts an attempt. It sends reports until it ends or is stopped.
    func begin(_ plan: AttemptPlan, _ report: @escaping @Sendable (AttemptNews) -> Void) -> AttemptHandle

    /// Tries once to send a report to the gateway.
    func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxEntry.Outcome) -> Void)

    /// Asks the gateway once whether the app was force-quit on a device.
    func askForceQuit(_ device: String, _ report: @escaping @Sendable (Result<Bool, GatewayFault>) -> Void)

    /// Runs a blocking disk operation. Calls `step` until it returns false, alternating with other operations.
    func move(_ step: @escaping @Sendable () -> Bool)
}

/// An attempt that was started.
package struct AttemptHandle {
    package let plan: AttemptPlan
    package let gauge: AttemptGauge
    /// Ends the attempt without a further report.
    package let stop: () -> Void

    package init(plan: AttemptPlan, gauge: AttemptGauge, stop: @escaping () -> Void) {
        self.plan = plan
        self.gauge = gauge
        self.stop = stop
    }

    /// The number of transferred bytes, including those of earlier attempts.
    var progressBytes: Int64 { self.gauge.bytes.load(ordering: .relaxed) }

    /// The total number of bytes; -1 while unknown.
    var progressTotal: Int64 { self.gauge.total.load(ordering: .relaxed) }
}

/// The random numbers of an `AgentEngine`.
struct WorldRandom: RandomNumberGenerator {
    let world: any AgentWorld

    mutating func next() -> UInt64 { self.world.random() }

    mutating func pair() -> (UInt64, UInt64) { (self.next(), self.next()) }
}

/// The environment of a real agent: its machine, disk and network.
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
        let network = self.network
        let attempt = TransferAttempt(
            plan,
            files: self.files,
            worker: self.workers.syncing,
            network: network,
            report: report
        )
        network.submit { attempt.begin(on: $0) }
        return AttemptHandle(plan: plan, gauge: attempt.gauge) { network.submit { attempt.stop(on: $0) } }
    }

    package func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxEntry.Outcome) -> Void) {
        self.ask(entry.request) { result in
            switch result {
            case .success(let answer):
                report(OutboxEntry.outcome(of: answer.status, reason: answer.refusal?.reason ?? ""))
            case .failure(let fault): report(.retry(fault.cause))
            }
        }
    }

    package func askForceQuit(
        _ device: String,
        _ report: @escaping @Sendable (Result<Bool, GatewayFault>) -> Void
    ) {
        self.ask(("GET", "/v1/devices/\(URLPath.component(device))/conditions", nil)) { result in
            report(result.flatMap { $0.isForceQuit })
        }
    }

    private func ask(
        _ request: (method: String, path: String, body: [UInt8]?),
        _ report: @escaping @Sendable (Result<HTTPResponse, GatewayFault>) -> Void
    ) {
        Task { [settings = self.settings, network = self.network] in
            do throws(GatewayFault) {
                let request = try settings.gatewayRequest(request.method, request.path, request.body)
                do throws(HTTPClientError) {
                    report(.success(try await network.perform(request)))
                } catch {
                    throw GatewayFault(error)
                }
            } catch {
                report(.failure(error))
            }
        }
    }

    package func move(_ step: @escaping @Sendable () -> Bool) {
        self.workers.moving.submit(step)
    }
}

/// The agent's clock, in milliseconds. It follows the machine's uptime. A step of the wall clock therefore never makes
/// a deadline pass.
///
/// At the first start, the agent's time equals the wall clock. People see wall clock times, which are converted on
/// input and output.
package struct AgentClock {
    /// The time of the current turn.
    package private(set) var now: Int64
    /// The jump of the wall clock between the last commit and the start; nil if there was no implausible jump.
    package let jump: WallClockJump?
    private var clock: PolicyClock
    private var offset: WallOffset
    private let world: any AgentWorld

    /// The maximum plausible time between two starts, in milliseconds: a year, more than the maximum timeout of a
    /// transfer.
    package static let jumpMax: Int64 = 366 * 86_400_000

    /// Continues from the clocks of the last commit, or starts a new clock.
    ///
    /// - Parameters:
    ///   - stored: the clocks of the last commit; nil for the first start.
    ///   - boot: the identifier of the machine's current boot.
    ///   - world: the source of the clocks.
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
        // The time between the readings of the two clocks must not count as a step of the wall clock.
        self.offset = before.following(wall: wall, now: now, tolerance: world.boot - uptime)
        self.world = world
    }

    /// Begins a turn and reads both clocks.
    ///
    /// - Returns: the step of the wall clock since the last turn, in milliseconds.
    package mutating func step() -> Int64 {
        let uptime = self.world.boot
        let now = self.clock.now(boot: uptime)
        let before = self.offset
        let wall = self.world.wall
        self.offset = before.following(wall: wall, now: now, tolerance: self.world.boot - uptime)
        self.now = now.milliseconds
        return self.offset.milliseconds - before.milliseconds
    }

    /// Returns the milliseconds from now until `moment`. `now` may be later than the beginning of the turn.
    package func milliseconds(until moment: Int64) -> Int64 {
        moment - self.clock.now(boot: self.world.boot).milliseconds
    }

    /// Converts a time of the agent's clock to wall clock time, in milliseconds since 1970.
    package func wall(_ moment: Int64) -> Int64 {
        self.offset.wall(Instant(milliseconds: moment))
    }

    /// Converts a wall clock time, in milliseconds since 1970, to the agent's clock. The result is never negative.
    package func moment(wall milliseconds: Int64) -> Int64 {
        max(0, self.offset.instant(wallMilliseconds: milliseconds).milliseconds)
    }

    /// Returns the step of the wall clock since `stored`, in milliseconds.
    package func stepped(since stored: ClockRecord) -> Int64 {
        self.offset.milliseconds - WallOffset(wall: stored.wall, now: stored.now).milliseconds
    }

    /// Returns the clocks to store with a commit of this turn.
    package mutating func record() -> ClockRecord {
        self.clock.record(Instant(milliseconds: self.now), self.offset)
    }
}
