import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Wakes that ended", .timeLimit(.minutes(15)))
struct EndedWakeTests {
    /// Launches a wake on a new device in `rig` and ends it with `outcome`.
    private static func endedWake(_ outcome: WakeOutcome, _ rig: EngineRig) throws -> WakeID {
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        switch outcome {
        case .newData: #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
        case .noData: #expect(rig.engine.report(.push(.noData), wake: wake) == .ended)
        case .failed: #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        case .expired:
            rig.advance(by: 30_000)
            #expect(rig.engine.popExpiredWake()?.id == wake)
        case .lost: rig.engine.lose(wake)
        }
        return wake
    }

    @Test(
        "A second answer is repeated or says how it ended",
        arguments: WakeOutcome.allCases,
        FetchResult.allCases
    )
    func secondAnswer(outcome: WakeOutcome, answer: FetchResult) throws {
        let rig = EngineRig()
        let wake = try Self.endedWake(outcome, rig)
        let counters = rig.engine.totals
        #expect(counters.results[outcome] == 1)
        let state = rig.snapshot(1).state
        let expected: ReportOutcome =
            outcome.rawValue == answer.rawValue ? .repeated : .endedOtherwise(.push(outcome))
        #expect(rig.engine.report(.push(answer), wake: wake) == expected)
        rig.engine.lose(wake)
        #expect(rig.engine.totals == counters)
        #expect(rig.snapshot(1).state == state)
        #expect(rig.engine.launchedWake(wake) == nil)
    }

    @Test("In the same millisecond an answer precedes the expiry of a pending push")
    func answerBeforeExpiry() throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.push(1, .considerate, .at(rig.instant + 10_000))
        rig.pass(10_000)
        #expect(!rig.engine.advance(to: rig.instant, devicesMax: 0))
        // The failed push is coalesced into the pending one and extends its expiry.
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        #expect(rig.snapshot(1).state.pending?.coalesced == 1)
        #expect(rig.engine.totals.discarded.sum == 0)
    }
}

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
