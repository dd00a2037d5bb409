import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The books", .timeLimit(.minutes(15)))
struct BooksTests {
    @Test("They conserve after every step, whatever happens, and topics add up", arguments: UInt64(1)...20)
    func conserve(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let rig = EngineRig(
            EngineRig.open([(.launchInterval, 60), (.defaultTTL, 300), (.dailyLaunches, 9)]),
            seed: seed
        )
        var wakes: Set<WakeID> = []
        var everLaunched: [WakeID] = []
        for step in 0..<400 {
            Self.act(rig, &generator, &everLaunched)
            let books = rig.engine.totals
            #expect(books.accepted == books.accountedFor, "seed \(seed), step \(step)")
            wakes = Set(everLaunched.filter { rig.engine.launchedWake($0) != nil })
            #expect(books.launched == books.results.sum + Int64(wakes.count), "seed \(seed), step \(step)")
            Self.compareGauges(rig, books, "seed \(seed), step \(step)")
        }
        let books = rig.engine.totals
        #expect(books.completed > 0 && books.coalesced > 0 && books.discarded[.expired] > 0)
        #expect(books.results[.expired] > 0 && books.results[.lost] > 0 && books.results[.failed] > 0)
    }

    /// Gauges against what the devices say of themselves.
    private static func compareGauges(_ rig: EngineRig, _ books: Books, _ place: Comment) {
        var naive: [Hold: Int64] = [:]
        var pending: Int64 = 0
        var registered: Int64 = 0
        for device in 0..<12 where rig.find(device) != nil {
            let snapshot = rig.snapshot(device)
            registered += snapshot.isRegistered ? 1 : 0
            pending += snapshot.pendingID == nil ? 0 : 1
            if let first = snapshot.held.first { naive[first, default: 0] += 1 }
        }
        #expect(rig.engine.totals == books, "a look changed the books: \(place)")
        #expect(books.pending == pending && books.registered == registered, place)
        for code in Hold.ofPushes { #expect(books.held[code] == naive[code] ?? 0, place) }
        let sum = rig.engine.topicSnapshots.reduce(into: Books()) { $0 += $1.books }
        #expect(sum == books, place)
    }

    private static func act(_ rig: EngineRig, _ generator: inout SeededGenerator, _ wakes: inout [WakeID]) {
        let device = generator.number(below: 12)
        let topic = device % 3
        let known = rig.find(device)
        switch generator.number(below: 16) {
        case 0..<5:
            let expiration = generator.pick(
                [
                    .absent, .nowOrNever, .at(rig.instant), .at(rig.instant + 20_000), .at(rig.instant + 200_000),
                ] as [ArrivingPush.Expiration]
            )
            let priority = generator.pick(Priority.allCases)
            let answer = rig.push(device, topic: topic, priority, expiration, workerIsFree: generator.once(in: 2))
            if let wake = answer?.wake { wakes.append(wake) }
        case 5..<8: rig.advance(by: Int64(generator.pick([0, 1, 5000, 31_000, 61_000])))
        case 8..<10:
            if let wake = wakes.last(where: { rig.engine.launchedWake($0) != nil }) {
                _ = rig.engine.report(.push(generator.pick(FetchResult.allCases)), wake: wake)
            }
        case 10: if let wake = wakes.last { rig.engine.lose(wake) }
        case 11:
            guard known != nil else { break }
            rig.conditions(device) { report in
                report.appState = generator.pick([.background, .background, .active, .forceQuit])
                report.network = !generator.once(in: 3)
            }
        case 12: if generator.once(in: 3), let known { rig.engine.unregister(known) }
        case 13: rig.register(device, topic: topic)
        case 14:
            guard let known, case .launched(let wake) = rig.engine.launchForced(known) else { break }
            wakes.append(wake)
        default:
            guard let known else { break }
            if let wake = rig.engine.claim(rig.engine.identity(known).topic) { wakes.append(wake.id) }
            if generator.once(in: 4) { _ = rig.engine.expireForced(known) }
        }
    }
}
