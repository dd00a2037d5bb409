import DeviceEngine
import LaunchPolicy
import Testing
import WakeGateTestKit

@Suite("Policy time and the wall clock", .timeLimit(.minutes(15)))
struct PolicyClockTests {
    private static let hour: Int64 = 3_600_000

    @Test("A wall clock that steps while the gateway runs moves nothing", arguments: [-hour, hour])
    func liveStep(step: Int64) {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let clock = PolicyClock(wall: machine.wall, boot: machine.boot)
        #expect(clock.now(boot: machine.boot).milliseconds == 1_700_000_000_000)
        machine.stepWall(by: step)
        machine.pass(250)
        #expect(clock.now(boot: machine.boot).milliseconds == 1_700_000_000_250)
        // Only what is shown follows the wall clock.
        let now = clock.now(boot: machine.boot)
        #expect(WallOffset(wall: machine.wall, now: now).milliseconds == step)
        #expect(WallOffset(wall: machine.wall, now: now).wall(now) == machine.wall)
    }

    @Test("Across a restart policy time goes on by what the wall clock says, and never back")
    func restart() {
        var machine = VirtualClock(boot: 90_000, wall: 1_700_000_000_000)
        let stored = Instant(milliseconds: 1_699_999_000_000)
        let storedWall = machine.wall
        machine.reboot()
        machine.pass(20_000)
        let clock = PolicyClock(stored: stored, storedWall: storedWall, wall: machine.wall, boot: machine.boot)
        #expect(clock.now(boot: machine.boot) == stored + 20_000)
        #expect(clock.now(boot: machine.boot + 7) == stored + 20_007)
        machine.stepWall(by: -Self.hour)
        let behind = PolicyClock(stored: stored, storedWall: storedWall, wall: machine.wall, boot: machine.boot)
        #expect(behind.now(boot: machine.boot) == stored)
        #expect(behind.now(boot: machine.boot + 1) == stored + 1)
    }

    @Test(
        "No moment that was stored is too far away to be reckoned with",
        arguments: [.min, -1, 0, .max] as [Int64],
        [.min, -1, 0, 1_700_000_000_000, .max] as [Int64]
    )
    func farAway(stored: Int64, storedWall: Int64) {
        for wall in [storedWall, 0, 1_700_000_000_000] {
            let stored = Instant(milliseconds: stored)
            let clock = PolicyClock(stored: stored, storedWall: storedWall, wall: wall, boot: 5)
            let now = clock.now(boot: 6)
            #expect(now >= stored)
            let offset = WallOffset(wall: wall, now: now)
            _ = offset.wallSecondsRoundedUp(now)
            _ = offset.instant(wallSeconds: .max)
            _ = offset.wall(.distantFuture)
        }
    }

    @Test("A step of the wall clock ends no wake and changes no hold", arguments: [-hour, hour])
    func stepEndsNothing(step: Int64) throws {
        var machine = VirtualClock(boot: 77, wall: 1_700_000_000_000)
        let clock = PolicyClock(wall: machine.wall, boot: machine.boot)
        let rig = EngineRig(start: clock.now(boot: machine.boot).milliseconds)
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.push(1, .considerate)
        rig.push(2, .considerate)
        rig.conditions(2) { $0.network = false }
        let before = [rig.snapshot(1).state, rig.snapshot(2).state]
        let eligible = try #require(rig.snapshot(1).state.nextMoment(Parameters()))
        machine.stepWall(by: step)
        machine.pass(1)
        let now = clock.now(boot: machine.boot)
        #expect(rig.engine.advance(to: now, devicesMax: 10))
        #expect([rig.snapshot(1).state, rig.snapshot(2).state] == before)
        #expect(rig.snapshot(2).held == [.network])
        #expect(rig.snapshot(1).wake == wake)
        #expect(eligible == rig.instant + 30_000)
        #expect(rig.engine.popExpiredWake() == nil)
    }

    @Test("One moment is one number, however the readings of the two clocks fall into their milliseconds")
    func jitter() {
        let moment = Instant(milliseconds: 1_700_000_000_123)
        var offset = WallOffset(wall: 1_700_000_000_000, now: Instant(milliseconds: 1_700_000_000_000))
        for number in Int64(0)..<1000 {
            let now = Instant(milliseconds: 1_700_000_000_000 + number * 17)
            offset = offset.following(wall: now.milliseconds + number % 7 - 3, now: now, tolerance: number % 2)
            #expect(offset.wall(moment) == 1_700_000_000_123)
        }
    }

    @Test("A wall clock that is set is followed at once, and one that is set by little once it has come far")
    func setClock() {
        let start = Instant(milliseconds: 1_700_000_000_000)
        var offset = WallOffset(wall: start.milliseconds, now: start)
        offset = offset.following(wall: start.milliseconds - Self.hour, now: start, tolerance: 0)
        #expect(offset.milliseconds == -Self.hour)
        offset = offset.following(wall: start.milliseconds, now: start, tolerance: 4)
        #expect(offset.milliseconds == 0)
        for number in 1...200 as ClosedRange<Int64> {
            offset = offset.following(wall: start.milliseconds + number, now: start, tolerance: 0)
            #expect(abs(offset.milliseconds - number) < WallOffset.stepMin)
        }
    }

    @Test("Clocks that were read too far apart say nothing")
    func heldUp() {
        let start = Instant(milliseconds: 1_700_000_000_000)
        let offset = WallOffset(wall: start.milliseconds, now: start)
        #expect(offset.following(wall: start.milliseconds + 700, now: start, tolerance: 700) == offset)
    }

    @Test("A moment on the wall clock and back is the same moment")
    func roundTrip() {
        let now = Instant(milliseconds: 1_700_000_000_123)
        let offset = WallOffset(wall: 1_700_003_600_123, now: now)
        #expect(offset.instant(wallSeconds: 1_700_003_700) == Instant(milliseconds: 1_700_000_100_000))
        #expect(offset.wall(offset.instant(wallSeconds: 1_700_003_700)) == 1_700_003_700_000)
        // The largest number a header can hold is a moment far away, not a crash.
        #expect(offset.instant(wallSeconds: .max) > now + 1_000_000_000_000)
    }

    @Test(
        "Eligible-at is rounded up to the second, so that whoever waits for it is never early",
        arguments: [(0, 0), (1, 1), (999, 1), (1000, 1), (1001, 2)] as [(Int64, Int64)]
    )
    func roundsUp(milliseconds: Int64, seconds: Int64) {
        let offset = WallOffset(wall: 5_000_000, now: Instant(milliseconds: 0))
        #expect(offset.wallSecondsRoundedUp(Instant(milliseconds: milliseconds)) == 5000 + seconds)
    }
}
