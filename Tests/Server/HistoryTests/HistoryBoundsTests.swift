import Engine
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The limits of the history", .timeLimit(.minutes(15)))
struct HistoryBoundsTests {
    @Test("File and log stay within the size, the newest events stay, the oldest go", arguments: [true, false])
    func size(isTidied: Bool) throws {
        let rig = try HistoryRig()
        var random = SeededGenerator(seed: 4)
        var largest = 0
        for _ in 0..<300 {
            for _ in 0..<1000 { rig.appendRandom(&random, devices: 4000, millisecondsMax: 10) }
            rig.flush()
            if isTidied { rig.tidyAll() }
            largest = max(largest, rig.fileBytes())
        }
        #expect(largest <= rig.limits.bytesMax)
        #expect(largest > rig.limits.bytesMax / 2, "the bound was never near")
        let newest = rig.events[rig.events.count - 1].device
        #expect(rig.open().recent(device: newest, count: 5) == rig.recent(newest, 5))
        let kept = rig.open().recent(device: newest, count: .max)
        #expect(kept == rig.recent(newest, kept.count))
        #expect(kept.count < rig.recent(newest, .max).count, "nothing was dropped")
        #expect(rig.troubles == [])
    }

    @Test("Events beyond the age limit are removed, within an eighth of it; younger ones stay")
    func age() throws {
        let day: Int64 = 86_400_000
        let rig = try HistoryRig(limits: HistoryLimits(bytesMax: 16 << 20, ageMillisecondsMax: 7 * day))
        let start = rig.now
        let minute: Int64 = 60_000
        for number in 0..<(20 * 24 * 12) as Range<Int64> {
            rig.now = start + number * 5 * minute
            rig.append(HistoryEvent(device: UInt64(number % 3), at: rig.now, kind: .registered))
            rig.flush()
            rig.tidyAll()
        }
        for device in 0..<3 as Range<UInt64> {
            let kept = rig.open().recent(device: device, count: .max)
            #expect(kept == rig.recent(device, kept.count))
            let oldest = try #require(kept.last).at
            #expect(oldest <= rig.now - 7 * day + 15 * minute)
            #expect(oldest >= rig.now - 7 * day - day)
        }
        #expect(rig.open().runCount < 64, "a question would have too many places to look at")
    }

    @Test("A query reads few runs, whatever the size of the batches", arguments: [1, 520])
    func runs(eventsPerBatch: Int) throws {
        let rig = try HistoryRig()
        let history = rig.open()
        var mostRuns = 0
        for number in 0..<300 {
            let at = rig.now + Int64(number)
            let batch = (0..<eventsPerBatch).map { HistoryEvent(device: UInt64($0 % 9), at: at, kind: .conditions) }
            history.append(batch[...])
            history.flush()
            mostRuns = max(mostRuns, history.runCount)
            // Eight small runs are merged. Large ones remain until there are too many.
            if eventsPerBatch > 1 { rig.tidyAll() }
        }
        rig.tidyAll()
        #expect(mostRuns > 250)
        #expect(history.runCount <= (eventsPerBatch == 1 ? 20 : 256))
        #expect(history.recent(device: 0, count: .max).count == 300 * ((eventsPerBatch + 8) / 9))
    }

    @Test("Every chunk of events and of the index of pushes fits one page")
    func chunks() throws {
        let rig = try HistoryRig(limits: HistoryLimits())
        var random = SeededGenerator(seed: 8)
        for _ in 0..<20_000 { rig.appendRandom(&random, devices: 500) }
        rig.flush()
        rig.close()
        let database = try SQLiteDatabase(path: rig.path, mode: .readWrite)
        #expect(try database.integer("SELECT count(*) FROM run") == 1)
        #expect(try database.integer("SELECT count(*) FROM chunk") ?? 0 > 20)
        // A page of 8,192 bytes without overflow pages.
        #expect(try database.integer("SELECT max(length(content)) FROM chunk") ?? .max <= 8144)
    }

    @Test("New limits of size and age apply to existing events, whose space is returned to the disk")
    func set() throws {
        let rig = try HistoryRig(limits: HistoryLimits(bytesMax: 32 << 20))
        var random = SeededGenerator(seed: 7)
        let day: Int64 = 86_400_000
        let start = rig.now
        for hour in 0..<240 as Range<Int64> {
            rig.now = start + hour * day / 24
            for _ in 0..<1000 { rig.appendRandom(&random, devices: 100_000, millisecondsMax: 2) }
            rig.flush()
            rig.tidyAll()
        }
        rig.append(HistoryEvent(device: 7, at: rig.now, kind: .registered))
        rig.flush()
        #expect(rig.fileBytes() > 5 << 20)
        rig.open().setLimits(HistoryLimits(bytesMax: 4 << 20, ageMillisecondsMax: 100 * day))
        rig.tidyAll()
        #expect(rig.open().takeDropped().bySize > 0)
        rig.open().setLimits(HistoryLimits(bytesMax: 4 << 20, ageMillisecondsMax: day / 12))
        rig.tidyAll()
        #expect(rig.open().takeDropped().byAge > 0)
        #expect(rig.open().recent(device: 7, count: 1) == rig.recent(7, 1))
        rig.close()
        #expect(rig.fileBytes() <= 4 << 20)
    }

    @Test("Memory holds a bounded number of events without a flush")
    func collected() throws {
        let rig = try HistoryRig()
        var random = SeededGenerator(seed: 6)
        var maximum = 0
        for _ in 0..<10_000 {
            rig.appendRandom(&random, devices: 10)
            maximum = max(maximum, rig.open().collectedEvents)
        }
        #expect(maximum == 2048)
        #expect(rig.open().recent(device: 0, count: .max) == rig.recent(0, .max))
    }
}
