import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The ledger of wakes", .timeLimit(.minutes(15)))
struct WakeLedgerTests {
    private static let tenMinutes: Int64 = 600_000

    private static func wake(_ number: Int) -> WakeID { WakeID(random: (UInt64(number), 1)) }

    private static func device(_ number: Int) -> DeviceIndex { DeviceIndex(rawValue: UInt32(number)) }

    private static func ended(_ number: Int, at milliseconds: Int64) -> EndedWake {
        EndedWake(id: Self.wake(number), outcome: .push(.newData), at: Instant(milliseconds: milliseconds))
    }

    @Test("Ended wakes are forgotten after ten minutes, for a limited number of devices at a time")
    func forgotten() {
        var devices = DeviceTable.registered(5)
        var ledger = WakeLedger()
        for number in 0..<5 {
            ledger.launched(Self.wake(number), Self.device(number))
            ledger.ended(Self.ended(number, at: number == 4 ? 1 : 0), Self.device(number), in: &devices)
        }
        func forget(_ milliseconds: Int64, devicesMax: Int) -> Bool {
            ledger.forget(at: Instant(milliseconds: milliseconds), devicesMax: devicesMax, in: &devices)
        }
        #expect(forget(Self.tenMinutes - 1, devicesMax: 10) == true)
        #expect(ledger.known.ids == 5)
        #expect(forget(Self.tenMinutes, devicesMax: 3) == false)
        #expect(ledger.known.ids == 2 && ledger.known.devicesWithEnded == 2)
        #expect(forget(Self.tenMinutes, devicesMax: 3) == true)
        #expect((0..<5).map { ledger.device(of: Self.wake($0)) != nil } == [false, false, false, false, true])
        #expect(forget(Self.tenMinutes + 1, devicesMax: 3) == true)
        #expect(ledger.known.ids == 0 && ledger.known.devicesWithEnded == 0)
    }

    @Test("A restored device's wakes are known, unless one of them belongs to another device")
    func restored() {
        var devices = DeviceTable.registered(3)
        var former = WakeLedger()
        former.ended(Self.ended(1, at: 0), Self.device(0), in: &devices)
        former.ended(Self.ended(2, at: 0), Self.device(1), in: &devices)
        var ledger = WakeLedger()
        #expect(ledger.restore(Self.device(0), devices[Self.device(0)], inFlight: [Self.wake(7)]) == true)
        #expect(ledger.device(of: Self.wake(1)) == Self.device(0) && ledger.device(of: Self.wake(7)) == Self.device(0))
        #expect(ledger.known.ids == 2 && ledger.known.devicesWithEnded == 1)
        #expect(ledger.restore(Self.device(1), devices[Self.device(1)], inFlight: [Self.wake(7)]) == false)
        #expect(ledger.restore(Self.device(2), devices[Self.device(2)], inFlight: [Self.wake(1)]) == false)
        #expect(ledger.known.ids == 2 && ledger.device(of: Self.wake(2)) == nil, "all or none")
        #expect(ledger.forget(at: Instant(milliseconds: Self.tenMinutes), devicesMax: 9, in: &devices) == true)
        #expect(ledger.device(of: Self.wake(1)) == nil)
    }
}

@Suite("Map of wakes", .timeLimit(.minutes(15)))
struct WakeMapTests {
    /// Returns a wake whose search starts at `place` in every map with at least as many places. The lowest eight bits
    /// are ignored.
    private static func wake(beginning place: UInt64, _ number: UInt64) -> WakeID {
        WakeID(random: (place << 8 | number & 0xFF, number))
    }

    /// - `beginnings`: the number of places at which searches start: all places of a map, or so few that most wakes are
    ///   displaced, also around the end of the map.
    @Test(
        "A map of wakes is a dictionary, also where all are looked for from a few places",
        arguments: UInt64(1)...4,
        [1, 2, 5, 64, 4096]
    )
    func likeDictionary(seed: UInt64, beginnings: Int) {
        var generator = SeededGenerator(seed: seed)
        let wakes = (0..<300).map { number in
            Self.wake(beginning: UInt64.max >> 8 &- UInt64(generator.number(below: beginnings)), UInt64(number))
        }
        var map = WakeMap<Int>()
        var dictionary: [WakeID: Int] = [:]
        // The map alternately grows and shrinks, and is empty at the end.
        for step in 0..<3000 {
            let wake = wakes[generator.number(below: wakes.count)]
            let isPut = step < 2500 && generator.number(below: 100) < (step / 500 % 2 == 0 ? 80 : 20)
            map[wake] = isPut ? step : nil
            dictionary[wake] = isPut ? step : nil
            #expect(map.count == dictionary.count)
            #expect(map[wake] == dictionary[wake])
            #expect(map.count <= map.capacity)
            if step % 100 == 0 { Self.expectSame(map, dictionary, among: wakes) }
        }
        for wake in wakes {
            map[wake] = nil
            dictionary[wake] = nil
            #expect(dictionary.allSatisfy { map[$0.key] == $0.value })
        }
        Self.expectSame(map, [:], among: wakes)
        #expect(map.isEmpty)
    }

    private static func expectSame(_ map: WakeMap<Int>, _ dictionary: [WakeID: Int], among wakes: [WakeID]) {
        #expect(wakes.allSatisfy { map[$0] == dictionary[$0] })
        let all = Dictionary(map.all.map { ($0.wake, $0.value) }) { first, _ in first }
        #expect(all == dictionary)
        #expect(map.all.map { _ in 1 }.count == dictionary.count)
        #expect(map.isEmpty == dictionary.isEmpty)
    }

