import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

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
