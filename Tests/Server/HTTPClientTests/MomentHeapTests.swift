import HTTPClient
import Testing
import WakeGateTestKit

@Suite("Moments of many things")
struct MomentHeapTests {
    @Test("The earliest comes first, whatever was changed before", arguments: 0..<20)
    func order(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var heap = MomentHeap<Int>()
        var model: [Int: Int64] = [:]
        for _ in 0..<2000 {
            let key = generator.number(below: 40)
            let moment = generator.once(in: 4) ? nil : Int64(generator.number(below: 1000))
            heap.set(key, to: moment)
            model[key] = moment
            let first = heap.first
            #expect(first == model.values.min(), "seed \(seed)")
            guard generator.once(in: 5) else { continue }
            let now = Int64(generator.number(below: 1000))
            let due = heap.popDue(now)
            let earliest = model.values.min()
            #expect((due != nil) == (earliest.map { $0 <= now } ?? false), "seed \(seed)")
            if let due { #expect(model.removeValue(forKey: due) == earliest, "seed \(seed)") }
        }
    }
}
