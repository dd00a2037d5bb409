import Engine
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

/// Gateways on one simulated database, in which everything is done at once.
final class GatewaysRig {
    /// One gateway: its engine, its store, and what its only loop has heard.
    final class Gateway {
        fileprivate(set) var store: SimulatedClusterStore
        let engine: SharedGatewayEngine
        private let loop = LoopMailbox()
        private let lockReports = Reports()
        /// Everything that was heard, in its order.
        private(set) var heard: [Heard] = []

        fileprivate init(
            _ database: SimulatedDatabase,
            _ configuration: EngineConfiguration,
            _ world: EngineWorld,
            waitForStore: @escaping @Sendable (Int64) -> Void
        ) {
            let (loop, reports) = (self.loop, self.lockReports)
            self.store = SimulatedClusterStore(database, ring: {})
            self.engine = SharedGatewayEngine(
                configuration: configuration,
                historyKey: EngineRig.historyKey,
                report: GatewayReport(name: "gateway", version: "1"),
                world: world,
                store: self.store,
                waitForStore: waitForStore,
                outlet: GroupOutlet(mailboxes: PerOutlet(loop), history: DatabaseHistory(PerOutlet(loop), database)),
                onLocks: { locks in reports.all.withLock { $0.append(locks) } }
            )
        }

        /// The locks of other sessions that were reported for the log, report by report.
        var loggedLocks: [[DeviceLocks]] { self.lockReports.all.withLock { $0 } }

        private final class Reports: Sendable {
            let all = Mutex<[[DeviceLocks]]>([])
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

        private func take() {
            var effects = EffectBatch()
            self.loop.take(into: &effects)
            self.heard += Heard.all(in: effects)
        }

        var wakes: [HeardWake] {
            self.heard.compactMap { heard in
                if case .wake(let wake) = heard { wake } else { nil }
            }
        }

        var released: [WakeID] {
            self.heard.compactMap { heard in
                if case .released(let wake, _) = heard { wake } else { nil }
            }
        }

        var expired: [ExpirationReason] {
            self.heard.compactMap { heard in
                if case .expired(_, let reason, _) = heard { reason } else { nil }
            }
        }

        /// How much time was left of each wake when its worker was warned.
        var warnings: [Int64] {
            self.heard.compactMap { heard in
                if case .expiring(_, _, let timeLeft, _) = heard { timeLeft } else { nil }
            }
        }

        var conditions: [Conditions] {
            self.heard.compactMap { heard in
                if case .conditions(_, let conditions, _) = heard { conditions } else { nil }
            }
        }

        /// What a push was answered, in a word; nil when it was not.
        func word(_ request: Int) -> String? {
            for case .push(request, let reply) in self.heard { return reply.word }
            return nil
        }

        /// The status of a request's answer, and the reason when it was refused; empty when there is no answer.
        func answer(_ request: Int) -> String {
            for case .answer(request, let outcome) in self.heard {
                return outcome.reason.map { "\(outcome.status) \($0)" } ?? "\(outcome.status)"
            }
            return ""
        }

        /// The text that a request was answered with; empty when there is none.
        func text(_ request: Int) -> String {
            for case .answer(request, let outcome) in self.heard {
                var text = JSONWriter()
                outcome.write(to: &text)
                return text.buffer.view.string
            }
            return ""
        }

        func answerCount(_ request: Int) -> Int { self.heard.count { $0.answered == request } }

        fileprivate var statistics: Statistics? {
            for case .answer(_, .statistics(let statistics)) in self.heard.reversed() { return statistics }
            return nil
        }
    }

    let database = SimulatedDatabase(seed: 1, pace: .immediate)
    private(set) var gateways: [Gateway] = []
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
    private let configuration: EngineConfiguration
    private let world: EngineWorld

    init(count: Int = 2, _ configuration: EngineConfiguration = EngineRig.open(EngineContract.policy)) {
        let clock = self.clock
        self.configuration = configuration
        self.world = EngineWorld(clock, seed: 1)
        self.database.follow = { clock.now.wall }
        for _ in 0..<count { self.add() }
        self.settle()
    }

    subscript(number: Int) -> Gateway { self.gateways[number] }

    @discardableResult
    func add() -> Gateway {
        let clock = self.clock
        let gateway = Gateway(self.database, self.configuration, self.world) { milliseconds in
            clock.change { $0.pass(milliseconds) }
        }
        self.gateways.append(gateway)
        return gateway
    }

    /// What is asked of one gateway goes to its engine in one batch, and everything comes to an end.
    func ask(_ number: Int, _ fill: (Requests) -> Void) {
        self.gateways[number].step(fill)
        self.settle()
    }

    /// Steps all until nothing more comes.
    func settle() {
        for round in 0..<100 where round < 3 || self.living.contains(where: { !$0.engine.isIdle }) {
            for gateway in self.living { gateway.step() }
        }
        #expect(self.living.allSatisfy { $0.engine.isIdle }, "everything comes to an end")
    }

    private var living: [Gateway] { self.gateways.filter { !$0.store.isDead } }

    /// Milliseconds since the machine started.
    var boot: Int64 { self.clock.now.boot }

    /// Time passes, second by second, and what is due is done.
    func pass(seconds: Int) {
        for _ in 0..<seconds {
            self.clock.change { $0.pass(1000) }
            self.settle()
        }
    }

    /// Time passes, second by second, in which what has begun need not end.
    func wait(seconds: Int) {
        for _ in 0..<seconds {
            self.clock.change { $0.pass(1000) }
            for gateway in self.living { gateway.step() }
        }
    }

    /// The process of a gateway is gone.
    func kill(_ number: Int) { self.gateways[number].store.kill(withMachine: false) }

    /// The books as a gateway shows them, which balance at every moment.
    func books(_ number: Int) throws -> Books {
        self.ask(number) { $0.statistics(1_000_000) }
        let statistics = try #require(self.gateways[number].statistics)
        #expect(statistics.books.accepted == statistics.books.accountedFor, "\(statistics.books)")
        return statistics.books
    }

    /// The workers as a gateway shows them.
    func workers(_ number: Int) throws -> Int {
        self.ask(number) { $0.statistics(1_000_000) }
        return try #require(self.gateways[number].statistics).workers.connected
    }
}
