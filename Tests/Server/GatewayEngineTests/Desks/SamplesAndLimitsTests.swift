import Engine
import Foundation
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Samples and bounds of an engine", .timeLimit(.minutes(15)))
struct SamplesAndLimitsTests {
    @Test("There is a sample a second, and none of seconds that nobody was awake for")
    func samples() throws {
        let rig = DeskRig()
        let desk = LiveDesk()
        let sampler = LiveSampler(desk, rig.records, rig.limits)
        let start = rig.rig.now
        for passed in [0, 1, 999, 1000, 1500, 2000, 9_300, 9_999, 10_300] as [Int64] {
            sampler.look(Instant(milliseconds: start + passed), rig.workspace(), rig.requests, loopCount: 1)
        }
        let json = try #require(desk.samples(seconds: 1))
        let series = try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]
        let rows = try #require(series?["samples"] as? [[NSNumber]])
        #expect(rows.map { $0[0].int64Value - start - 10_000 } == [0, 1000, 2000, 9_300, 10_300])
        #expect(sampler.nextAt == start + 11_300)
    }

    @Test("A bound that was met is counted, a dispatcher's also when it is let go of")
    func limits() {
        let rig = DeskRig()
        #expect(rig.limits.met(rig.dispatcher).isEmpty)
        rig.limits.met(.devicesMax)
        rig.limits.met(.devicesMax)
        #expect(rig.limits.met(rig.dispatcher).map { "\($0.name) \($0.count)" } == ["devicesMax 2"])
        rig.limits.met(.taskTopicPercentMax)
        #expect(rig.limits.met(rig.dispatcher).first { $0.name == "taskTopicPercentMax" }?.count == 1)
        let full = DispatchRig(wakeBytesPerStreamMax: 1)
        full.subscribe(1)
        full.push(1)
        #expect(full.dispatcher.timesStreamWasFull == 1)
        rig.limits.take(from: full.dispatcher)
        let met = rig.limits.met(full.dispatcher).first { $0.name == "wakeBytesPerStreamMax" }
        #expect(met?.count == 2, "what is gone, and what counts on")
        #expect(rig.limits.all(rig.dispatcher).count > 8)
    }
}
