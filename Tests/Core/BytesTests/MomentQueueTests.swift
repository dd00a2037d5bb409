import Testing
import Wire

@Suite("A queue by due time")
struct MomentQueueTests {
    @Test("Values are taken when they are due, earliest first, and in order of insertion at the same time")
    func order() {
        var queue = MomentQueue<Int>()
        #expect(queue.first?.moment == nil)
        for (value, due) in [30, 10, 20, 10, 40, 20, 10].enumerated() { queue.insert(value, at: Int64(due)) }
        #expect(queue.first?.moment == 10)
        let early = queue.popDue(9)?.value
        #expect(early == nil)
        var taken: [Int] = []
        while let value = queue.popDue(20)?.value { taken.append(value) }
        #expect(taken == [1, 3, 6, 2, 5])
        #expect(queue.first?.moment == 30)
        while let value = queue.popDue(.max)?.value { taken.append(value) }
        #expect(taken == [1, 3, 6, 2, 5, 0, 4])
    }

    @Test("Removed values are not taken, and the others come in order")
    func remove() {
        var queue = MomentQueue<Int>()
        for value in 0..<100 { queue.insert(value, at: Int64(value * 37 % 100)) }
        queue.removeAll { $0.value % 3 == 0 }
        var taken: [Int] = []
        while let value = queue.popDue(.max)?.value { taken.append(value) }
        #expect(taken == (0..<100).filter { $0 % 3 != 0 }.sorted { $0 * 37 % 100 < $1 * 37 % 100 })
    }

    @Test("Many values of few times are taken in order")
    func many() {
        var queue = MomentQueue<Int>()
        for value in 0..<10_000 { queue.insert(value, at: Int64(value * 7919 % 997)) }
        var taken: [Int64] = []
        while let due = queue.first?.moment, queue.popDue(due) != nil { taken.append(due) }
        #expect(taken.count == 10_000 && taken == taken.sorted())
    }
}
