import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Searches for devices", .timeLimit(.minutes(15)))
struct DeviceSearchTests {
    private static let placesMax = 512
    private static let count = 20_000
    /// The maximum number of steps that read the set of waiting devices, which has at most 4,096.
    private static let stepsOfSetMax = 2 + 4096 / placesMax

    /// The numbers of devices, in random order. The first two bytes of their tokens are a number below `beginnings`.
    private static func numbers(beginnings: Int) -> [Int] {
        var generator = SeededGenerator(seed: 7)
        return (0..<Self.count).map { ($0 % beginnings) << 48 | $0 }.shuffled(using: &generator)
    }

    /// Returns the devices of a page in their order, and the number of steps that the search took.
    private static func page(
        _ rig: EngineRig,
        order: DeviceSearch.Order = .token,
        after: DeviceToken? = nil,
        topics: Set<TopicIndex>? = nil,
        countMax: Int = 1000,
        filter: DeviceFilter? = nil
    ) -> (tokens: [DeviceToken], steps: Int) {
        var search = DeviceSearch(topics: topics, order: order, after: after, countMax: countMax)
        var steps = 1
        while !rig.engine.look(&search, placesMax: Self.placesMax, filter: filter) { steps += 1 }
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

    /// The state of a fleet whose devices receive pushes, launch, and lose or end wakes at random.
    private struct Fleet {
        let rig = EngineRig()
        var generator = SeededGenerator(seed: 11)
        /// More devices than the set of waiting devices holds.
        let numbers = DeviceSearchTests.numbers(beginnings: 20_000).prefix(6000)

        init() {
            for number in self.numbers { self.rig.register(number) }
        }

        /// Changes random devices.
        mutating func change(_ count: Int) {
            for _ in 0..<count {
                let number = self.numbers.randomElement(using: &self.generator) ?? 0
                let device = self.rig.index(number)
                let wake = self.rig.engine.snapshot(device).wake
                switch Int.random(in: 0..<8, using: &self.generator) {
                case 0: _ = self.rig.engine.claim(device)
                case 1: if let wake { _ = self.rig.engine.report(.push(.newData), wake: wake) }
                case 2: if let wake { self.rig.engine.lose(wake) }
                case 3: self.rig.advance(by: 3)
                default: _ = self.rig.push(number)
                }
            }
        }

        /// The devices with a pending push, those with the oldest push first.
        var waiting: [DeviceToken] {
            let waiting = self.numbers.compactMap { number in
                self.rig.engine.waitingSince(self.rig.index(number)).map { (since: $0, number: number) }
            }
            return waiting.sorted { ($0.since, $0.number) < ($1.since, $1.number) }.map { EngineRig.token($0.number) }
        }

        func search(countMax: Int, filter: DeviceFilter? = nil) -> (tokens: [DeviceToken], steps: Int) {
            DeviceSearchTests.page(self.rig, order: .waiting, countMax: countMax, filter: filter)
        }
    }

    @Test("A list of waiting devices is exact, however many wait", arguments: [10, 600, 18_000])
    func waiting(changes: Int) {
        var fleet = Fleet()
        for round in 0..<3 {
            fleet.change(changes)
            let waiting = fleet.waiting
            for countMax in [1, 100, 1000] {
                let found = fleet.search(countMax: countMax).tokens
                #expect(found == Array(waiting.prefix(countMax)), "round \(round)")
            }
        }
    }

    @Test("A later list of waiting devices does not examine all devices", arguments: [600, 18_000])
    func laterWaiting(changes: Int) {
        var fleet = Fleet()
        fleet.change(changes)
        #expect(fleet.search(countMax: 100).steps >= fleet.numbers.count / Self.placesMax)
        fleet.change(200)
        #expect(fleet.search(countMax: 100).steps <= Self.stepsOfSetMax)
    }

    @Test("A list of waiting devices with a rare state or with few devices left in the set is exact")
    func rareWaiting() {
        var fleet = Fleet()
        fleet.change(18_000)
        _ = fleet.search(countMax: 100)
        let filter = DeviceFilter(state: .inFlight, hold: nil)
        for token in fleet.waiting.prefix(2500) {
            if let device = fleet.rig.engine.find(token) { _ = fleet.rig.engine.claim(device) }
        }
        for _ in 0..<2 {
            let waiting = fleet.waiting
            #expect(fleet.search(countMax: 1000).tokens == Array(waiting.prefix(1000)))
            let inFlight = waiting.filter { token in
                fleet.rig.engine.find(token).map { fleet.rig.engine.snapshot($0).wake != nil } ?? false
            }
            #expect(fleet.search(countMax: 1000, filter: filter).tokens == Array(inFlight.prefix(1000)))
        }
        // The set was filled again.
        #expect(fleet.search(countMax: 1000).steps <= Self.stepsOfSetMax)
    }

    @Test("Devices that began to wait in the same millisecond are listed in the order of tokens")
    func ties() {
        let fleet = Fleet()
        for number in fleet.numbers { _ = fleet.rig.push(number) }
        for _ in 0..<2 { #expect(fleet.search(countMax: 50).tokens == Array(fleet.waiting.prefix(50))) }
        #expect(fleet.search(countMax: 50).steps <= Self.stepsOfSetMax)
    }

    @Test("A search for rare tasks examines a bounded number of devices in a step, and finds all")
    func rareTasks() throws {
        let (rig, smaller) = (EngineRig(EngineRig.openToTasks()), EngineRig(EngineRig.openToTasks()))
        for number in 0..<1000 {
            let kind = number % 300 == 7 ? TaskSubmission.Kind.processing([]) : .appRefresh
            try rig.submit(number, "app.task", kind)
        }
        func page(_ kind: TaskKind?, countMax: Int) -> (search: TaskSearch, steps: Int) {
            var search = TaskSearch(TaskFilter(kind: kind, state: .waiting), countMax: countMax)
            var steps = 1
            while !rig.engine.look(&search, placesMax: 100) { steps += 1 }
            return (search, steps)
        }
        let rare = page(.processing, countMax: 1000)
        #expect(rare.steps >= 10)
        #expect(rig.engine.tasks(rare.search).map(\.device) == [7, 307, 607, 907].map { EngineRig.token($0) })
        let first = page(nil, countMax: 150)
        #expect(first.steps == 2 && rig.engine.tasks(first.search).count == 150)
        // After a failure of the store, the search continues on an engine with fewer devices.
        #expect(smaller.engine.tasks(rare.search).isEmpty)
    }

    @Test(
        "A search continues on an engine with fewer devices",
        arguments: [.token, .waiting, .recent] as [DeviceSearch.Order]
    )
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
