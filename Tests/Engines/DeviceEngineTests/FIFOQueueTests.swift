import DeviceEngine
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
}
