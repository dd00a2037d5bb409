import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Wakes that ended", .timeLimit(.minutes(15)))
struct EndedWakeTests {
    /// Ends a wake of a new device in `rig` as `outcome`.
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
        let books = rig.engine.totals
        #expect(books.results[outcome] == 1)
        let state = rig.snapshot(1).state
        let expected: ReportOutcome =
            outcome.rawValue == answer.rawValue ? .repeated : .endedOtherwise(.push(outcome))
        #expect(rig.engine.report(.push(answer), wake: wake) == expected)
        rig.engine.lose(wake)
        #expect(rig.engine.totals == books)
        #expect(rig.snapshot(1).state == state)
        #expect(rig.engine.launchedWake(wake) == nil)
    }

    @Test("An ended wake is remembered for ten minutes")
    func tenMinutes() throws {
        let rig = EngineRig()
        let wake = try Self.endedWake(.newData, rig)
        rig.advance(by: 599_999)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .repeated)
        rig.advance(by: 1)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .unknown)
    }

    @Test("The last four of a device are remembered, of every device its own")
    func fourADevice() throws {
        let rig = EngineRig()
        let other = try #require(rig.push(2, workerIsFree: true)?.wake)
        #expect(rig.engine.report(.push(.noData), wake: other) == .ended)
        rig.register(1)
        rig.conditions(1) { $0.appState = .active }
        var wakes: [WakeID] = []
        for _ in 0..<6 {
            let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
            #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
            wakes.append(wake)
            rig.advance(by: 1000)
        }
        for wake in wakes[..<2] { #expect(rig.engine.report(.push(.newData), wake: wake) == .unknown) }
        for wake in wakes[2...] { #expect(rig.engine.report(.push(.newData), wake: wake) == .repeated) }
        #expect(rig.engine.report(.push(.noData), wake: other) == .repeated)
        // Each is forgotten at its own time, also when others made room before.
        rig.advance(by: 600_000 - 3000)
        #expect(rig.engine.report(.push(.newData), wake: wakes[3]) == .unknown)
        #expect(rig.engine.report(.push(.newData), wake: wakes[4]) == .repeated)
        #expect(rig.engine.report(.push(.noData), wake: other) == .unknown)
    }

    /// So many ids are known, and so many devices have ended wakes.
    private static func expectKnown(_ ids: Int, _ devices: Int, _ rig: EngineRig) {
        #expect(rig.engine.wakesKnown.ids == ids)
        #expect(rig.engine.wakesKnown.devicesWithEnded == devices)
    }

    @Test("After a long sleep of the machine a step forgets the wakes of no more devices than it may look at")
    func forgottenInSteps() throws {
        let rig = EngineRig()
        for device in 0..<1000 {
            let wake = try #require(rig.push(device, workerIsFree: true)?.wake)
            #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
        }
        Self.expectKnown(1000, 1000, rig)
        rig.pass(3_600_000)
        for step in 1...3 {
            #expect(!rig.engine.advance(to: rig.instant, devicesMax: 256))
            Self.expectKnown(1000 - step * 256, 1000 - step * 256, rig)
        }
        #expect(rig.engine.advance(to: rig.instant, devicesMax: 256))
        Self.expectKnown(0, 0, rig)
    }

    @Test("At one millisecond an answer goes before the expiry of what is pending")
    func answerBeforeExpiry() throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.push(1, .considerate, .at(rig.instant + 10_000))
        rig.pass(10_000)
        #expect(!rig.engine.advance(to: rig.instant, devicesMax: 0))
        // The failed push lives on in the pending one, whose life it prolongs.
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        #expect(rig.snapshot(1).state.pending?.coalesced == 1)
        #expect(rig.engine.totals.discarded.sum == 0)
    }
}
