import Engine
import Testing
import WakeGateTestKit

@Suite("A queue", .timeLimit(.minutes(15)))
struct FIFOQueueTests {
    @Test("What comes first leaves first, whatever comes in between", arguments: UInt64(1)...8)
    func likeList(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = FIFOQueue<Int>()
        var list: [Int] = []
        var emptied = 0
        for step in 0..<2000 {
            if generator.once(in: 2) {
                #expect(queue.popFirst() == (list.isEmpty ? nil : list.removeFirst()), "seed \(seed), step \(step)")
                if list.isEmpty { emptied += 1 }
            } else {
                queue.append(step)
                list.append(step)
            }
            #expect(queue.first == list.first && queue.isEmpty == list.isEmpty, "seed \(seed), step \(step)")
        }
        #expect(emptied > 3)
    }

    @Test("A queue gives the memory of a burst back when it is empty, and not before")
    func shrink() {
        var queue = FIFOQueue<Int>()
        for number in 0..<1000 { queue.append(number) }
        queue.shrink(keeping: 8)
        for number in 0..<1000 { #expect(queue.popFirst() == number) }
        #expect(queue.capacity >= 1000)
        queue.shrink(keeping: 8)
        #expect(queue.isEmpty && queue.capacity == 0)
        queue.append(1)
        #expect(queue.popFirst() == 1)
    }
}
