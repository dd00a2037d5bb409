import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("A push that comes again while its client had no answer", .timeLimit(.minutes(15)))
struct EngineRepeatTests {
    @Test("It is not answered before the commit of the first, and counted once")
    func duringSync() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        rig.gate.close()
        rig.step { $0.push(1, 1, clientID: 500) }
        try rig.waitForCommit()
        rig.step { $0.push(2, 1, clientID: 500) }
        rig.step { $0.push(3, 1, clientID: 500) }
        rig.takeTold()
        #expect(rig.told.isEmpty)
        rig.gate.open()
        let answers = try rig.answers(1...3)
        #expect(answers.map(\.status) == [200, 200, 200])
        #expect(answers.map(\.text) == ["scheduled", "scheduled", "scheduled"])
        #expect(rig.store.commits == 2, "a repeat has nothing to store")
        let statistics = try rig.ask(4) { $0.statistics(4) }
        #expect(statistics.integer("pushes", "accepted") == 1)
        #expect(statistics.integer("pushes", "coalesced") == 0)
    }

    @Test("When the commit of the first fails, it is refused with it")
    func failedCommit() throws {
        let store = SimulatedStore()
        // A load, and a commit's two operations, come first; then the writing of this one.
        store.failOperation(5)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        rig.gate.close()
        rig.step { $0.push(1, 1, clientID: 500) }
        try rig.waitForCommit()
        rig.step { $0.push(2, 1, clientID: 500) }
        rig.gate.open()
        #expect(try rig.answers(1...2).map(\.status) == [503, 503])
    }

    @Test("After a kill it is answered as before it, and the wake it launched goes to a worker once more and no more")
    func killed() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.subscribe(1) }
        #expect(try rig.ask(2) { $0.push(2, 1, .immediate, clientID: 500) }.text == "launched")
        try rig.waitForWakes(1)
        let killed = SimulatedStore(rig.store.durable)
        rig.stop()
        let next = try GatewayEngineRig(killed)
        defer { next.stop() }
        #expect(try next.ask(2) { $0.push(2, 1, .immediate, clientID: 500) }.text == "launched")
        try next.ask(3) { $0.subscribe(3) }
        try next.waitForWakes(1)
        let wake = try next.lastWake()
        try next.ask(4) { $0.report(4, wake, .newData) }
        try next.ask(5) { $0.push(5, 1, .immediate, clientID: 500) }
        let statistics = try next.ask(6) { $0.statistics(6) }
        #expect(statistics.integer("pushes", "accepted") == 1)
        #expect(statistics.integer("pushes", "completed") == 1)
        #expect(next.wakes.count == 1)
    }

    @Test("A dry run under a name that was used is answered anew, and keeps no name")
    func dryRun() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...5) {
            $0.push(1, 1, clientID: 500)
            $0.push(2, 1, isDryRun: true, clientID: 500)
            $0.push(3, 1, isDryRun: true, clientID: 501)
            $0.push(4, 1, clientID: 501)
            $0.push(5, 1, clientID: 500)
        }
        #expect(
            (1...5).map { rig.answer($0)?.text } == ["scheduled", "coalesced", "coalesced", "coalesced", "scheduled"]
        )
        #expect(try rig.ask(6) { $0.statistics(6) }.integer("pushes", "accepted") == 2)
    }
}
