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

    /// Replies to a transaction with these rows, and confirms its commit.
    private func answer(_ number: TransactionNumber, _ rows: [SharedDevice], hasMore: Bool = false) -> [EngineOutput] {
        var loaded = ScriptedScene.noRows
        (loaded.devices, loaded.hasMore) = (rows, hasMore)
        self.store.replies.append(.loaded(number, loaded))
        _ = self.scene.heard { _ in }
        self.store.replies.append(.committed(number, endedElsewhere: []))
        return self.scene.heard { _ in }
    }

    @Test("A topic with many waiting devices leaves the next claim to another topic")
    func turns() throws {
        self.scene.attach(topics: [EngineRig.topicName(0), EngineRig.topicName(1)])
        _ = self.scene.heard { _ in }
        self.scene.show()
        _ = self.scene.heard { requests in
            for device in 1...3 { requests.push(device, device) }
            requests.push(4, 4, topic: 1)
        }
        let push = try self.scene.findNothing()
        _ = self.scene.heard { _ in }
        let written = self.store.written
        func row(_ device: Int) throws -> SharedDevice {
            try #require(written.first { $0.token == EngineRig.token(device) })
        }
        self.store.replies.append(.committed(push, endedElsewhere: []))
        _ = self.scene.heard { requests in for stream in 10...12 { requests.subscribe(stream, slots: 256) } }
        let (busy, quiet) = (TopicIndex(rawValue: 0), TopicIndex(rawValue: 1))
        #expect(self.store.claims.map(\.topic) == [busy])
        // The claim finds more devices than it can claim, so the topic may have all claims that may be open.
        #expect(self.answer(self.store.claims[0].number, [try row(1)], hasMore: true).wakes.count == 1)
        #expect(self.store.claims.map(\.topic) == [busy, busy, busy])
        _ = self.scene.heard { $0.subscribe(13, topic: 1, slots: 1) }
        #expect(self.store.claimCount == 3)
        #expect(self.answer(self.store.claims[1].number, [try row(2)], hasMore: true).wakes.count == 1)
        #expect(self.store.claims.dropFirst(3).map(\.topic) == [quiet])
        #expect(self.answer(self.store.claims[3].number, [try row(4)]).wakes.map(\.stream) == [13])
        #expect(self.store.claims.dropFirst(4).map(\.topic) == [busy])
    }

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
        _ = self.scene.heard { _ in }
        self.scene.show()
        _ = self.scene.heard { $0.push(1, 1) }
        #expect(self.store.loads.count == 1 && !self.store.findsLostWakes)
    }
}
