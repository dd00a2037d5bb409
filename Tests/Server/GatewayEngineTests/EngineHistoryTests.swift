import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("What the engine tells the history", .timeLimit(.minutes(15)))
struct EngineHistoryTests {
    @Test("An explanation shows the push whose 200 was just seen, at once, the newest first")
    func recent() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        for request in stride(from: 1, to: 21, by: 2) {
            try rig.ask(request) { $0.push(request, 1) }
            let explained = try rig.ask(request + 1) { $0.explain(request + 1, 1) }
            #expect(explained.recent.first?[1] == GatewayEngineRig.apnsID(request))
            #expect(explained.recent.count == (request + 1) / 2 + 1, "with the registration")
        }
    }

    @Test("Who registers a token that a hash under a known seed cannot tell from another's sees nothing of the other")
    func strangers() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        // The second eight bytes cancel what goes before them: as numbers without a key, all such tokens are one.
        let cancelling = "6453f3d32de93f29"
        let own = try #require(("00112233445566aa" + cancelling).withByteView { DeviceToken(hex: $0) })
        let other = try #require(("b0112233445566bb" + cancelling).withByteView { DeviceToken(hex: $0) })
        try rig.ask(1) { $0.register(1, other, topic: 2) }
        try rig.ask(2) { $0.register(2, own, topic: 1) }
        try rig.ask(3) { $0.push(3, other, topic: 2) }
        #expect(try rig.ask(4) { $0.explain(4, own) }.recent.map { $0[0] } == ["registered"])
        #expect(try rig.ask(5) { $0.devicePushes(5, own) }.value(["pushes"]) as? [String] == [])
        #expect(try rig.ask(6) { $0.way(6, of: 3, device: own) }.status == 404)
        #expect(try rig.ask(7) { $0.explain(7, other) }.recent.map { $0[0] } == ["push", "registered"])
    }

    @Test("At most 32 things are shown")
    func count() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...50) { for request in 1...50 { $0.push(request, 1) } }
        let explained = try rig.ask(51) { $0.explain(51, 1) }
        #expect(explained.recent.map { $0[1] } == (19...50).reversed().map { GatewayEngineRig.apnsID($0) })
    }

    @Test("What happened in a failed commit, or behind it, never happened for the history")
    func failed() throws {
        let store = SimulatedStore()
        store.failOperation(7)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 1) }
        rig.gate.close()
        rig.step { $0.push(2, 1) }
        try rig.waitForCommit()
        rig.step { $0.push(3, 1) }
        rig.gate.open()
        #expect(try rig.answers(2...3).map(\.status) == [503, 503])
        let explained = try rig.ask(4) { $0.explain(4, 1) }
        #expect(explained.recent.map { $0[0] } == ["push", "registered"])
        #expect(explained.recent.first?[1] == GatewayEngineRig.apnsID(1))
        #expect(explained.string("pending", "apnsID") == GatewayEngineRig.apnsID(1))
    }

    @Test("The loss of a wake at a restart is in the history, once")
    func lost() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2) { $0.push(2, 1) }
        try rig.waitForWakes(1)
        let killed = SimulatedStore(rig.store.durable)
        rig.stop()
        let next = try GatewayEngineRig(killed)
        defer { next.stop() }
        let explained = try next.ask(1) { $0.explain(1, 1) }
        #expect(explained.recent.first == ["result", GatewayEngineRig.apnsID(2), "lost"])
        let again = try next.ask(2) { $0.explain(2, 1) }
        #expect(again.recent == explained.recent, "it is told once")
    }

    @Test("Too many events that wait are dropped, and that is said; questions are answered, later events are kept")
    func dropped() throws {
        let rig = try HistoryRig()
        rig.submit(200_000, of: 1, asking: 1)
        rig.submit(100_000, of: 2, asking: 2)
        rig.submit(5, of: 3, asking: 3)
        let answers = rig.finish()
        #expect(rig.bell.droppedEvents == 100_000)
        #expect(answers.map(\.request) == [1, 2, 3])
        #expect(answers.map(\.recent.count) == [32, 0, 5])
    }
}
