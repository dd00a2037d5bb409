import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("The delivery log tells the way of a push", .timeLimit(.minutes(15)))
struct DeliveryLogTests {
    @Test("A push that is launched and answered is completed, step by step, at once after its 200")
    func completed() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 1) }
        let waiting = try rig.ask(2) { $0.way(2, of: 1) }
        #expect(waiting.status == 200)
        #expect(waiting.string("apnsID") == GatewayEngineRig.apnsID(1) && waiting.string("state") == "pending")
        #expect(waiting.steps == [["received", "scheduled", ""]])
        #expect(try #require(waiting.integer("receivedAt")) > 1_700_000_000_000)
        try rig.ask(3) { $0.subscribe(3) }
        try rig.waitForWakes(1)
        #expect(try rig.ask(4) { $0.way(4, of: 1) }.string("state") == "inFlight")
        let wake = try rig.lastWake()
        try rig.ask(5) { $0.report(5, wake, .noData) }
        let ended = try rig.ask(6) { $0.way(6, of: 1) }
        #expect(ended.string("state") == "completed")
        let steps = [
            ["received", "scheduled", ""], ["launched", "attempt 1, coalesced 0", ""], ["result", "noData", ""],
        ]
        #expect(ended.steps == steps)
    }

    @Test("A coalesced push names the one it went into, which names it in turn")
    func coalesced() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...2) {
            $0.push(1, 1)
            $0.push(2, 1)
        }
        let older = try rig.ask(3) { $0.way(3, of: 1) }
        #expect(older.string("state") == "coalesced" && older.string("into") == GatewayEngineRig.apnsID(2))
        #expect(older.steps.last == ["coalesced", "", GatewayEngineRig.apnsID(2)])
        let newer = try rig.ask(4) { $0.way(4, of: 2) }
        #expect(newer.string("state") == "pending" && newer.string("into") == nil)
        #expect(newer.steps == [["received", "coalesced", ""], ["absorbed", "", GatewayEngineRig.apnsID(1)]])
    }

    @Test("A push that fails while another waits is coalesced into that one")
    func failed() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2) { $0.push(2, 1) }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        try rig.ask(3...4) {
            $0.push(3, 1)
            $0.report(4, wake, .failed)
        }
        let failed = try rig.ask(5) { $0.way(5, of: 2) }
        #expect(failed.string("state") == "coalesced" && failed.string("into") == GatewayEngineRig.apnsID(3))
        #expect(failed.steps.suffix(2) == [["result", "failed", ""], ["coalesced", "", GatewayEngineRig.apnsID(3)]])
        let heir = try rig.ask(6) { $0.way(6, of: 3) }
        #expect(heir.steps == [["received", "scheduled", ""], ["absorbed", "", GatewayEngineRig.apnsID(2)]])
        #expect(heir.string("state") == "pending")
    }

    @Test("A discarded push says why; one that wakes nobody says so; an unknown one is 404")
    func others() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...4) {
            $0.push(1, 1, expiration: 0)
            $0.push(2, 1, wakes: false)
            $0.push(3, 1)
            $0.unregister(4, 1)
        }
        let ways = try rig.ask(5...8) {
            $0.way(5, of: 1)
            $0.way(6, of: 2)
            $0.way(7, of: 3)
            $0.way(8, of: 99)
        }
        #expect(ways.prefix(3).map { $0.string("state") } == ["discarded", "noWake", "discarded"])
        #expect(ways.prefix(3).map { $0.string("reason") } == ["expired", nil, "unregistered"])
        #expect(ways[3].status == 404 && ways[3].string("reason") == "UnknownPush")
    }

    @Test("One name on two devices is two pushes: the last is told, or that of the device that is named")
    func twoDevices() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...3) {
            $0.push(1, 1, clientID: 700)
            $0.push(2, 2, clientID: 700)
            $0.unregister(3, 1)
        }
        let ways = try rig.ask(4...7) {
            $0.way(4, of: 700)
            $0.way(5, of: 700, device: 2)
            $0.way(6, of: 700, device: 1)
            $0.way(7, of: 700, device: 3)
        }
        #expect(ways.prefix(3).map { $0.string("state") } == ["discarded", "pending", "discarded"])
        #expect(ways[1].steps == [["received", "scheduled", ""]])
        #expect(ways[3].status == 404)
    }

    @Test("A device's last pushes are listed, the newest first and at most 32, each with its state")
    func list() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...40) { for request in 1...40 { $0.push(request, 1) } }
        let answers = try rig.ask(41...42) {
            $0.devicePushes(41, 1)
            $0.devicePushes(42, 9)
        }
        let pushes = answers[0].value(["pushes"]) as? [[String: Any]] ?? []
        #expect(pushes.map { $0["apnsID"] as? String } == (9...40).reversed().map { GatewayEngineRig.apnsID($0) })
        #expect(pushes.first?["state"] as? String == "pending")
        #expect(pushes.dropFirst().allSatisfy { $0["state"] as? String == "coalesced" })
        #expect(pushes.dropFirst().first?["into"] as? String == GatewayEngineRig.apnsID(40))
        #expect(answers[0].string("token")?.count == 64)
        #expect(answers[1].status == 404 && answers[1].string("reason") == "UnknownDevice")
    }

    @Test("A repeated push leaves no trace of its own")
    func repeated() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...3) { for request in 1...3 { $0.push(request, 1, clientID: 700) } }
        let way = try rig.ask(4) { $0.way(4, of: 700) }
        #expect(way.steps == [["received", "scheduled", ""]])
    }

    @Test("The log is asked still when nothing can be stored any more")
    func afterFailure() throws {
        let store = SimulatedStore()
        store.failOperation(7)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 1) }
        #expect(try rig.ask(2) { $0.push(2, 1) }.status == 503)
        let answers = try rig.ask(3...5) {
            $0.way(3, of: 1)
            $0.way(4, of: 2)
            $0.devicePushes(5, 1)
        }
        #expect(answers[0].string("state") == "pending")
        #expect(answers[1].status == 404, "it never happened")
        #expect((answers[2].value(["pushes"]) as? [Any])?.count == 1)
    }
}
