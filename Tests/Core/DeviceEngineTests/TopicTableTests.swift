import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The table of topics", .timeLimit(.minutes(15)))
struct TopicTableTests {
    private static func table(_ count: Int, _ configuration: EngineConfiguration = EngineRig.open()) -> TopicTable {
        var table = TopicTable(key: HashKey((5, 6)))
        for number in 0..<count {
            let topic = EngineRig.topicName(number).withByteView { table.insert($0, configuration) }
            #expect(topic == Self.topic(number))
        }
        return table
    }

    private static func topic(_ number: Int) -> TopicIndex { TopicIndex(rawValue: UInt32(number)) }

    /// Returns the records of all changed topics, by topic number.
    private static func records(_ table: inout TopicTable) -> [UInt32: [UInt8]] {
        var batch = RecordBatch()
        table.takeChanges(into: &batch)
        var records: [UInt32: [UInt8]] = [:]
        for (key, content) in batch.records {
            #expect(key.kind == .topic && records[key.index] == nil)
            records[key.index] = content
        }
        return records
    }

    @Test("Topics are numbered in the order of their making, and found by their names, also after the table has grown")
    func names() {
        let table = Self.table(500)
        #expect(table.count == 500 && table.indices == (0..<500).map(Self.topic))
        for number in 0..<500 {
            let name = EngineRig.topicName(number)
            #expect(table.name(Self.topic(number)) == name)
            name.withByteView { name in
                #expect(table.find(name) == Self.topic(number))
                for other in 0..<3 { #expect(table.isName(name, of: Self.topic(other)) == (other == number)) }
            }
            "\(name) ".withByteView { #expect(table.find($0) == nil) }
        }
        EngineRig.topicName(500).withByteView { #expect(table.find($0) == nil) }
        #expect(table.find(ByteView()) == nil)
    }

    @Test("Counts of a topic are included in the totals, and in no other topic")
    func counters() {
        var table = Self.table(3)
        table.count(Self.topic(0)) { $0.accepted += 2 }
        table.count(Self.topic(2)) { $0.accepted += 5 }
        table.count(Self.topic(2)) { $0.discarded[.expired] += 1 }
        #expect([0, 1, 2].map { table.counters(Self.topic($0)).accepted } == [2, 0, 5])
        #expect(table.totals.accepted == 7 && table.totals.discarded[.expired] == 1)
        table.countDevices(Self.topic(1), 1)
        table.countDevices(Self.topic(1), 1)
        table.countDevices(Self.topic(1), -1)
        #expect([0, 1, 2].map { table.deviceCount(Self.topic($0)) } == [0, 1, 0])
    }

    @Test("A topic is a change when it is created or counted, once until changes are taken")
    func changes() {
        var table = Self.table(3)
        #expect(table.hasChanges == true)
        #expect(table.takeChanges() == [0, 1, 2].map(Self.topic))
        #expect(table.hasChanges == false)
        for number in [2, 0, 2] { table.count(Self.topic(number)) { $0.accepted += 1 } }
        // The number of devices of a topic is computed from their records, so it is not a change.
        table.countDevices(Self.topic(1), 1)
        #expect(table.takeChanges() == [2, 0].map(Self.topic))
        table.count(Self.topic(2)) { $0.accepted += 1 }
        #expect(Set(Self.records(&table).keys) == [2])
        #expect(table.takeChanges() == [])
    }

    @Test("Records bring names and counts back, in any order, and are no change")
    func restored() throws {
        var table = Self.table(3)
        table.count(Self.topic(1)) { $0.accepted += 4 }
        table.count(Self.topic(2)) { $0.accepted += 5 }
        let records = Self.records(&table)
        var next = TopicTable(key: HashKey((7, 8)))
        for number in [2, 0, 1] as [UInt32] {
            let content = try #require(records[number])
            #expect(content.withByteView { next.restore(number, $0) } == true)
            #expect(content.dropLast().withByteView { next.restore(number, $0) } == false)
        }
        try next.finishRestoring(EngineRig.open())
        next.count(Self.topic(1)) { $0.registered += 1 }
        next.beginSteps()
        #expect(next.hasChanges == false)
        #expect([0, 1, 2].map { next.name(Self.topic($0)) } == (0..<3).map(EngineRig.topicName))
        #expect([0, 1, 2].map { next.counters(Self.topic($0)).accepted } == [0, 4, 5])
        #expect(next.totals.accepted == 9 && next.totals.registered == 1)
    }

    @Test("A pause is stored while it lasts, and only a real change of it counts as a change")
    func paused() throws {
        var table = Self.table(2)
        let before = try #require(Self.records(&table)[1])
        #expect(table.setPaused(Self.topic(1), true, at: .distantPast) == true)
        #expect(table.setPaused(Self.topic(1), true, at: .distantPast) == false)
        let paused = try #require(Self.records(&table)[1])
        var next = TopicTable(key: HashKey((7, 8)))
        #expect(paused.withByteView { next.restore(1, $0) } == true)
        #expect((paused + paused.suffix(1)).withByteView { next.restore(1, $0) } == false, "it is said once")
        var first = Self.table(1)
        let other = try #require(Self.records(&first)[0])
        #expect(other.withByteView { next.restore(0, $0) } == true)
        try next.finishRestoring(EngineRig.open())
        next.beginSteps()
        #expect([0, 1].map { next.isPaused(Self.topic($0)) } == [false, true] && next.hasChanges == false)
        #expect(next.setPaused(Self.topic(1), false, at: Instant(milliseconds: 7)) == true)
        #expect(next.resumedAt(Self.topic(1)) == Instant(milliseconds: 7))
        #expect(Self.records(&next)[1] == before, "a program without pauses can read it")
    }

    @Test("Cancelled pushes are stored only if there are any")
    func cancelled() throws {
        var table = Self.table(1)
        let before = try #require(Self.records(&table)[0])
        table.count(Self.topic(0)) { $0.discarded[.cancelled] += 3 }
        let after = try #require(Self.records(&table)[0])
        #expect(after.count == before.count + 9)
        var next = TopicTable(key: HashKey((7, 8)))
        #expect(after.withByteView { next.restore(0, $0) } == true)
        try next.finishRestoring(EngineRig.open())
        #expect(next.counters(Self.topic(0)).discarded[.cancelled] == 3)
    }

    @Test("Missing records, and records with another's name, are refused", arguments: [[0, 2], [0, 1, 0]])
    func refused(numbers: [Int]) throws {
        var table = Self.table(3)
        let records = Self.records(&table)
        var next = TopicTable(key: HashKey((7, 8)))
        for (place, number) in numbers.enumerated() {
            // Either at its own number or, for three records, at consecutive numbers.
            let place = numbers.count == 3 ? UInt32(place) : UInt32(number)
            let content = try #require(records[UInt32(number)])
            #expect(content.withByteView { next.restore(place, $0) } == true)
        }
        #expect(throws: StoreError.self) { try next.finishRestoring(EngineRig.open()) }
    }
}

@Suite("Tables of the engine", .timeLimit(.minutes(15)))
struct TablesTests {
    private static let key = HashKey((0x5EED, 0))

    private static func length(_ number: Int) -> Int { 16 + number % 85 }

    private static func find(in table: borrowing DeviceTable, _ token: DeviceToken) -> DeviceIndex? {
        table.find(token, hash: Self.key.hash(token))
    }

    @Test("Of two hundred thousand tokens of every length exactly the stored ones are found")
    func growth() {
        let count = 200_000
        var wrong = 0
        var table = DeviceTable(key: Self.key)
        for number in 0..<count {
            let token = EngineRig.token(number, bytes: Self.length(number))
            let record = DeviceRecord(token: token, topic: TopicIndex(rawValue: 0), registeredAt: .distantPast)
            let index = table.insert(record)
            #expect(index.rawValue == UInt32(number))
            // Devices must also be found while the index grows.
            let before = number * 7 % (number + 1)
            let older = EngineRig.token(before, bytes: Self.length(before))
            if number % 3 == 0, Self.find(in: table, older)?.rawValue != UInt32(before) { wrong += 1 }
        }
        #expect(table.count == count)
        for number in stride(from: 0, to: count, by: 3) {
            let token = EngineRig.token(number, bytes: Self.length(number))
            if Self.find(in: table, token)?.rawValue != UInt32(number) { wrong += 1 }
            if table[DeviceIndex(rawValue: UInt32(number))].token.token != token { wrong += 1 }
            // A token that is one byte longer or shorter belongs to another device.
            if Self.find(in: table, EngineRig.token(number, bytes: Self.length(number + 1))) != nil { wrong += 1 }
            if Self.find(in: table, EngineRig.token(count + number, bytes: Self.length(number))) != nil { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    @Test("The size of a row is limited, because there are a million")
    func sizes() {
        #expect(MemoryLayout<DeviceState>.size <= 185)
        #expect(MemoryLayout<DeviceRecord>.stride <= 280)
    }

    @Test("A changed row is reported once until changes are taken, in the order of the changes")
    func changes() {
        var table = DeviceTable.registered(3)
        #expect(table.hasChanges == false)
        for number in [2, 0, 2, 0] as [UInt32] { table.noteChange(DeviceIndex(rawValue: number)) }
        #expect(table.hasChanges == true)
        #expect(table.takeChanges().map(\.rawValue) == [2, 0])
        #expect(table.hasChanges == false)
        for number in [1, 2, 1] as [UInt32] { table.noteChange(DeviceIndex(rawValue: number)) }
        var batch = RecordBatch()
        table.takeChanges(into: &batch, at: Instant(milliseconds: 0))
        let keys = batch.records.map { $0.key }
        #expect(keys == [RecordKey(.device, 1), RecordKey(.device, 2)])
        #expect(table.takeChanges() == [])
    }

    @Test("The largest elements are those that sorting would put first", arguments: UInt64(1)...20)
    func maximum(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let amounts = (0..<generator.number(below: 300)).map { _ in generator.number(below: 50) }
        for countMax in [0, 1, 7, 100, 1000] {
            let expected = amounts.sorted(by: >).prefix(countMax)
            #expect(amounts.top(countMax) { $0 } == Array(expected))
        }
    }

    @Test("A table of wakes holds exactly the wakes that were added and not removed")
    func wakeTable() {
        var table = WakeTable<Int>()
        let wakes = (0..<5000).map { WakeID(random: (UInt64($0) &* 0x9E37_79B9, UInt64($0))) }
        for (number, wake) in wakes.enumerated() { table[wake] = number }
        table[wakes[7]] = -7
        for wake in wakes.prefix(3000).dropFirst(10) { table[wake] = nil }
        table[wakes[2999]] = nil
        #expect(table.count == 2010)
        #expect(table[wakes[7]] == -7)
        #expect(table[wakes[10]] == nil)
        #expect(wakes.dropFirst(3000).enumerated().allSatisfy { table[$0.element] == $0.offset + 3000 })
    }

    @Test("A ring is a list of four", arguments: UInt64(1)...4)
    func ringLikeList(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var ring = Ring<Int>()
        var list: [Int] = []
        for step in 0..<500 {
            if generator.once(in: 3) {
                #expect(ring.popFirst() == (list.isEmpty ? nil : list.removeFirst()))
            } else {
                list.append(step)
                #expect(ring.append(step) == (list.count > 4 ? list.removeFirst() : nil))
            }
            #expect(ring.elements == list)
        }
    }
}
