import Engine
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

/// Every state of the engine room, and every command of the loops in it.
@Suite("Every request in every state of the engine room", .timeLimit(.minutes(15)))
struct EngineStateTests {
    enum State: CaseIterable {
        case serving
        /// A commit is in progress.
        case committing
        /// The gateway is draining.
        case draining
        /// A commit has failed.
        case failed
        /// A commit has failed, and the gateway is draining.
        case failedDraining
        /// A commit has failed, and the durable state cannot be read.
        case failedUnreadable

        var hasFailed: Bool { self == .failed || self == .failedDraining || self == .failedUnreadable }
    }

    /// A room in some state: stream 1 holds the wake of device 1, and device 2 is registered.
    private struct Scene {
        let rig: GatewayEngineRig
        let wake: WakeID

        init(_ state: State) throws {
            self.rig = try GatewayEngineRig()
            try self.rig.ask(1) { $0.subscribe(1) }
            try self.rig.ask(2) { $0.push(2, 1, .immediate) }
            try self.rig.waitForWakes(1)
            self.wake = try self.rig.lastWake()
            try self.rig.ask(3) { $0.register(3, 2) }
            try self.enter(state)
        }

        private func enter(_ state: State) throws {
            switch state {
            case .serving: ()
            case .committing:
                self.rig.gate.close()
                self.rig.step { $0.push(4, 9, wakes: false) }
                try self.rig.waitForCommit()
            case .draining: try self.drain()
            case .failed: try self.fail()
            case .failedDraining:
                try self.fail()
                try self.drain()
            case .failedUnreadable: try self.fail(isLasting: true)
            }
        }

        private func fail(isLasting: Bool = false) throws {
            self.rig.store.failOperation(self.rig.store.operations, isLasting: isLasting)
            #expect(try self.rig.ask(4) { $0.push(4, 9, wakes: false) }.status == 503)
            #expect(self.rig.wakeup.failures.count == 1)
        }

        private func drain() throws {
            self.rig.step { $0.drain() }
            try self.rig.run("the word to the loops") { $0.told.isDraining }
        }
    }

    // MARK: Requests

    /// A request that is answered. Its number is 100.
    struct Request: CustomTestStringConvertible, Sendable {
        /// A batch, and the wake in flight.
        typealias Call = (requests: Requests, wake: WakeID)

        let testDescription: String
        /// The statuses while serving, while draining, and after a failed commit.
        let statuses: (serving: Int, draining: Int, failed: Int)
        /// The status after a failed commit if the durable state cannot be read.
        let unreadable: Int
        let ask: @Sendable (Call) -> Void

        init(
            _ name: String,
            _ statuses: (Int, Int, Int),
            unreadable: Int = 503,
            _ ask: @escaping @Sendable (Call) -> Void
        ) {
            (self.testDescription, self.statuses, self.unreadable, self.ask) = (name, statuses, unreadable, ask)
        }

