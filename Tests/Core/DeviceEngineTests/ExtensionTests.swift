import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("More time for wakes", .timeLimit(.minutes(15)))
struct ExtensionTests {
    @Test("A wake lasts as long as its extension allows, and the history and the step record the extension")
    func lasts() throws {
        let rig = EngineRig(EngineRig.open([(.maxExtension, 45)]))
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        _ = rig.engine.takeStep()
        _ = rig.takeEvents(1)
        rig.advance(by: 20_000)
        #expect(rig.engine.extend(wake, by: 10_000) == .lasts(rig.instant + 10_000))
        #expect(rig.engine.takeStep().devices.isEmpty)
        #expect(rig.engine.extend(wake, by: 30_000) == .lasts(rig.instant + 30_000))
        #expect(rig.engine.takeStep().devices.count == 1)
        let events = rig.takeEvents(1)
        #expect(events.map(\.kind) == [.extended(.push, seconds: 30)])
        #expect(events.first?.apnsID == EngineRig.apnsID(rig.lastPush))
        rig.advance(by: 29_999)
        #expect(rig.engine.popExpiredWake() == nil)
        #expect(rig.engine.extend(wake, by: 60_000) == .lasts(rig.instant + 25_001))
        #expect(rig.engine.extend(wake, by: 60_000) == .limitReached(rig.instant + 25_001))
        rig.advance(by: 25_001)
        #expect(rig.engine.popExpiredWake()?.id == wake)
        #expect(rig.engine.totals.results[.expired] == 1)
    }
}
