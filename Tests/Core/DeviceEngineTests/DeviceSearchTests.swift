import Engine
import Testing
import WakeGateTestKit
import Wire

@Suite("Searches for devices", .timeLimit(.minutes(15)))
struct DeviceSearchTests {
    private static let placesMax = 512
    private static let count = 20_000

    /// The numbers of devices, in random order. The first two bytes of their tokens are a number below `beginnings`.
    private static func numbers(beginnings: Int) -> [Int] {
        var generator = SeededGenerator(seed: 7)
        return (0..<Self.count).map { ($0 % beginnings) << 48 | $0 }.shuffled(using: &generator)
    }

    /// Returns the devices of a page in the order of tokens, and the number of steps that the search took.
    private static func page(
        _ rig: EngineRig,
        after: DeviceToken? = nil,
        topics: Set<TopicIndex>? = nil,
        countMax: Int = 1000
    ) -> (tokens: [DeviceToken], steps: Int) {
        var search = DeviceSearch(topics: topics, after: after, countMax: countMax)
        var steps = 1
        while !rig.engine.look(&search, placesMax: Self.placesMax) { steps += 1 }
        return (search.tokens, steps)
    }

    @Test("Pages in the order of tokens contain every device once", arguments: [1, 300, 20_000])
    func pages(beginnings: Int) {
        let rig = EngineRig()
        let numbers = Self.numbers(beginnings: beginnings)
        for number in numbers { rig.register(number) }
        var found: [DeviceToken] = []
        while true {
            let page = Self.page(rig, after: found.last).tokens
            found += page
            guard page.count == 1000 else { break }
        }
        #expect(found == numbers.sorted().map { EngineRig.token($0) })
    }

    @Test("A later page does not examine all devices, and contains devices that came and lacks devices that left")
    func later() {
        let rig = EngineRig()
        let numbers = Self.numbers(beginnings: 20_000)
        for number in numbers { rig.register(number) }
        #expect(Self.page(rig).steps >= Self.count / Self.placesMax)
        let sorted = numbers.sorted()
        let added = sorted[5000] + 1
        rig.register(added)
        rig.engine.unregister(rig.index(sorted[5001]))
        let page = Self.page(rig, after: EngineRig.token(sorted[4999]), countMax: 3)
        #expect(page.tokens == [sorted[5000], added, sorted[5002]].map { EngineRig.token($0) })
        #expect(page.steps == 1)
    }

    @Test("A search that finds few devices in the order of tokens examines each device at most twice")
    func rare() throws {
        let rig = EngineRig()
        let numbers = Self.numbers(beginnings: 20_000)
        for (place, number) in numbers.enumerated() { rig.register(number, topic: place % 4000 == 0 ? 1 : 0) }
        _ = Self.page(rig)
        let topic = try #require(EngineRig.topicName(1).withByteView { rig.engine.findTopic($0) })
        let page = Self.page(rig, topics: [topic])
        let expected = numbers.enumerated().filter { $0.offset % 4000 == 0 }.map(\.element).sorted()
        #expect(page.tokens == expected.map { EngineRig.token($0) })
        #expect(page.steps <= 2 * Self.count / Self.placesMax + 1)
    }

    @Test("A search continues on an engine with fewer devices", arguments: [.token, .recent] as [DeviceSearch.Order])
    func fewerDevices(order: DeviceSearch.Order) {
        let (rig, smaller) = (EngineRig(), EngineRig())
        for number in Self.numbers(beginnings: 2) { rig.register(number) }
        for number in 0..<Self.placesMax + 100 { smaller.register(number) }
        for steps in [1, 3, 38, 40, 45] {
            var search = DeviceSearch(topics: nil, order: order, after: nil, countMax: 100)
            for _ in 0..<steps { _ = rig.engine.look(&search, placesMax: Self.placesMax) }
            while !smaller.engine.look(&search, placesMax: Self.placesMax) {}
            #expect(search.tokens.count <= 100)
        }
    }
}
