import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("The schedule of due devices", .timeLimit(.minutes(15)))
struct DueScheduleTests {
    private static func device(_ number: UInt32) -> DeviceIndex { DeviceIndex(rawValue: number) }

    private static func at(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

    @Test("Only the due time that is being handled is known")
    func moment() {
        var schedule = DueSchedule()
        schedule.set(Self.device(1), to: Self.at(10))
        schedule.set(Self.device(2), to: Self.at(20))
        #expect(schedule.first == Self.at(10) && schedule[Self.device(2)] == Self.at(20))
        #expect(schedule.momentBeingDone == nil)
        #expect(schedule.popDue(Self.at(15)) == Self.device(1))
        #expect(schedule.momentBeingDone == Self.at(10))
        // Nothing else is due, so the next operation has an outside cause.
        #expect(schedule.popDue(Self.at(15)) == nil)
        #expect(schedule.momentBeingDone == nil)
        #expect(schedule.popDue(Self.at(25)) == Self.device(2))
        schedule.end()
        #expect(schedule.momentBeingDone == nil && schedule.first == nil)
        schedule.begin(Self.at(7))
        #expect(schedule.momentBeingDone == Self.at(7))
    }

    /// The number of devices, the number examined per step, and the resulting steps.
    static let rounds: [(deviceCount: Int, devicesMax: Int, ranges: [Range<Int>])] = [
        (0, 4, [0..<0]), (1, 4, [0..<1]), (4, 4, [0..<4]), (5, 4, [0..<4, 4..<5]), (8, 4, [0..<4, 4..<8]),
        (3, 1, [0..<1, 1..<2, 2..<3]),
    ]

    @Test("After a policy change every device is examined, a limited number per step", arguments: Self.rounds.indices)
    func judging(index: Int) {
        let round = Self.rounds[index]
        var schedule = DueSchedule()
        #expect(schedule.popUnjudged(devicesMax: round.devicesMax, of: round.deviceCount).isEmpty)
        schedule.policyChanged()
        for range in round.ranges {
            #expect(schedule.isJudging == true)
            #expect(schedule.popUnjudged(devicesMax: round.devicesMax, of: round.deviceCount) == range)
        }
        #expect(schedule.isJudging == false)
    }

    @Test("A policy that changes while devices are looked at has all of them looked at again")
    func judgingAnew() {
        var schedule = DueSchedule()
        schedule.policyChanged()
        #expect(schedule.popUnjudged(devicesMax: 3, of: 9) == 0..<3)
        schedule.policyChanged()
        #expect(schedule.popUnjudged(devicesMax: 9, of: 9) == 0..<9)
        #expect(schedule.isJudging == false)
    }
}

@Suite("The due index", .timeLimit(.minutes(15)))
struct DueIndexTests {
    @Test("The index gives the same answers as a list that is searched each time", arguments: UInt64(1)...8)
    func likeNaive(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = DueIndex()
        var naive: [UInt32: Instant] = [:]
        var popped = 0
        for step in 0..<4000 {
            let device = DeviceIndex(rawValue: UInt32(generator.number(below: 120)))
            switch generator.number(below: 8) {
            case 0..<5:
                // Few distinct times, so that many are equal.
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
}
