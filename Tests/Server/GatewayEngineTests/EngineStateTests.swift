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
            try self.rig.run("the word to the loops") { $0.isDraining }
        }
    }

    // MARK: Requests

    /// The requests that are answered.
    enum Request: CaseIterable {
        case push, dryRun
        case subscribe, report, extend, drainStream
        case register, unregister, conditions, simulateLaunch, simulateExpiration
        case submit, cancel, finish, progress, listTasks, allTasks, devices, resources, simulateTaskLaunch
        case explain, devicePushes, deviceEvents, way, statistics, topicStatistics, topics, readiness, metrics

        func ask(_ number: Int, _ wake: WakeID, _ requests: Requests) {
            switch self {
            case .push: requests.push(number, 2)
            case .dryRun: requests.push(number, 2, isDryRun: true)
            case .subscribe: requests.subscribe(number)
            case .report: requests.report(number, wake, .newData)
            case .extend: requests.extend(number, wake)
            case .drainStream: requests.drainStream(number, 1)
            case .register: requests.register(number, 3)
            case .unregister: requests.unregister(number, 2)
            case .conditions: requests.conditions(number, 2) { $0.charging = true }
            case .simulateLaunch: requests.simulateLaunch(number, 2)
            case .simulateExpiration: requests.simulateExpiration(number, 1)
            case .submit: requests.submit(number, 2, "a")
            case .cancel: requests.cancel(number, 2, "a")
            case .finish: requests.finish(number, 2, "s")
            case .progress: requests.progress(number, wake, 1)
            case .listTasks: requests.listTasks(number, 2)
            case .allTasks: requests.allTasks(number)
            case .devices: requests.devices(number)
            case .resources: requests.resources(number)
            case .simulateTaskLaunch: requests.simulateLaunch(number, 2, of: "a")
            case .explain: requests.explain(number, 1)
            case .devicePushes: requests.devicePushes(number, 1)
            case .deviceEvents: requests.deviceEvents(number, 1)
            case .way: requests.way(number, of: 2)
            case .statistics: requests.statistics(number)
            case .topicStatistics: requests.statistics(number, topic: 0)
            case .topics: requests.topics(number)
            case .readiness: requests.readiness(number)
            case .metrics: requests.metrics(number)
            }
        }

        /// The statuses while serving, while draining, and after a failed commit.
        var statuses: (serving: Int, draining: Int, failed: Int) {
            switch self {
            case .push, .dryRun, .subscribe, .readiness: (200, 503, 503)
            case .report, .drainStream, .unregister: (204, 204, 503)
            case .extend, .conditions: (200, 200, 503)
            case .register: (201, 201, 503)
            case .simulateLaunch: (202, 409, 503)
            case .simulateExpiration: (202, 202, 503)
            // The configuration permits no tasks.
            case .submit: (403, 503, 503)
            case .cancel: (204, 204, 503)
            case .finish: (202, 503, 503)
            case .progress, .simulateTaskLaunch: (409, 409, 503)
            case .resources: (200, 200, 503)
            case .listTasks, .allTasks, .devices: (200, 200, 200)
            case .explain, .devicePushes, .deviceEvents, .way: (200, 200, 200)
            case .statistics, .topicStatistics, .topics, .metrics: (200, 200, 200)
            }
        }

        func status(in state: State) -> Int {
            switch state {
            case .serving, .committing: self.statuses.serving
            case .draining: self.statuses.draining
            case .failed, .failedDraining: self.statuses.failed
            // Metrics are answered because they at least report the failure. The history of a push does not need the
            // store of devices.
            case .failedUnreadable: self == .metrics || self == .way ? 200 : 503
            }
        }
    }

    @Test(
        "Each request gets one answer in each state, and none before the end of a running commit",
        arguments: State.allCases,
        Request.allCases
    )
    func requests(state: State, request: Request) throws {
        let scene = try Scene(state)
        let rig = scene.rig
        rig.step { request.ask(100, scene.wake, $0) }
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
        #expect(rig.answerCount(100) == 1)
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
        #expect(rig.isDraining)
        #expect(configured.withLock { $0 }, "the new configuration is in effect")
    }
}
