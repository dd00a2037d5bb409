import Engine
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("Events of a device, page by page", .timeLimit(.minutes(15)))
struct HistoryPageTests {
    /// Returns a history of one device, and of some others, in several runs and in memory.
    private static func rig(seed: UInt64, millisecondsMax: Int) throws -> HistoryRig {
        let rig = try HistoryRig()
        rig.hasNames = true
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10 {
            for _ in 0..<random.number(in: 1...200) {
                rig.appendRandom(&random, devices: 3, millisecondsMax: millisecondsMax)
            }
            if !random.once(in: 3) { rig.flush() }
            if random.once(in: 3) { rig.tidyAll() }
        }
        return rig
    }

    @Test(
        "Pages of any size make up the whole history, with new events in between and many at the same time",
        arguments: 0..<12,
        [1, 3, 2000]
    )
    func whole(seed: UInt64, millisecondsMax: Int) throws {
        let rig = try Self.rig(seed: seed, millisecondsMax: millisecondsMax)
        var random = SeededGenerator(seed: seed + 100)
        let all = rig.entries(0)
        var found: [HistoryEntry] = []
        var place: HistoryCursor?
        repeat {
            let countMax = random.number(in: 1...40)
            let page = rig.open().page(device: 0, before: place, countMax: countMax)
            #expect(page.entries.count == min(countMax, all.count - found.count))
            found += page.entries
            place = page.next
            for _ in 0..<3 { rig.appendRandom(&random, devices: 2, millisecondsMax: millisecondsMax) }
            if random.once(in: 4) { rig.flush() }
            if random.once(in: 4) { _ = rig.open().tidy() }
        } while place != nil && found.count < all.count
        #expect(place == nil && found == all)
        #expect(all.contains { $0.name != nil })
    }

    @Test("Pages with a filter omit no event, although each page examines few events", arguments: 0..<12)
    func selected(seed: UInt64) throws {
        let rig = try Self.rig(seed: seed, millisecondsMax: 2)
        let all = rig.entries(0).filter { [.conditions, .registered].contains($0.event.kind) }
        var found: [HistoryEntry] = []
        var place: HistoryCursor?
        var pages = 0
        repeat {
            let page = rig.open().page(device: 0, before: place, countMax: 3, examinedMax: 10) {
                [.conditions, .registered].contains($0.kind)
            }
            #expect(page.entries.count <= 3)
            found += page.entries
            place = page.next
            pages += 1
        } while place != nil && pages < 10_000
        #expect(found == all && all.count > 3)
        #expect(pages > all.count / 3)
    }

    @Test("A page that is full says that nothing is left when nothing else is asked for")
    func last() throws {
        let rig = try HistoryRig()
        for kind in [.registered, .conditions, .removed] as [HistoryEvent.Kind] {
            rig.append(HistoryEvent(device: 0, at: rig.now, kind: kind))
        }
        let page = rig.open().page(device: 0, before: nil, countMax: 1) { $0.kind == .conditions }
        #expect(page.entries == [rig.entries(0)[1]] && page.next == nil)
        let none = rig.open().page(device: 1, before: nil, countMax: 1)
        #expect(none.entries == [] && none.next == nil)
        let place = HistoryCursor(moment: rig.now, count: 2)
        #expect(rig.open().page(device: 0, before: place, countMax: 9).entries == Array(rig.entries(0).suffix(2)))
        let latest = rig.open().page(device: 0, before: nil, notBefore: rig.now, countMax: 9)
        #expect(latest.entries == rig.entries(0).filter { $0.event.at >= rig.now } && latest.next == nil)
        let later = rig.open().page(device: 0, before: nil, notBefore: rig.now + 1, countMax: 9)
        #expect(later.entries == [])
        let beginning = HistoryCursor(moment: .distantPast, count: 2)
        #expect(rig.open().page(device: 0, before: beginning, countMax: 9).entries == [])
    }

