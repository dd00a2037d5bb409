import Engine
import Gateway
import Policy
import Synchronization
import Testing
import WakeGateTestKit

@Suite("The clocks of an engine", .timeLimit(.minutes(15)))
struct EngineClockTests {
    private let shared = SharedClock(boot: 1000, wall: 1_700_000_000_000)

    private func makeClock(resuming stored: ClockRecord? = nil, _ watch: ClockJumpWatch = ClockJumpWatch())
        -> EngineClock
    {
        let world = EngineWorld(self.shared, seed: 1)
        return EngineClock(resuming: stored, at: EngineClock.Reading(world), world, watch)
    }

    @Test("The first start begins at the wall clock, and goes on by the uptime")
    func first() {
        var clock = self.makeClock()
        #expect(clock.now.milliseconds == 1_700_000_000_000 && clock.offset.milliseconds == 0)
        self.shared.change { $0.pass(500) }
        #expect(clock.now.milliseconds == 1_700_000_000_000, "the present is that of the step")
        #expect(clock.milliseconds(until: 1_700_000_000_700) == 200)
        #expect(clock.milliseconds(until: 1_700_000_000_400) == -100)
        clock.step()
        #expect(clock.now.milliseconds == 1_700_000_000_500 && clock.monotonic == 1500)
    }

    @Test("A wall clock that is set moves the offset and no step, one that is a little off moves nothing")
    func wallIsSet() {
        var clock = self.makeClock()
        self.shared.change { $0.stepWall(by: 49) }
        clock.step()
        #expect(clock.offset.milliseconds == 0)
        self.shared.change { $0.stepWall(by: -3_600_049) }
        clock.step()
        #expect(clock.offset.milliseconds == -3_600_000 && clock.now.milliseconds == 1_700_000_000_000)
        let record = clock.record(at: clock.now)
        #expect(record.now == clock.now && record.wall == 1_699_996_400_000)
    }

    @Test("A start goes on where the last commit stood, plus what has passed, unless nobody would believe that")
    func resumed() {
        var clock = self.makeClock()
        let record = clock.record(at: clock.now)
        self.shared.change {
            $0.pass(60_000)
            $0.reboot()
        }
        #expect(self.makeClock(resuming: record).now == clock.now + 60_000)
        let jumps = Mutex<[WallClockJump]>([])
        self.shared.change { $0.stepWall(by: 10_000_000) }
        let watch = ClockJumpWatch(millisecondsMax: 1_000_000) { jump in jumps.withLock { $0.append(jump) } }
        #expect(self.makeClock(resuming: record, watch).now == clock.now)
        #expect(jumps.withLock { $0.map(\.isHeldBack) } == [true])
    }
}
