import Engine
import Foundation
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("The engine under another configuration", .timeLimit(.minutes(15)))
struct EngineReloadTests {
    private final class Versions: Sendable {
        let numbers = Mutex<[UInt32]>([])
    }

    @Test("A policy has a number, which grows with each change and never with a reload that changes nothing")
    func versions() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        let versions = Versions()
        let other = EngineRig.open([(.launchInterval, 60)])
        var bounds = other
        bounds.devicesMax = 5
        for configuration in [EngineRig.open(), other, other, bounds, EngineRig.open()] {
            rig.step {
                $0.configure(configuration) { number in versions.numbers.withLock { $0.append(number) } }
            }
        }
        #expect(versions.numbers.withLock { $0 } == [1, 2, 2, 2, 3])
        try rig.ask(1) { $0.push(1, 1) }
        #expect(try rig.ask(2) { $0.explain(2, 1) }.integer("policyVersion") == 3)
    }

    @Test("Pushes of one step before the change are under the old policy, those behind it under the new one")
    func order() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        var closed = EngineRig.open()
        closed.openRegistration = false
        let answers = try rig.ask(1...2) {
            $0.push(1, 1)
            $0.configure(closed)
            $0.push(2, 2)
        }
        #expect(answers.map(\.status) == [200, 400])
    }

    @Test("A device that waits by the old policy is launched by the new one, and its launch says by which")
    func waiting() throws {
        let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
        let world = EngineWorld(clock, seed: 1)
        let rig = try GatewayEngineRig(SimulatedStore(), EngineRig.open([(.launchInterval, 3600)]), world: world)
        defer { rig.stop() }
        rig.step { $0.subscribe(100) }
        try rig.ask(1) { $0.push(1, 1) }
        try rig.waitForWakes(1)
        let first = try rig.lastWake()
        try rig.ask(2) { $0.report(2, first, .newData) }
        try rig.ask(3) { $0.push(3, 1) }
        let before = try rig.ask(4) { $0.explain(4, 1) }
        #expect(before.integer("policyVersion") == 1)
        clock.change { $0.pass(60_000) }
        rig.step()
        #expect(rig.wakes.count == 1)
        rig.step { $0.configure(EngineRig.open([(.launchInterval, 60)])) }
        try rig.run("the second wake") { rig in
            if rig.wakes.count < 2 { rig.step() }
            return rig.wakes.count == 2
        }
        let after = try rig.ask(5) { $0.explain(5, 1) }
        #expect(after.integer("policyVersion") == 2)
        let launches = (after.value(["recent"]) as? [[String: Any]] ?? []).filter { $0["event"] as? String == "launch" }
        #expect(launches.map { $0["policyVersion"] as? Int } == [2, 1])
    }

    @Test("The number outlives a restart, and the next start with another policy has the next one")
    func restart() throws {
        let store = SimulatedStore()
        let other = EngineRig.open([(.launchInterval, 60)])
        let first = try GatewayEngineRig(store)
        first.step { $0.configure(other) }
        try first.ask(1) { $0.push(1, 1) }
        first.stop()
        for (configuration, number) in [(other, 2), (other, 2), (EngineRig.open(), 3)] as [(EngineConfiguration, Int64)]
        {
            let next = try GatewayEngineRig(store, configuration)
            #expect(try next.ask(1) { $0.explain(1, 1) }.integer("policyVersion") == number)
            next.stop()
        }
    }

    @Test("After a failed commit a reload is taken, and nothing else is stepped")
    func failed() throws {
        let store = SimulatedStore()
        store.failOperation(7)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 1) }
        #expect(try rig.ask(2) { $0.push(2, 1) }.status == 503)
        let versions = Versions()
        rig.step {
            $0.configure(EngineRig.open([(.launchInterval, 60)])) { number in
                versions.numbers.withLock { $0.append(number) }
            }
        }
        #expect(versions.numbers.withLock { $0 } == [2])
        #expect(try rig.ask(3) { $0.push(3, 1) }.status == 503)
    }
}

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
