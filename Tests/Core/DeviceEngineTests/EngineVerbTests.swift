import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The engine's verbs", .timeLimit(.minutes(15)))
struct EngineVerbTests {
    @Test("A dry run answers like the push, and changes nothing", arguments: Priority.allCases, [false, true])
    func dryRun(priority: Priority, workerIsFree: Bool) throws {
        let rig = EngineRig()
        rig.register(1)
        for round in 0..<4 {
            let before = rig.snapshot(1)
            let counters = rig.engine.totals
            _ = rig.engine.takeStep()
            _ = rig.takeEvents(1)
            let foretold = rig.makePush(priority) {
                rig.engine.acceptDryRun(
                    $0,
                    $1,
                    device: rig.index(1),
                    topic: rig.engine.identity(rig.index(1)).topic,
                    workerIsFree: workerIsFree
                )
            }
            #expect(rig.engine.totals == counters)
            let step = rig.engine.takeStep()
            #expect(step.devices.isEmpty && step.topics.isEmpty && rig.takeEvents(1).isEmpty)
            let after = rig.snapshot(1)
            #expect(after.state == before.state && after.held == before.held)
            let answer = try #require(rig.push(1, priority, workerIsFree: workerIsFree))
            #expect(answer.disposition == foretold.disposition, "round \(round)")
            #expect(answer.eligibleAt == foretold.eligibleAt && answer.held == foretold.held, "round \(round)")
            #expect(foretold.wake == nil)
            rig.advance(by: 1000)
        }
    }

    @Test("A forced launch ignores every hold, and costs nothing")
    func forcedLaunch() throws {
        let rig = EngineRig()
        rig.register(1)
        rig.conditions(1) { $0.network = false }
        rig.push(1)
        let spacing = rig.snapshot(1).state.spacing
        let wake = try #require(rig.engine.launchForced(rig.index(1)))
        #expect(rig.engine.launchedWake(wake)?.content?.apnsID == EngineRig.apnsID(rig.lastPush))
        #expect(rig.snapshot(1).state.spacing == spacing)
        #expect(rig.engine.totals.held.sum == 0 && rig.engine.totals.inFlight == 1)
    }

    @Test("A forced expiry ends the wake in flight as the deadline would")
    func forcedExpiry() throws {
        let rig = EngineRig()
        rig.register(1)
        #expect(rig.engine.expireForced(rig.index(1)) == nil)
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        #expect(rig.engine.expireForced(rig.index(1)) == wake)
        #expect(rig.snapshot(1).state.penalty == 1 && rig.snapshot(1).state.pending?.attempts == 1)
        #expect(rig.engine.totals.results[.expired] == 1)
        #expect(rig.engine.expireForced(rig.index(1)) == nil)
        #expect(rig.engine.popExpiredWake() == nil)
    }

    @Test("Time never runs backwards, and a step examines a limited number of devices")
    func advance() throws {
        // Warnings, which would add due times, are disabled.
        let rig = EngineRig(EngineRig.open([(.expirationLead, 0)]))
        for device in 0..<5 { _ = try #require(rig.push(device, workerIsFree: true)?.wake) }
        let late = rig.instant + 30_000
        #expect(!rig.engine.advance(to: late, devicesMax: 2))
        #expect(rig.engine.totals.results[.expired] == 2)
        #expect(!rig.engine.advance(to: rig.instant, devicesMax: 2))
        #expect(rig.engine.now == late && rig.engine.totals.results[.expired] == 4)
        #expect(rig.engine.advance(to: late, devicesMax: 2))
        #expect(rig.engine.totals.results[.expired] == 5)
    }

    @Test("The engine reports the events of a device once and in order")
    func events() throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.push(1)
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        rig.push(1)
        rig.conditions(1) { $0.charging = true }
        let events = rig.takeEvents(1)
        #expect(
            events.map(\.kind) == [
                .registered, .push(.launched), .launch(.push, attempt: 1, coalesced: 0), .push(.scheduled),
                .result(.push(.failed)),
                .push(.coalesced), .conditions,
            ]
        )
        #expect(events.map(\.apnsID) == Self.ids(nil, 1, 1, 2, 1, 3, nil))
        #expect(events.map(\.related) == Self.ids(nil, nil, nil, nil, 2, 2, nil))
        #expect(rig.takeEvents(1).isEmpty)
    }

    private static func ids(_ numbers: UInt64?...) -> [APNsID?] {
        numbers.map { number in number.map { EngineRig.apnsID($0) } }
    }
}
