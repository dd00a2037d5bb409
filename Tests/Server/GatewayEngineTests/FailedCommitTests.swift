import Engine
import Foundation
import Gateway
import Platform
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("A loop that was busy for long", .timeLimit(.minutes(15)))
struct EffectOrderTests {
    @Test("The effects of many steps are in their order, each with its own bytes")
    func joined() throws {
        let rig = try GatewayEngineRig()
        rig.step { $0.subscribe(1, slots: 64) }
        let requests = 100..<140
        for request in requests {
            rig.step {
                $0.push(request, request, collapseID: Array(repeating: UInt8(ascii: "c"), count: request - 100))
                $0.statistics(request + 1000)
            }
        }
        rig.stop()
        #expect(rig.told.first?.answered == 1)
        #expect(rig.wakes.map { $0.integer("payload", "n") } == requests.map { Int64($0) })
        #expect(rig.wakes.map { $0.string("device") } == requests.map { EngineRig.token($0).hex })
        #expect(rig.wakes.map { $0.string("collapseID")?.count ?? 0 } == requests.map { $0 - 100 })
        let answers = rig.told.filter { $0.isAnswer }.dropFirst()
        #expect(answers.map(\.request) == requests.flatMap { [$0, $0 + 1000] })
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(answers.compactMap { $0.integer("pushes", "accepted") } == requests.map { Int64($0 - 99) })
    }
}

@Suite("While a commit does not end", .timeLimit(.minutes(15)))
struct DelayedCommitTests {
    @Test("After ten seconds readiness is refused immediately with the cause, until the commit ends")
    func readiness() throws {
        let clock = SharedClock(boot: 5_000, wall: 1_700_000_000_000)
        let rig = try GatewayEngineRig(world: EngineWorld(clock, seed: 1))
        defer { rig.stop() }
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        clock.change { $0.pass(LocalEngine.delayMax - 1) }
        rig.step { $0.readiness(2) }
        rig.takeOutputs()
        #expect(rig.answer(2) == nil)
        clock.change { $0.pass(1) }
        rig.step {
            $0.push(3, 2)
            $0.readiness(4)
        }
        rig.takeOutputs()
        #expect(rig.answer(4)?.status == 503 && rig.answer(4)?.text.contains("has not ended for 10 s") == true)
        #expect(rig.answer(1) == nil && rig.answer(2) == nil && rig.answer(3) == nil)
        rig.gate.open()
        #expect(try rig.answers(1...3).map(\.status) == [200, 200, 200])
        #expect(try rig.ask(5) { $0.readiness(5) }.status == 200)
    }
}

@Suite("After a failed commit", .timeLimit(.minutes(15)))
struct FailedCommitTests {
    @Test("A loop that steps the engine leaves reading the durable state to the engine's thread")
    func loopSteps() throws {
        let store = SimulatedStore()
        // The first operations are a load, a beginning and the commit of the start.
        store.failOperation(4)
        let rig = try GatewayEngineRig(store)
        rig.step { $0.push(1, 1) }
        // The store has finished and wakes the engine.
        while rig.wakeup.wait(until: Date(timeIntervalSinceNow: 60)) == false {}
        let wait = rig.stepOnLoop { $0.push(2, 2) }
        rig.takeOutputs()
        #expect(wait == 0, "the engine's thread should continue immediately")
        #expect(rig.wakeup.failures.isEmpty && rig.answer(1) == nil && rig.answer(2) == nil)
        rig.step()
        rig.takeOutputs()
        #expect(rig.wakeup.failures.count == 1 && rig.answer(1)?.status == 503 && rig.answer(2)?.status == 503)
    }

    @Test("A drain that waits for a failing commit is not lost")
    func drainBehind() throws {
        let store = SimulatedStore()
        store.failOperation(5)
        let rig = try GatewayEngineRig(store)
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        rig.step { $0.drain() }
        rig.gate.open()
        try rig.run("the word to the loops") { $0.told.isDraining }
        #expect(try rig.answers(1...1)[0].status == 503)
        rig.stop()
    }

    @Test("The watchdog is satisfied while the engine reads a large durable state")
    func longReload() throws {
        let store = SimulatedStore()
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        try rig.ask(1...20) { requests in for number in 1...20 { requests.push(number, number) } }
        store.failOperation(store.operations)
        var areAnswered: [Bool] = []
        store.whileReloading = {
            areAnswered.append(rig.pulse.isAnswered)
            rig.pulse.ask()
        }
        rig.step { $0.push(21, 21) }
        #expect(try rig.answers(21...21)[0].status == 503)
        #expect(areAnswered.count > 20 && areAnswered.allSatisfy(\.self), "\(areAnswered)")
    }

    @Test("A failure during the last commit of a shutdown is reported, and waiting requests are refused")
    func failureAtTheEnd() throws {
        let store = SimulatedStore()
        store.failOperation(5)
        let rig = try GatewayEngineRig(store)
        rig.step { $0.push(1, 1) }
        rig.stop()
        #expect(rig.wakeup.failures.count == 1)
        #expect(rig.answer(1)?.status == 503)
        #expect(store.misuses.isEmpty)
    }
}
