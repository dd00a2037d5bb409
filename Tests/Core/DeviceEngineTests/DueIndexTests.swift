import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("The due index", .timeLimit(.minutes(15)))
struct DueIndexTests {
    @Test("It answers like a list that is searched each time", arguments: UInt64(1)...8)
    func likeNaive(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = DueIndex()
        var naive: [UInt32: Instant] = [:]
        var popped = 0
        for step in 0..<4000 {
            let device = DeviceIndex(rawValue: UInt32(generator.number(below: 120)))
            switch generator.number(below: 8) {
            case 0..<5:
                // Few different moments, so that many are equal.
                let moment = Instant(milliseconds: Int64(generator.number(below: 60)))
                index.set(device, to: moment)
                naive[device.rawValue] = moment
            case 5:
                index.set(device, to: nil)
                naive[device.rawValue] = nil
            default:
                let now = Instant(milliseconds: Int64(generator.number(below: 30)))
                let least = naive.values.min()
                let device = index.popDue(now)
                #expect((device != nil) == (least.map { $0 <= now } ?? false), "seed \(seed), step \(step)")
                guard let device else { break }
                popped += 1
                #expect(naive.removeValue(forKey: device.rawValue) == least, "seed \(seed), step \(step)")
            }
            #expect(index.count == naive.count)
            #expect(index.first == naive.values.min(), "seed \(seed), step \(step)")
            #expect(index[device] == naive[device.rawValue])
        }
        #expect(popped > 100)
    }

    @Test("All that is in it comes out in the order of time")
    func sorts() {
        var generator = SeededGenerator(seed: 7)
        var index = DueIndex()
        var moments: [Int64] = []
        for device in 0..<5000 {
            moments.append(Int64(generator.number(below: 1_000_000)))
            index.set(DeviceIndex(rawValue: UInt32(device)), to: Instant(milliseconds: moments[device]))
        }
        var out: [Int64] = []
        while let device = index.popDue(.distantFuture) { out.append(moments[Int(device.rawValue)]) }
        #expect(out == moments.sorted())
    }

    @Test("Nothing is due before its moment, and at it it is")
    func atMoment() {
        var index = DueIndex()
        index.set(DeviceIndex(rawValue: 3), to: Instant(milliseconds: 10))
        #expect(index.popDue(Instant(milliseconds: 9)) == nil)
        #expect(index.popDue(Instant(milliseconds: 10)) == DeviceIndex(rawValue: 3))
        #expect(index.first == nil)
        #expect(index[DeviceIndex(rawValue: 99)] == nil)
    }
}
