import Engine
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("The engine with a changed configuration", .timeLimit(.minutes(15)))
struct EngineReloadTests {
    @Test("A policy has a number, which grows with each change, and not with a reload or restart without one")
    func versions() throws {
        let store = SimulatedStore()
        let rig = try GatewayEngineRig(store)
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
        rig.stop()
        for (configuration, number) in [(EngineRig.open(), 3), (other, 4)] as [(EngineConfiguration, Int64)] {
            let next = try GatewayEngineRig(store, configuration)
            #expect(try next.ask(1) { $0.explain(1, 1) }.integer("policyVersion") == number)
            next.stop()
        }
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
}