    @Test("Removing the oldest events never separates a name from its event")
    func retention() throws {
        let rig = try HistoryRig()
        rig.hasNames = true
        var random = SeededGenerator(seed: 4)
        for _ in 0..<150 {
            for _ in 0..<1000 { rig.appendRandom(&random, devices: 20, millisecondsMax: 10) }
            rig.flush()
            rig.tidyAll()
        }
        for device in 0..<20 as Range<UInt64> {
            let device = device &* 0x9E37_79B9_7F4A_7C15
            let kept = rig.open().entries(device: device, count: .max)
            #expect(kept == rig.entries(device, kept.count))
            #expect(kept.count < rig.entries(device).count, "nothing was dropped")
        }
    }

    @Test("A name with the bytes of an apns-id is not a push, and hides none")
    func bytesOfPush() throws {
        let rig = try HistoryRig()
        let name = "0123456789abcdef0123456789ABCDEF"
        rig.append(.launch(.appRefresh, attempt: 1), of: 1, name: name)
        let (apnsID, related) = (try #require(rig.events[0].apnsID), try #require(rig.events[0].related))
        rig.append(HistoryEvent(device: 1, at: rig.now, kind: .push(.coalesced), apnsID: apnsID, related: related))
        rig.append(.result(.task(.appRefresh, .success)), of: 1, name: name)
        for _ in 0..<2 {
            #expect(rig.open().push(apnsID).map(\.kind) == [.push(.coalesced)])
            #expect(rig.open().push(related).map(\.kind) == [.push(.coalesced)])
            #expect(rig.open().entries(device: 1, count: .max).map(\.name) == [name, nil, name])
            rig.flush()
        }
    }

    @Test("Pages of pushes contain each push once, the newest first, before and after the file is opened again")
    func pushes() throws {
        let rig = try HistoryRig()
        var random = SeededGenerator(seed: 5)
        var number: UInt64 = 0
        for round in 0..<3 {
            for _ in 0..<40 {
                for _ in 0..<100 {
                    number += 1
                    rig.now = rig.now + Int64(random.number(below: 2))
                    Self.append(number, to: rig, device: UInt64(random.number(below: 50)))
                }
                if random.once(in: 3) { rig.flush() }
            }
            let pushes = rig.events.compactMap { LoggedPush($0) }.sorted { $0.precedes($1) }
            #expect(Self.pushes(of: rig) == pushes)
            rig.flush()
            rig.tidyAll()
            if round == 1 { rig.close() }
            #expect(Self.pushes(of: rig) == pushes)
        }
    }

    @Test("Pages of pushes continue behind more events than one page examines, which follow the older ones at once")
    func manyEvents() throws {
        let rig = try HistoryRig(limits: HistoryLimits())
        Self.append(1, to: rig)
        rig.flush()
        rig.now = rig.now + 1
        Self.append(2, to: rig)
        for device in 0..<UInt64(HistoryLimits.pushesExamined) {
            rig.append(HistoryEvent(device: device, at: rig.now, kind: .conditions))
        }
        rig.flush()
        rig.close()
        #expect(Self.pushes(of: rig) == rig.events.compactMap { LoggedPush($0) }.sorted { $0.precedes($1) })
    }

    @Test("Pushes whose events were dropped are not listed")
    func droppedPushes() throws {
        let rig = try HistoryRig()
        for number in 0..<1000 as Range<UInt64> { Self.append(number, to: rig) }
        rig.flush()
        rig.now = rig.now + 1000 * 24 * 3600 * 1000
        Self.append(1000, to: rig)
        rig.flush()
        rig.tidyAll()
        #expect(Self.pushes(of: rig) == rig.events.suffix(1).compactMap { LoggedPush($0) })
    }

    /// Appends the event of a scheduled push.
    private static func append(_ number: UInt64, to rig: HistoryRig, device: UInt64 = 1) {
        rig.append(
            HistoryEvent(device: device, at: rig.now, kind: .push(.scheduled), apnsID: EngineRig.apnsID(number))
        )
    }

    /// Returns all pushes, which are read page by page.
    private static func pushes(of rig: HistoryRig) -> [LoggedPush] {
        var found: [LoggedPush] = []
        var place: LoggedPush?
        repeat {
            let page = rig.open().pushes(behind: place, notBefore: .distantPast, countMax: 300)
            found += page.pushes
            guard page.next == nil || page.next != place else {
                Issue.record("a page leads to itself")
                break
            }
            place = page.next
        } while place != nil
        return found
    }
}
