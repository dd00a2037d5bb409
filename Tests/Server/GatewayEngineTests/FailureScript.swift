import Engine
import Policy
import WakeGateTestKit
import Wire

/// A life of a gateway, one commit after the other, that ends when the store fails; and what was promised until then.
final class FailureScript {
    /// What a store may fail at within one commit.
    enum Phase: CaseIterable {
        case writing, syncing
    }

    private enum Move {
        case subscribe
        case push(Int, Priority)
        case register(Int)
        case report
        case conditions(Int)
        case unregister(Int)
        case noWake(Int)
        case simulateLaunch(Int)
        case simulateExpiration(Int)
    }

    private static let moves: [Move] = [
        .subscribe, .push(1, .immediate), .report, .register(2), .push(2, .considerate), .push(1, .considerate),
        .push(1, .considerate), .conditions(1), .unregister(2), .simulateLaunch(1), .noWake(3), .simulateExpiration(1),
        .push(4, .considerate), .push(4, .considerate),
    ]

    /// How many commits it has, the one at the start left out.
    static var commitCount: Int { self.moves.count }

    let rig: GatewayEngineRig
    /// The last answer about everything that every promise made until then was part of.
    private(set) var durable: Told
    /// The topics, and the first device, at that moment.
    private(set) var topics: Told
    private(set) var device: Told
    /// The request that the failing commit was for.
    private(set) var failed = 0
    /// The requests that waited behind the one that failed.
    private(set) var behind = 0...0
    private var next = 1

    /// - Parameter isReloadFailing: what is durable cannot be read after the failure either.
    init(failingAt commit: Int, _ phase: Phase, isReloadFailing: Bool = false) throws {
        let store = SimulatedStore()
        // A load, a beginning and the commit of the start come first.
        let operation = 2 + 2 * (commit + 1) + (phase == .writing ? 0 : 1)
        store.failOperation(operation, isLasting: isReloadFailing)
        self.rig = try GatewayEngineRig(store)
        (self.durable, self.topics, self.device) = try Self.look(self.rig, 1000)
        for number in 0..<commit {
            try self.make(Self.moves[number])
            (self.durable, self.topics, self.device) = try Self.look(self.rig, 1003 + 3 * number)
        }
        try self.fail(at: Self.moves[commit], phase)
    }

    private static func look(_ rig: GatewayEngineRig, _ first: Int) throws -> (Told, Told, Told) {
        let answers = try rig.ask(first...first + 2) {
            $0.statistics(first)
            $0.topics(first + 1)
            $0.explain(first + 2, 1)
        }
        return (answers[0], answers[1], answers[2])
    }

    private func fail(at move: Move, _ phase: Phase) throws {
        self.failed = self.next
        let first = self.next + 1
        self.next += 10
        self.behind = first...first + 8
        let wake = try? self.rig.lastWake()
        switch phase {
        case .writing:
            // All in one group: nothing can wait behind a commit that fails at once.
            self.rig.step {
                Self.ask(move, self.failed, wake, $0)
                Self.change(first, $0)
                Self.look(first + 4, $0)
            }
        case .syncing:
            self.rig.gate.close()
            self.rig.step { Self.ask(move, self.failed, wake, $0) }
            try self.rig.waitForCommit()
            self.rig.step { Self.change(first, $0) }
            self.rig.step { Self.look(first + 4, $0) }
            self.rig.gate.open()
        }
        try self.rig.answers(self.failed...first + 8)
    }

    private func make(_ move: Move) throws {
        let request = self.next
        self.next += 1
        let wake = try? self.rig.lastWake()
        self.rig.step { Self.ask(move, request, wake, $0) }
        try self.rig.answers(request...request)
    }

    /// Four requests that change something.
    private static func change(_ first: Int, _ requests: Requests) {
        requests.push(first, 5, .immediate)
        requests.push(first + 1, 5)
        requests.register(first + 2, 6)
        requests.subscribe(first + 3)
    }

    /// Five requests, questions among them.
    private static func look(_ first: Int, _ requests: Requests) {
        requests.report(first, WakeID(random: (1, 2)), .newData)
        requests.explain(first + 1, 1)
        requests.statistics(first + 2)
        requests.readiness(first + 3)
        requests.push(first + 4, 1)
    }

    private static func ask(_ move: Move, _ request: Int, _ wake: WakeID?, _ requests: Requests) {
        switch move {
        case .subscribe: requests.subscribe(request)
        case .push(let device, let priority): requests.push(request, device, priority)
        case .register(let device): requests.register(request, device)
        case .report: if let wake { requests.report(request, wake, .newData) }
        case .conditions(let device): requests.conditions(request, device) { $0.lowPowerMode = true }
        case .unregister(let device): requests.unregister(request, device)
        case .noWake(let device): requests.push(request, device, wakes: false)
        case .simulateLaunch(let device): requests.simulateLaunch(request, device)
        case .simulateExpiration(let device): requests.simulateExpiration(request, device)
        }
    }
}
