import Bytes
import LaunchPolicy
import Testing
import WakeGateTestKit

@testable import DeviceEngine

@Suite("Tables of the engine", .timeLimit(.minutes(15)))
struct TablesTests {
    private static func length(_ number: Int) -> Int { 16 + number % 85 }

    @Test("Two hundred thousand tokens of every length are found, and no others")
    func growth() {
        let count = 200_000
        var table = DeviceTable(seed: 0x5EED)
        for number in 0..<count {
            let token = EngineRig.token(number, bytes: Self.length(number))
            let record = DeviceRecord(token: token, topic: TopicIndex(rawValue: 0), registeredAt: .distantPast)
            let index = table.insert(record)
            #expect(index.rawValue == UInt32(number))
        }
        #expect(table.count == count)
        var wrong = 0
        for number in stride(from: 0, to: count, by: 3) {
            let token = EngineRig.token(number, bytes: Self.length(number))
            if table.find(token)?.rawValue != UInt32(number) { wrong += 1 }
            if table[DeviceIndex(rawValue: UInt32(number))].token.token != token { wrong += 1 }
            // One byte longer or shorter is somebody else's.
            if table.find(EngineRig.token(number, bytes: Self.length(number + 1))) != nil { wrong += 1 }
            if table.find(EngineRig.token(count + number, bytes: Self.length(number))) != nil { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    @Test("Topics are found by their bytes alone, past the table's growth")
    func topicNames() {
        var names = TopicNames(seed: 99)
        for number in 0..<500 {
            let name = "topic.\(number)"
            name.withByteView { view in
                #expect(names.find(view) == nil)
                #expect(names.insert(view) == TopicIndex(rawValue: UInt32(number)))
            }
        }
        for number in 0..<500 {
            "topic.\(number)".withByteView { #expect(names.find($0) == TopicIndex(rawValue: UInt32(number))) }
            "topic.\(number) ".withByteView { #expect(names.find($0) == nil) }
        }
        #expect(names.find(ByteView()) == nil)
    }

    @Test("A ring keeps the last four and gives back what made room")
    func ring() {
        var ring = Ring<Int>()
        #expect(ring.popFirst { _ in true } == nil)
        for number in 1...4 { #expect(ring.append(number) == nil) }
        #expect(ring.append(5) == 1)
        #expect(ring.elements == [2, 3, 4, 5])
        #expect(ring.popFirst { $0 == 3 } == nil)
        #expect(ring.popFirst { $0 == 2 } == 2)
        #expect(ring.elements == [3, 4, 5])
        #expect(ring.append(6) == nil)
        #expect(ring.append(7) == 3)
        #expect(ring.elements == [4, 5, 6, 7])
    }

    @Test("A ring is a list of four", arguments: UInt64(1)...4)
    func ringLikeList(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var ring = Ring<Int>()
        var list: [Int] = []
        for step in 0..<500 {
            if generator.once(in: 3) {
                let asked = list.first.map { $0 + generator.number(below: 2) } ?? 0
                let taken = list.first == asked ? list.removeFirst() : nil
                #expect(ring.popFirst { $0 == asked } == taken)
            } else {
                list.append(step)
                #expect(ring.append(step) == (list.count > 4 ? list.removeFirst() : nil))
            }
            #expect(ring.elements == list)
        }
    }
}
