import Engine
import Foundation
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("The engine with a changed configuration", .timeLimit(.minutes(15)))
struct EngineReloadTests {
    @Test("A policy has a number, which grows with each change and never with a reload that changes nothing")
    func versions() throws {
        let rig = try GatewayEngineRig()
        let versions = Mutex<[UInt32]>([])
        let other = EngineRig.open([(.launchInterval, 60)])
        var bounds = other
        bounds.devicesMax = 5
        for configuration in [EngineRig.open(), other, other, bounds, EngineRig.open()] {
            rig.step {
                $0.configure(configuration) { number in versions.withLock { $0.append(number) } }
            }
        }
        #expect(versions.withLock { $0 } == [1, 2, 2, 2, 3])
        try rig.ask(1) { $0.push(1, 1) }
        #expect(try rig.ask(2) { $0.explain(2, 1) }.integer("policyVersion") == 3)
    }

    @Test("Within one step, pushes before the change use the old policy, and later ones the new one")
    func order() throws {
        let rig = try GatewayEngineRig()
        var closed = EngineRig.open()
        closed.openRegistration = false
        let answers = try rig.ask(1...2) {
            $0.push(1, 1)
            $0.configure(closed)
            $0.push(2, 2)
        }
        #expect(answers.map(\.status) == [200, 400])
    }

    @Test("A device that waits at a reload is launched by the new policy, and its launch names the version")
    func waiting() throws {
        let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
        let world = EngineWorld(clock, seed: 1)
        let rig = try GatewayEngineRig(SimulatedStore(), EngineRig.open([(.launchInterval, 3600)]), world: world)
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

    @Test("The policy number survives a restart, and the next start with another policy increases it")
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
}
