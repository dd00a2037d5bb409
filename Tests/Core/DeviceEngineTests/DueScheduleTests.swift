import Engine
import Policy
import Testing

@Suite("The schedule of what is due", .timeLimit(.minutes(15)))
struct DueScheduleTests {
    private static func device(_ number: UInt32) -> DeviceIndex { DeviceIndex(rawValue: number) }

    private static func at(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

    @Test("While something due is being done, its moment is known; nothing else has one")
    func moment() {
        var schedule = DueSchedule()
        schedule.set(Self.device(1), to: Self.at(10))
        schedule.set(Self.device(2), to: Self.at(20))
        #expect(schedule.first == Self.at(10) && schedule[Self.device(2)] == Self.at(20))
        #expect(schedule.momentBeingDone == nil)
        #expect(schedule.popDue(Self.at(15)) == Self.device(1))
        #expect(schedule.momentBeingDone == Self.at(10))
        // Nothing else is due: nothing that is done now was brought about by time alone.
        #expect(schedule.popDue(Self.at(15)) == nil)
        #expect(schedule.momentBeingDone == nil)
        #expect(schedule.popDue(Self.at(25)) == Self.device(2))
        schedule.end()
        #expect(schedule.momentBeingDone == nil && schedule.first == nil)
        schedule.begin(Self.at(7))
        #expect(schedule.momentBeingDone == Self.at(7))
    }

    /// How many devices there are, how many are looked at in a step, and the steps until all were.
    static let rounds: [(deviceCount: Int, devicesMax: Int, ranges: [Range<Int>])] = [
        (0, 4, [0..<0]), (1, 4, [0..<1]), (4, 4, [0..<4]), (5, 4, [0..<4, 4..<5]), (8, 4, [0..<4, 4..<8]),
        (3, 1, [0..<1, 1..<2, 2..<3]),
    ]

    @Test("Under another policy every device is looked at, so many in a step", arguments: Self.rounds.indices)
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
