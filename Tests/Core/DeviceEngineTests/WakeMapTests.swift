import Engine
import Testing
import WakeGateTestKit
import Wire

@Suite("Map of wakes", .timeLimit(.minutes(15)))
struct WakeMapTests {
    /// A wake whose search begins at a place, wherever the map has at least as many: the eight lowest bits say nothing.
    private static func wake(beginning place: UInt64, _ number: UInt64) -> WakeID {
        WakeID(random: (place << 8 | number & 0xFF, number))
    }

    /// - `beginnings`: from how many places wakes are looked for: all of a map, or so few that most lie behind others,
    ///   around its end, too.
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
        // Now it grows, now it shrinks, and at the end it is empty.
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

    @Test("Wakes are sorted as they are written, and what is put again replaces what there was")
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

    @Test("A map grows when a wake comes that it has no room for, and not when one is changed")
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
        // A map keeps the room of few wakes, and no more when it is empty.
        for number in 0..<UInt64(48) { map[Self.wake(beginning: number, number)] = nil }
        #expect(map.isEmpty && map.capacity == 48)
        for number in 0..<UInt64(49) { map[Self.wake(beginning: number, number)] = 0 }
        for number in 0..<UInt64(49) { #expect(map.remove(Self.wake(beginning: number, number)) == 0) }
        #expect(map.isEmpty && map.capacity == 0)
    }

    @Test("What is taken out is let go of at once")
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