    @Test("Wakes are sorted by their identifier, and a second value for a wake replaces the first")
    func order() {
        let wakes = [(7, 1), (1, 9), (1, 2), (UInt64.max, 0)].map { WakeID(random: $0) }
        var map = WakeMap<String>()
        for wake in wakes { map[wake] = "first" }
        map[wakes[0]] = "second"
        map[wakes[1]]? += ", changed"
        map[WakeID(random: (8, 8))]? += "nothing to change"
        #expect(map.count == 4)
        #expect(map[wakes[0]] == "second")
        #expect(map[wakes[1]] == "first, changed")
        #expect(map.sortedWakes == [wakes[2], wakes[1], wakes[0], wakes[3]])
    }

    @Test("A map grows only when a new wake does not fit")
    func growth() {
        var map = WakeMap<Int>()
        #expect(map.capacity == 0)
        for number in 0..<UInt64(48) {
            let capacity = map.capacity
            map[Self.wake(beginning: number, number)] = 0
            #expect(map.capacity == (number < capacity ? capacity : max(3, 2 * capacity)))
            let grown = map.capacity
            for changed in 0...number { map[Self.wake(beginning: changed, changed)]? += 1 }
            #expect(map.capacity == grown)
        }
        #expect(map.capacity == 48 && map.all.map(\.value).sorted() == Array(1...48))
        // An emptied map keeps the memory of a small number of wakes only.
        for number in 0..<UInt64(48) { map[Self.wake(beginning: number, number)] = nil }
        #expect(map.isEmpty && map.capacity == 48)
        for number in 0..<UInt64(49) { map[Self.wake(beginning: number, number)] = 0 }
        for number in 0..<UInt64(49) { #expect(map.remove(Self.wake(beginning: number, number)) == 0) }
        #expect(map.isEmpty && map.capacity == 0)
    }

    @Test("A removed value is released immediately")
    func release() {
        final class Value {}
        var map = WakeMap<Value>()
        weak var taken: Value?
        for number in 0..<UInt64(40) {
            let value = Value()
            if number == 20 { taken = value }
            map[Self.wake(beginning: number % 3, number)] = value
        }
        #expect(taken != nil)
        map[Self.wake(beginning: 20 % 3, 20)] = nil
        #expect(taken == nil)
        #expect(map.count == 39)
    }
}

@Suite("Waiting times of launches and durations of wakes", .timeLimit(.minutes(15)))
struct WakeTimesTests {
    private func topic(_ rig: EngineRig) -> TopicIndex { rig.engine.identity(rig.index(1)).topic }

    @Test("A value falls into the first bucket that contains it, or into the last")
    func histogram() {
        var histogram = Histogram(bounds: [0, 10, 100])
        for value: Int64 in [0, 1, 10, 11, 100, 101, 5000] { histogram.record(value) }
        histogram.record(50, times: 3)
        #expect(histogram.counts == [1, 2, 5, 2])
        #expect(histogram.count == 10)
        #expect(histogram.sum == 5373)
    }

    @Test("The counts of an undone step are taken back, and later counts stay")
    func takenBack() {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        let before = rig.engine.times
        rig.push(2, workerIsFree: true)
        let after = rig.engine.times
        rig.push(3, workerIsFree: true)
        rig.engine.times.takeBack(from: before, to: after)
        #expect(rig.engine.times.lateness.count == 2)
        rig.engine.times.takeBack(from: before, to: before)
        #expect(rig.engine.times.lateness.count == 2)
    }

    @Test("A push that waits for a worker counts as late since its arrival, and the longest wait is reported")
    func waitsForWorker() throws {
        let rig = EngineRig()
        rig.push(1)
        rig.advance(by: 300)
        rig.push(2)
        rig.advance(by: 4000)
        // A newer push that replaces the first does not restart its wait.
        rig.push(1)
        #expect(rig.engine.oldestDueMilliseconds == 4300)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 4300)
        #expect(rig.engine.oldestDueMilliseconds == 4000)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.count == 2)
        #expect(rig.engine.times.lateness.sum == 8300)
        #expect(rig.engine.oldestDueMilliseconds == 0)
    }

    @Test("The launch interval does not count as lateness: it starts when the policy allows the launch")
    func interval() throws {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        let wake = try #require(rig.snapshot(1).wake)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
        rig.push(1)
        #expect(rig.engine.oldestDueMilliseconds == 0)
        // The engine advances late: the push was due 900 seconds after the launch, and two more seconds have passed.
        rig.advance(by: 902_000)
        #expect(rig.engine.oldestDueMilliseconds == 2000)
        rig.advance(by: 1000)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 3000)
    }

    @Test("A hold does not count as lateness: it starts when the hold ends")
    func hold() throws {
        let rig = EngineRig()
        rig.register(1)
        rig.conditions(1) { $0.network = false }
        rig.push(1)
        rig.advance(by: 60_000)
        #expect(rig.engine.oldestDueMilliseconds == 0)
        rig.conditions(1) { $0.network = true }
        rig.advance(by: 70)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 70)
    }

    @Test("A wake's time counts under its outcome, from the launch to the end")
    func durations() throws {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        rig.push(2, workerIsFree: true)
        rig.advance(by: 1200)
        let wake = try #require(rig.snapshot(1).wake)
        #expect(rig.engine.report(.push(.noData), wake: wake) == .ended)
        #expect(rig.engine.times[.noData].sum == 1200)
        rig.advance(by: 60_000)
        #expect(rig.engine.times[.expired].count == 1)
        #expect(rig.engine.times[.newData].count == 0)
    }
}
