import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Claims and lost wakes of a gateway on a shared store", .timeLimit(.minutes(15)))
struct ClaimTests {
    private let scene = ScriptedScene()
    private var store: ScriptedClusterStore { self.scene.store }

    @Test(
        "A command ends an overdue wake of a dead gateway as lost, even before the gateway knows who is dead",
        arguments: [false, true]
    )
    func lostWake(isKnown: Bool) throws {
        self.scene.attach(topics: [EngineRig.topicName(0)])
        _ = self.scene.heard { $0.subscribe(1, slots: 1) }
        _ = self.scene.heard { $0.push(2, 1) }
        let push = try self.scene.findNothing()
        _ = self.scene.heard { _ in }
        let rows = self.store.written
        self.store.replies.append(.committed(push, endedElsewhere: []))
        let wake = try #require(self.scene.heard { _ in }.wakes.first).id
        if isKnown {
            self.scene.show(dead: [GatewayNumber(rawValue: 9)])
            _ = self.scene.heard { _ in }
        }
        _ = self.scene.heard { $0.push(3, 1) }
        #expect(self.store.findsLostWakes)
        // The wake belongs to the dead gateway, according to the store.
        let later = LoadedDevices(
            now: ScriptedScene.noRows.now + 3_600_000,
            wall: ScriptedScene.noRows.wall + 3_600_000,
            devices: rows,
            hasMore: false,
            heldWakes: [wake]
        )
        self.store.replies.append(.loaded(try #require(self.store.loads.last), later))
        _ = self.scene.heard { _ in }
        #expect(self.store.counted.results[.lost] == 1 && self.store.counted.results[.expired] == 0)
    }

    @Test("While no dead gateway is known, loads of commands do not look for lost wakes")
    func noLostWakes() throws {
        self.scene.attach(topics: [EngineRig.topicName(0)])
        self.scene.show()
        _ = self.scene.heard { $0.push(1, 1) }
        #expect(self.store.loads.count == 1 && !self.store.findsLostWakes)
    }
}
