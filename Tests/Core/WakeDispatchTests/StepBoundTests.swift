import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("What one step does at most", .timeLimit(.minutes(15)))
struct StepBoundTests {
    @Test("A stream with room for a crowd that waits gets it in steps, in the order in which it came")
    func crowd() {
        let rig = DispatchRig(workPerStepMax: 16)
        for device in 0..<100 { rig.push(device) }
        rig.subscribe(1, slots: 1000)
        var tokens = rig.takeDeliveries().map(\.token)
        #expect(tokens.count == 16)
        // Another topic's push does not wait for it.
        rig.subscribe(2, topic: 1, slots: 1)
        rig.push(1000, topic: 1)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) {
            let delivered = rig.takeDeliveries().map(\.token)
            #expect(delivered.count <= 16)
            tokens += delivered
            steps += 1
        }
        tokens += rig.takeDeliveries().map(\.token)
        #expect(steps == 5)
        #expect(tokens == (0..<100).map { EngineRig.token($0) })
        #expect(!rig.dispatcher.isBehind)
    }

    @Test("Naming streams that come at once get their devices in steps")
    func namingStreams() {
        let rig = DispatchRig(workPerStepMax: 8)
        for device in 0..<60 { rig.push(device) }
        for stream in 0..<60 { rig.subscribe(stream, slots: 1, devices: [stream]) }
        #expect(rig.takeDeliveries().count == 8)
        var count = 8
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) {
            let delivered = rig.takeDeliveries().count
            #expect(delivered <= 8)
            count += delivered
        }
        #expect(count + rig.takeDeliveries().count == 60)
    }

    @Test("Streams that end at once lose their wakes in steps; until then an answer to one of them is taken")
    func endedStreams() throws {
        let rig = DispatchRig(EngineRig.open([(.maxAttempts, 1)]), workPerStepMax: 16)
        for stream in 0..<3 { rig.subscribe(stream, slots: 30) }
        for device in 0..<90 { rig.push(device) }
        let wakes = rig.takeDeliveries()
        #expect(wakes.count == 90)
        #expect(rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000))
        for stream in 0..<3 { rig.endStream(stream) }
        #expect(rig.engine.totals.results[.lost] == 16)
        #expect(rig.dispatcher.isBehind)
        #expect(rig.dispatcher.workerCounts(nil) == .init())
        rig.subscribe(4, topic: 1)
        rig.push(1000, topic: 1)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(4)])
        let late = try #require(wakes.last { $0.stream == DispatchRig.address(2) })
        #expect(rig.report(.newData, late.wake) == .ended)
        #expect(rig.report(.newData, late.wake) == .repeated)
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) { steps += 1 }
        #expect(steps == 4)
        #expect(rig.engine.totals.results[.lost] == 89)
        #expect(rig.engine.totals.results[.newData] == 1)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 1, busy: 1))
    }
}
