import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The counters", .timeLimit(.minutes(15)))
struct BooksTests {
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

    /// Compares the gauges with the snapshots of the devices.
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
            guard let known, case .launched(let wake) = rig.engine.launchForced(known) else { break }
            wakes.append(wake)
        default:
            guard let known else { break }
            if let wake = rig.engine.claim(rig.engine.identity(known).topic) { wakes.append(wake.id) }
            if generator.once(in: 4) { _ = rig.engine.expireForced(known) }
        }
    }
}

@Suite("Books that gateways share", .timeLimit(.minutes(15)))
struct StoredBooksTests {
    /// Counters with distinct nonzero values, except for holds and reasons that a push, or a task, cannot have.
    private static let books: Books = {
        var last: Int64 = 0
        func count() -> Int64 {
            last += 1
            return last.isMultiple(of: 3) ? -last : last << 40
        }
        func counts<Case: CountedCase>(_: PerCase<Case>, of cases: [Case] = Array(Case.allCases)) -> PerCase<Case> {
            cases.reduce(into: PerCase<Case>()) { $0[$1] = count() }
        }
        var books = Books()
        books.accepted = count()
        books.noWake = count()
        books.completed = count()
        books.coalesced = count()
        books.pending = count()
        books.inFlight = count()
        books.launched = count()
        books.registered = count()
        books.discarded = counts(books.discarded, of: DiscardReason.ofPushes)
        books.results = counts(books.results)
        books.held = counts(books.held, of: Hold.ofPushes)
        books.stock.devices = count()
        books.stock.contentBytes = count()
        books.stock.taskBytes = count()
        books.tasks.launched = counts(books.tasks.launched)
        for kind in TaskKind.allCases { books.tasks[kind] = counts(books.tasks[kind]) }
        books.requests.replaced = count()
        books.requests.cancelled = count()
        books.requests.submitted = counts(books.requests.submitted)
        books.requests.refused = counts(books.requests.refused)
        books.requests.discarded = counts(books.requests.discarded, of: DiscardReason.ofTasks)
        books.requests.waiting = counts(books.requests.waiting)
        books.requests.inFlight = counts(books.requests.inFlight)
        books.requests.held = counts(books.requests.held, of: Hold.ofTasks)
        books.sessions.finished = count()
        books.sessions.refused = count()
        books.sessions.completed = count()
        books.sessions.waiting = count()
        books.sessions.inFlight = count()
        books.sessions.wakes = count()
        books.sessions.discarded = counts(books.sessions.discarded, of: DiscardReason.ofTasks)
        return books
    }()

    /// Returns every counter by its property path, including properties that this test does not know.
    private static func leaves(_ value: Any, _ path: String = "") -> [String: Int64] {
        if let count = value as? Int64 { return [path: count] }
        if let counts = value as? any CountList { return counts.leaves(path) }
        return Mirror(reflecting: value).children.reduce(into: [:]) { leaves, child in
            leaves.merge(Self.leaves(child.value, path + "." + (child.label ?? ""))) { first, _ in first }
        }
    }

    private func stored(_ books: Books) -> [UInt8] {
        var buffer = ByteBuffer()
        books.store(to: &buffer)
        return buffer.view.array
    }

    @Test("Every counter is restored with its stored value, and is included in sums and differences")
    func everyCount() throws {
        let leaves = Self.leaves(Self.books)
        #expect(leaves.count > 90)
        func absent<Case: CaseIterable & Hashable>(_ path: String, _ possible: [Case]) -> [String] {
            Set(Case.allCases).subtracting(possible).map { "\(path).\($0)" }
        }
        let impossible =
            absent(".held", Hold.ofPushes) + absent(".requests.held", Hold.ofTasks)
            + absent(".discarded", DiscardReason.ofPushes) + absent(".requests.discarded", DiscardReason.ofTasks)
            + absent(".sessions.discarded", DiscardReason.ofTasks)
        for (path, count) in leaves {
            #expect((count != 0) != impossible.contains(path), "\(path): is it filled, has it a code, and is it added?")
        }
        let bytes = self.stored(Self.books)
        let restored = try #require(bytes.withByteView { Books(stored: $0) })
        #expect(Self.leaves(restored) == leaves)
        var sum = Self.books
        sum += Self.books
        #expect(Self.leaves(sum) == leaves.mapValues { $0 * 2 })
        #expect(Self.leaves(sum - Self.books) == leaves)
        #expect(Self.leaves(Self.books - sum) == leaves.mapValues { -$0 })
    }

    @Test("Empty counters take one byte; truncated counters and unknown ones are refused")
    func unreadable() {
        let empty = self.stored(Books())
        #expect(empty.count == 1)
        #expect(empty.withByteView { Books(stored: $0) } == Books())
        let bytes = self.stored(Self.books)
        for count in 0..<bytes.count where count % 10 != 1 {
            #expect(Array(bytes[..<count]).withByteView { Books(stored: $0) } == nil)
        }
        let unknown = empty + [0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0]
        #expect(unknown.withByteView { Books(stored: $0) } == nil)
        #expect((bytes + bytes[1..<11]).withByteView { Books(stored: $0) } == nil)
        #expect(([2] + bytes[1...]).withByteView { Books(stored: $0) } == nil)
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
