import Engine
import Foundation
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite(.timeLimit(.minutes(15)))
struct HistoryTests {
    @Test(
        "Every answer equals that of a plain list of the events, through flushes, merges and restarts",
        arguments: [(1, 5), (2, 300), (3, 20_000)] as [(UInt64, Int)]
    )
    func model(seed: UInt64, devices: Int) throws {
        let rig = try HistoryRig()
        rig.hasNames = true
        var random = SeededGenerator(seed: seed)
        var mergesSeen = 0
        var restarts = 0
        for _ in 0..<400 {
            for _ in 0..<random.number(in: 1...(random.once(in: 20) ? 1500 : 60)) {
                rig.appendRandom(&random, devices: devices)
            }
            if !random.once(in: 5) { rig.flush() }
            let runs = rig.open().runCount
            for _ in 0..<random.number(below: 6) { _ = rig.open().tidy() }
            if rig.open().runCount < runs { mergesSeen += 1 }
            if random.once(in: 30) {
                rig.close()
                restarts += 1
            }
            let device = UInt64(random.number(below: devices)) &* 0x9E37_79B9_7F4A_7C15
            let count = random.pick([1, 32, 1000])
            #expect(rig.open().recent(device: device, count: count) == rig.recent(device, count), "seed \(seed)")
            #expect(rig.open().entries(device: device, count: count) == rig.entries(device, count), "seed \(seed)")
            if let apnsID = random.pick(rig.events).apnsID {
                #expect(rig.open().push(apnsID) == rig.push(apnsID), "seed \(seed)")
            }
        }
        #expect(mergesSeen > 3 && restarts > 3, "seed \(seed): nothing was merged, or never restarted")
        #expect(rig.troubles == [])
        #expect(rig.open().droppedEvents == 0)
        // Device 1 has no events.
        #expect(rig.open().recent(device: 0, count: 0) == [] && rig.open().recent(device: 1, count: 32) == [])
        #expect(!FileManager.default.fileExists(atPath: rig.path + "-shm"))
    }

    @Test("A restart between two pieces of a merge loses nothing and mixes nothing up", arguments: 0..<16)
    func restart(pieces: Int) throws {
        let rig = try HistoryRig()
        rig.hasNames = true
        var random = SeededGenerator(seed: 11)
        for _ in 0..<8 {
            for _ in 0..<500 { rig.appendRandom(&random, devices: 10) }
            rig.flush()
        }
        for _ in 0..<pieces { _ = rig.open().tidy() }
        rig.close()
        for _ in 0..<8 {
            for _ in 0..<500 { rig.appendRandom(&random, devices: 10) }
            rig.flush()
        }
        rig.tidyAll()
        rig.close()
        for device in 0..<10 as Range<UInt64> {
            let device = device &* 0x9E37_79B9_7F4A_7C15
            #expect(rig.open().entries(device: device, count: .max) == rig.entries(device))
        }
        #expect(rig.troubles == [])
    }

    @Test("Times and identifiers at their limits are restored unchanged")
    func extremes() throws {
        let rig = try HistoryRig()
        let identifiers = [
            APNsID(first: 0, second: 0, upperCase: 0), APNsID(first: .max, second: .max, upperCase: .max),
            APNsID(first: 0, second: 0, upperCase: 1),
        ]
        for device in [0, 1, .max] as [UInt64] {
            for at in [.distantPast, .distantFuture, Instant(milliseconds: 0), .distantPast] as [Instant] {
                for kind in HistoryRig.kinds {
                    for apnsID in identifiers + [nil] {
                        for related in identifiers + [nil] {
                            rig.append(
                                HistoryEvent(device: device, at: at, kind: kind, apnsID: apnsID, related: related)
                            )
                        }
                    }
                }
            }
        }
        rig.flush()
        for device in [0, 1, .max] as [UInt64] {
            let (found, expected) = (rig.open().recent(device: device, count: .max), rig.recent(device, .max))
            #expect(found == expected)
            // Equal identifiers may be spelled differently.
            #expect(found.map { $0.apnsID?.upperCase } == expected.map { $0.apnsID?.upperCase })
            #expect(found.map { $0.related?.upperCase } == expected.map { $0.related?.upperCase })
        }
    }

    @Test("Two devices whose numbers agree in the upper half are kept apart")
    func upperHalf() throws {
        let rig = try HistoryRig()
        for number in 0..<2000 as Range<Int64> {
            let device = UInt64(7) << 32 | UInt64(number % 3)
            rig.append(HistoryEvent(device: device, at: Instant(milliseconds: number), kind: .conditions))
        }
        rig.flush()
        for device in 0..<3 as Range<UInt64> {
            #expect(rig.open().recent(device: 7 << 32 | device, count: .max) == rig.recent(7 << 32 | device, .max))
        }
    }

    @Test("A history in memory answers like one in a file, and ends with its owner")
    func inMemory() throws {
        let history = HistoryFile(path: nil, limits: .inMemory) { Issue.record("\($0)") }
        let events = (0..<5000).map {
            HistoryEvent(device: UInt64($0 % 50), at: Instant(milliseconds: Int64($0)), kind: .registered)
        }
        history.append(events[...])
        history.flush()
        history.append(events[...])
        while history.tidy() {}
        let expected = Array((events + events).filter { $0.device == 3 }.reversed())
        #expect(history.recent(device: 3, count: .max) == expected)
    }

    @Test("An event is 64 bytes, and its kind survives as a number")
    func layout() {
        #expect(MemoryLayout<HistoryEvent>.size == 64)
        let kinds = Set(
            HistoryRig.kinds + HistoryRig.taskKinds
                + [.namePart(length: 255, place: 7), .worker(length: 9, place: 0), .subscribed]
        )
        for kind in kinds {
            let event = HistoryEvent(device: 1, at: .distantPast, kind: kind)
            #expect(event.kind == kind)
        }
        let codes = (0...UInt8.max).filter { code in
            kinds.contains {
                HistoryEvent.Kind(code: code, attempt: $0.stored.attempt, coalesced: $0.stored.coalesced) != nil
            }
        }
        #expect(codes == Set(kinds.map(\.stored.code)).sorted())
        #expect(codes == Array(1...30))
    }
}