        static let all = [
            Request("push", (200, 503, 503)) { $0.requests.push(100, 2) },
            Request("dryRun", (200, 503, 503)) { $0.requests.push(100, 2, isDryRun: true) },
            Request("subscribe", (200, 503, 503)) { $0.requests.subscribe(100) },
            Request("report", (204, 204, 503)) { $0.requests.report(100, $0.wake, FetchResult.newData) },
            Request("extend", (200, 200, 503)) { $0.requests.extend(100, $0.wake) },
            Request("drainStream", (204, 204, 503)) { $0.requests.drainStream(100, 1) },
            Request("register", (201, 201, 503)) { $0.requests.register(100, 3) },
            Request("unregister", (204, 204, 503)) { $0.requests.unregister(100, 2) },
            Request("conditions", (200, 200, 503)) { $0.requests.conditions(100, 2) { $0.charging = true } },
            Request("simulateLaunch", (202, 409, 503)) { $0.requests.simulateLaunch(100, 2) },
            Request("simulateExpiration", (202, 202, 503)) { $0.requests.simulateExpiration(100, 1) },
            // The configuration permits no tasks.
            Request("submit", (403, 503, 503)) { $0.requests.submit(100, 2, "a") },
            Request("cancel", (204, 204, 503)) { $0.requests.cancel(100, 2, "a") },
            Request("finish", (202, 503, 503)) { $0.requests.finish(100, 2, "s") },
            Request("progress", (409, 409, 503)) { $0.requests.progress(100, $0.wake, 1) },
            Request("listTasks", (200, 200, 200)) { $0.requests.listTasks(100, 2) },
            Request("allTasks", (200, 200, 200)) { $0.requests.allTasks(100) },
            Request("devices", (200, 200, 200)) { $0.requests.devices(100) },
            Request("resources", (200, 200, 503)) { $0.requests.resources(100) },
            Request("simulateTaskLaunch", (409, 409, 503)) { $0.requests.simulateLaunch(100, 2, of: "a") },
            Request("explain", (200, 200, 200)) { $0.requests.explain(100, 1) },
            Request("devicePushes", (200, 200, 200)) { $0.requests.devicePushes(100, 1) },
            Request("deviceEvents", (200, 200, 200)) { $0.requests.deviceEvents(100, 1) },
            // The history of a push does not need the store of devices.
            Request("way", (200, 200, 200), unreadable: 200) { $0.requests.way(100, of: 2) },
            Request("statistics", (200, 200, 200)) { $0.requests.statistics(100) },
            Request("topicStatistics", (200, 200, 200)) { $0.requests.statistics(100, topic: 0) },
            Request("topics", (200, 200, 200)) { $0.requests.topics(100) },
            Request("readiness", (200, 503, 503)) { $0.requests.readiness(100) },
            // At least they report the failure.
            Request("metrics", (200, 200, 200), unreadable: 200) { $0.requests.metrics(100) },
        ]

        func status(in state: State) -> Int {
            switch state {
            case .serving, .committing: self.statuses.serving
            case .draining: self.statuses.draining
            case .failed, .failedDraining: self.statuses.failed
            case .failedUnreadable: self.unreadable
            }
        }
    }

    @Test(
        "Each request gets one answer in each state, and none before the end of a running commit",
        arguments: State.allCases,
        Request.all
    )
    func requests(state: State, request: Request) throws {
        let scene = try Scene(state)
        let rig = scene.rig
        rig.step { request.ask(($0, scene.wake)) }
        if state == .committing {
            rig.takeOutputs()
            #expect(rig.answer(100) == nil)
            rig.gate.open()
        }
        let answer = try rig.answers(100...100)[0]
        #expect(answer.status == request.status(in: state))
        if state.hasFailed, case .answer(_, let outcome) = answer, outcome.status == 503 {
            let isShutdown = state == .failedDraining && answer.string("reason") == "Shutdown"
            #expect(isShutdown || answer.string("reason") == "ServiceUnavailable", "\(answer)")
        }
        let commits = rig.store.commits
        rig.stop()
        #expect(rig.told.answerCount(100) == 1)
        #expect(rig.store.misuses.isEmpty, "\(rig.store.misuses)")
        if state.hasFailed { #expect(rig.store.commits == commits, "there are no more commits") }
    }

    // MARK: Commands

    @Test(
        "Commands without an answer are performed in each state, but change nothing after a failed commit",
        arguments: State.allCases.filter { $0 != .failedUnreadable }
    )
    func commands(state: State) throws {
        let scene = try Scene(state)
        let rig = scene.rig
        let configured = Mutex(false)
        rig.step {
            $0.rejected(.badTopic)
            $0.configure(EngineRig.open()) { _ in configured.withLock { $0 = true } }
            $0.endStream(1)
            $0.drain()
        }
        rig.gate.open()
        let answers = try rig.ask(100...102) {
            $0.statistics(100)
            $0.push(101, 2)
            $0.readiness(102)
        }
        #expect(answers[0].integer("pushes", "rejected", "BadTopic") == 1)
        #expect(answers[0].integer("workers", "connected") == (state.hasFailed ? 1 : 0))
        #expect(answers[0].integer("wakes", "results", "lost") == (state.hasFailed ? 0 : 1))
        #expect(answers[1...].allSatisfy { $0.status == 503 }, "it drains")
        #expect(rig.told.isDraining)
        #expect(configured.withLock { $0 }, "the new configuration is in effect")
    }
}
