import Engine
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

/// Gateways on one simulated database that performs everything immediately.
final class GatewaysRig {
    /// One gateway: its engine, its store, and the results on its only loop.
    final class Gateway: OutputHolder {
        let store: SimulatedClusterStore
        let engine: ClusterEngine
        let loop = LoopMailbox()
        private let lockReports = Reports()
        /// All results in order.
        private(set) var heard: [EngineOutput] = []

        init(
            _ database: SimulatedDatabase,
            _ configuration: EngineConfiguration,
            _ world: EngineWorld,
            transactionsMax: Int = 4,
            events: EventService = EventService(),
            signal: @escaping @Sendable () -> Void = {}
        ) {
            let (loop, reports) = (self.loop, self.lockReports)
            self.store = SimulatedClusterStore(database, transactionsMax: transactionsMax, signal: signal)
            self.engine = ClusterEngine(
                configuration: configuration,
                historyKey: EngineRig.historyKey,
                report: GatewayReport(name: "gateway", version: "1"),
                world: world,
                store: self.store,
                output: GroupOutput(
                    mailboxes: PerOutput(loop),
                    history: DatabaseHistory(PerOutput(loop), database),
                    events: events
                ),
                onNews: { news in
                    switch news {
                    case .locks(let locks): reports.all.withLock { $0.append(locks) }
                    case .unreadable(let device, _): reports.unreadable.withLock { $0.append(device) }
                    case .status, .differences: break
                    }
                }
            )
        }

        /// The locks of other sessions that were reported for the log, by report.
        var loggedLocks: [[DeviceLocks]] { self.lockReports.all.withLock { $0 } }

        /// The devices whose rows were reported as unreadable.
        var unreadable: [DeviceToken] { self.lockReports.unreadable.withLock { $0 } }

        private final class Reports: Sendable {
            let all = Mutex<[[DeviceLocks]]>([])
            let unreadable = Mutex<[DeviceToken]>([])
        }

        func step(_ fill: (Requests) -> Void = { _ in }) {
            let requests = Requests()
            fill(requests)
            _ = self.engine.step(requests.batch)
            self.take()
        }

        func finish() {
            self.engine.finish()
            self.take()
        }

        private func take() { self.heard += EngineOutput.all(from: self.loop) }
    }

    let database = SimulatedDatabase(seed: 1, pace: .immediate)
    private let gateways: [Gateway]
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)

    init(count: Int = 2, _ configuration: EngineConfiguration = EngineRig.open(EngineContract.policy)) {
        let (clock, database) = (self.clock, self.database)
        let world = EngineWorld(clock, seed: 1)
        database.follow = { clock.now.wall }
        self.gateways = (0..<count).map { _ in
            let gateway = Gateway(database, configuration, world)
            gateway.store.onWait = { milliseconds in clock.change { $0.pass(milliseconds) } }
            return gateway
        }
        self.settle()
    }

    deinit { #expect(self.database.log.misuses.isEmpty, "\(self.database.log.misuses)") }

    subscript(number: Int) -> Gateway { self.gateways[number] }

    /// Sends requests to one gateway in one batch, and runs until everything is finished.
    func ask(_ number: Int, _ fill: (Requests) -> Void) {
        self.gateways[number].step(fill)
        self.settle()
    }

    /// Performs steps of all gateways until nothing more happens.
    func settle() {
        for round in 0..<100 where round < 3 || self.living.contains(where: { !$0.engine.isIdle }) {
            for gateway in self.living { gateway.step() }
        }
        #expect(self.living.allSatisfy { $0.engine.isIdle }, "all work ends")
    }

    private var living: [Gateway] { self.gateways.filter { !$0.store.isDead } }

    /// The time since the start of the machine, in milliseconds.
    var boot: Int64 { self.clock.now.boot }

    /// Passes time second by second, and performs everything that is due.
    func pass(seconds: Int) {
        for _ in 0..<seconds {
            self.clock.change { $0.pass(1000) }
            self.settle()
        }
    }

    /// Passes time second by second, without waiting for the end of open work.
    func wait(seconds: Int) {
        for _ in 0..<seconds {
            self.clock.change { $0.pass(1000) }
            for gateway in self.living { gateway.step() }
        }
    }

    /// Kills the process of a gateway.
    func kill(_ number: Int) { self.gateways[number].store.kill(withMachine: false) }

    /// Returns the counters of a gateway, which must always balance.
    func counters(_ number: Int) throws -> ActivityCounters {
        let counters = try self.statistics(number).counters
        #expect(counters.accepted == counters.accountedFor, "\(counters)")
        return counters
    }

    func statistics(_ number: Int) throws -> Statistics {
        self.ask(number) { $0.statistics(1_000_000) }
        for case .answer(_, .statistics(let statistics)) in self.gateways[number].heard.reversed() { return statistics }
        throw RigFailure("gateway \(number) gives no statistics")
    }
}
