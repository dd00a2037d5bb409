import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Repeated pushes with a client's apns-id", .timeLimit(.minutes(15)))
struct RepeatedPushTests {
    /// Situations that cover every possible answer to a push.
    enum Situation: CaseIterable {
        case launched, scheduled, coalesced, discarded, noWake, held

        func arrange(_ rig: EngineRig) {
            rig.register(1)
            switch self {
            case .launched, .discarded, .noWake: break
            case .scheduled:
                if let wake = rig.push(1, workerIsFree: true)?.wake {
                    _ = rig.engine.report(.push(.newData), wake: wake)
                }
            case .coalesced: rig.push(1)
            case .held: rig.conditions(1) { $0.network = false }
            }
        }

        @discardableResult
        func push(_ rig: EngineRig) -> PushAnswer? {
            rig.push(
                1,
                .considerate,
                self == .discarded ? .nowOrNever : .absent,
                workerIsFree: self == .launched,
                wakes: self != .noWake,
                clientID: 77
            )
        }
    }

    @Test("A push is remembered for ten minutes, then its name means another push")
    func tenMinutes() throws {
        let rig = EngineRig()
        rig.push(1, clientID: 5)
        rig.advance(by: 599_999)
        #expect(rig.push(1, clientID: 5)?.disposition == .scheduled)
        #expect(rig.engine.totals.accepted == 1)
        rig.advance(by: 1)
        #expect(rig.push(1, clientID: 5)?.disposition == .coalesced)
        #expect(rig.engine.totals.accepted == 2)
    }

    @Test("The last four of a device are remembered, of every device its own")
    func lastFour() {
        let rig = EngineRig()
        for id in UInt64(1)...5 { rig.push(1, clientID: id) }
        // Pushes without a client-supplied apns-id do not displace remembered ones.
        for _ in 0..<9 { rig.push(1) }
        let accepted = rig.engine.totals.accepted
        _ = rig.takeEvents(1)
        for id in UInt64(2)...5 { rig.push(1, clientID: id) }
        #expect(rig.engine.totals.accepted == accepted && rig.takeEvents(1).isEmpty)
        rig.push(2, clientID: 5)
        #expect(rig.engine.totals.accepted == accepted + 1, "another device's push is another push")
        rig.push(1, clientID: 1)
        #expect(rig.engine.totals.accepted == accepted + 2, "the fifth is forgotten")
    }

    @Test("An apns-id that the gateway made, or that a dry run named, does not count as a repeat")
    func exempt() throws {
        let rig = DispatchRig()
        rig.push(1)
        let generated = rig.rig.lastPush
        #expect(rig.push(1, clientID: generated)?.disposition == .coalesced)
        #expect(rig.push(1, isDryRun: true, clientID: 900)?.disposition == .coalesced)
        #expect(rig.push(1, clientID: 900)?.disposition == .coalesced)
        #expect(rig.engine.totals.accepted == 3)
    }

    @Test("A restarted process gives the same answer", arguments: Situation.allCases)
    func restored(situation: Situation) throws {
        let rig = EngineRig()
        let store = SimulatedStore()
        situation.arrange(rig)
        try store.commit(from: rig.engine)
        let first = try #require(situation.push(rig))
        if situation == .scheduled { #expect(first.eligibleAt != nil) }
        if situation == .held { #expect(first.held == .network) }
        try store.commit(from: rig.engine)
        rig.pass(1000)
        let next = try rig.restarted(from: store)
        next.engine.loseEveryWake()
        let counters = next.engine.totals
        let again = try #require(situation.push(next))
        #expect(again.disposition == first.disposition)
        #expect(again.eligibleAt == first.eligibleAt && again.held == first.held && again.wake == nil)
        #expect(next.engine.totals == counters)
        next.advance(by: 599_000)
        situation.push(next)
        #expect(next.engine.totals.accepted + next.engine.totals.noWake == counters.accepted + counters.noWake + 1)
    }
}
