import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The counters", .timeLimit(.minutes(15)))
struct ActivityCountersTests {
    @Test("Counters balance after every step, and the topics add up to the total", arguments: UInt64(1)...20)
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
            let counters = rig.engine.totals
            #expect(counters.accepted == counters.accountedFor, "seed \(seed), step \(step)")
            wakes = Set(everLaunched.filter { rig.engine.launchedWake($0) != nil })
            #expect(counters.launched == counters.results.sum + Int64(wakes.count), "seed \(seed), step \(step)")
            Self.compareGauges(rig, counters, "seed \(seed), step \(step)")
        }
        let counters = rig.engine.totals
        #expect(counters.completed > 0 && counters.coalesced > 0 && counters.discarded[.expired] > 0)
        #expect(counters.results[.expired] > 0 && counters.results[.lost] > 0 && counters.results[.failed] > 0)
    }

    /// Compares the gauges with the snapshots of the devices.
    private static func compareGauges(_ rig: EngineRig, _ counters: ActivityCounters, _ place: Comment) {
        var naive: [Hold: Int64] = [:]
        var pending: Int64 = 0
        var registered: Int64 = 0
        for device in 0..<12 where rig.find(device) != nil {
            let snapshot = rig.snapshot(device)
            registered += snapshot.isRegistered ? 1 : 0
            pending += snapshot.pendingID == nil ? 0 : 1
            if let first = snapshot.held.first { naive[first, default: 0] += 1 }
        }
        #expect(rig.engine.totals == counters, "a read changed the counters: \(place)")
        #expect(counters.pending == pending && counters.registered == registered, place)
        for code in Hold.ofPushes { #expect(counters.held[code] == naive[code] ?? 0, place) }
        let sum = rig.engine.topicSnapshots.reduce(into: ActivityCounters()) { $0 += $1.counters }
        #expect(sum == counters, place)
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
                ] as [Expiration]
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
            guard let known, let wake = rig.engine.launchForced(known) else { break }
            wakes.append(wake)
        default:
            guard let known else { break }
            if let wake = rig.engine.claim(rig.engine.identity(known).topic) { wakes.append(wake.id) }
            if generator.once(in: 4) { _ = rig.engine.expireForced(known) }
        }
    }
}

@Suite("Counters that gateways share", .timeLimit(.minutes(15)))
struct StoredActivityCountersTests {
    /// Counters with distinct nonzero values: those of a stored form with every code that is known.
    private static let counters: ActivityCounters = {
        var bytes: [UInt8] = [1]
        for code in UInt16(1)..<0x2000 {
            let count = code.isMultiple(of: 3) ? -Int64(code) : Int64(code) << 40
            let entry =
                (0..<2).map { UInt8(truncatingIfNeeded: code >> ($0 * 8)) }
                + (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
            if ([1] + entry).withByteView({ ActivityCounters(stored: $0) }) != nil { bytes += entry }
        }
        guard let counters = bytes.withByteView({ ActivityCounters(stored: $0) }) else {
            preconditionFailure("each of the codes was decoded alone")
        }
        return counters
    }()

    /// Returns every counter by its property path, including properties that this test does not know.
    private static func leaves(_ value: Any, _ path: String = "") -> [String: Int64] {
        if let count = value as? Int64 { return [path: count] }
        if let counts = value as? any CountList { return counts.leaves(path) }
        return Mirror(reflecting: value).children.reduce(into: [:]) { leaves, child in
            leaves.merge(Self.leaves(child.value, path + "." + (child.label ?? ""))) { first, _ in first }
        }
    }

    private func stored(_ counters: ActivityCounters) -> [UInt8] {
        var buffer = ByteBuffer()
        counters.store(to: &buffer)
        return buffer.view.array
    }

    @Test("Every counter is restored with its stored value, and is included in sums and differences")
    func everyCount() throws {
        let leaves = Self.leaves(Self.counters)
        #expect(leaves.count > 90)
        func absent<Case: CaseIterable & Hashable>(_ path: String, _ possible: [Case]) -> [String] {
            Set(Case.allCases).subtracting(possible).map { "\(path).\($0)" }
        }
        let impossible =
            absent(".held", Hold.ofPushes) + absent(".requests.held", Hold.ofTasks)
            + absent(".discarded", DiscardReason.ofPushes) + absent(".requests.discarded", DiscardReason.ofTasks)
            + absent(".sessions.discarded", DiscardReason.ofTasks)
        for (path, count) in leaves {
            #expect((count != 0) != impossible.contains(path), "\(path): has it a code of its own, and is it added?")
        }
        let bytes = self.stored(Self.counters)
        let restored = try #require(bytes.withByteView { ActivityCounters(stored: $0) })
        #expect(Self.leaves(restored) == leaves)
        var sum = Self.counters
        sum += Self.counters
        #expect(Self.leaves(sum) == leaves.mapValues { $0 * 2 })
        #expect(Self.leaves(sum - Self.counters) == leaves)
        #expect(Self.leaves(Self.counters - sum) == leaves.mapValues { -$0 })
    }

    @Test("Empty counters take one byte; truncated counters and unknown ones are refused")
    func unreadable() {
        let empty = self.stored(ActivityCounters())
        #expect(empty.count == 1)
        #expect(empty.withByteView { ActivityCounters(stored: $0) } == ActivityCounters())
        let bytes = self.stored(Self.counters)
        for count in 0..<bytes.count where count % 10 != 1 {
            #expect(Array(bytes[..<count]).withByteView { ActivityCounters(stored: $0) } == nil)
        }
        let unknown = empty + [0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0]
        #expect(unknown.withByteView { ActivityCounters(stored: $0) } == nil)
        #expect((bytes + bytes[1..<11]).withByteView { ActivityCounters(stored: $0) } == nil)
        #expect(([2] + bytes[1...]).withByteView { ActivityCounters(stored: $0) } == nil)
    }
}

private protocol CountList {
    func leaves(_ path: String) -> [String: Int64]
}

extension PerCase: CountList {
    fileprivate func leaves(_ path: String) -> [String: Int64] {
        Case.allCases.reduce(into: [:]) { $0["\(path).\($1)"] = self[$1] }
    }
}
