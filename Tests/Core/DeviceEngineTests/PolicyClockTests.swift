import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Policy time and the wall clock", .timeLimit(.minutes(15)))
struct PolicyClockTests {
    private static let hour: Int64 = 3_600_000
    private static let year: Int64 = 365 * 86_400_000
    private static let boots = [BootID(first: 1, second: 2), BootID(first: 3, second: 4)]

    /// Returns the record of a gateway that ran for an hour with a correct clock, on the first of the boots.
    private static func firstLife(_ machine: inout VirtualClock) -> ClockRecord {
        var clock = PolicyClock(wall: machine.wall, boot: machine.boot, bootID: self.boots[0])
        machine.pass(self.hour)
        let now = clock.now(boot: machine.boot)
        return clock.record(now, WallOffset(wall: machine.wall, now: now))
    }

    /// Returns the record of the next run.
    private static func nextLife(
        _ record: ClockRecord,
        _ machine: VirtualClock,
        boot: BootID?,
        jumpMax: Int64 = year
    ) -> (record: ClockRecord, jump: WallClockJump?) {
        var (clock, jump) = PolicyClock.resumed(
            record,
            wall: machine.wall,
            boot: machine.boot,
            bootID: boot,
            jumpMax: jumpMax
        )
        let now = clock.now(boot: machine.boot)
        return (clock.record(now, WallOffset(wall: machine.wall, now: now)), jump)
    }

    @Test("Within one boot policy time advances with the uptime, whatever the wall clock says", arguments: [-10, 10])
    func oneBoot(years: Int64) {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let first = Self.firstLife(&machine)
        machine.pass(700)
        machine.stepWall(by: years * Self.year)
        let second = Self.nextLife(first, machine, boot: Self.boots[0])
        #expect(second.record.now == first.now + 700 && second.jump == nil)
        // Longer than the jump of the wall clock that is accepted across boots.
        machine.pass(2 * Self.year)
        machine.stepWall(by: -years * Self.year)
        let third = Self.nextLife(second.record, machine, boot: Self.boots[0])
        #expect(third.record.now == first.now + 700 + 2 * Self.year && third.jump == nil)
    }

    @Test("A boot with a clock ten years behind, and the corrected clock after it, make no time pass")
    func behind() {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let first = Self.firstLife(&machine)
        machine.reboot()
        machine.stepWall(by: -10 * Self.year)
        let second = Self.nextLife(first, machine, boot: Self.boots[1])
        #expect(second.record.now == first.now)
        #expect(second.jump == WallClockJump(from: first.wall, to: machine.wall, isHeldBack: false))
        machine.pass(20_000)
        machine.reboot()
        machine.stepWall(by: 10 * Self.year)
        let third = Self.nextLife(second.record, machine, boot: Self.boots[0])
        // The lost 20 seconds are known again: the clock continues as if it had always been correct.
        #expect(third.record.now == first.now + 20_000)
        #expect(third.jump?.isHeldBack == false)
        // From here on, restarts behave normally.
        machine.pass(Self.hour)
        machine.reboot()
        let fourth = Self.nextLife(third.record, machine, boot: Self.boots[1])
        #expect(fourth.record.now == first.now + 20_000 + Self.hour && fourth.jump == nil)
    }

    @Test("A boot with a clock ten years ahead is held back, unless that much is allowed")
    func ahead() {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let first = Self.firstLife(&machine)
        machine.reboot()
        machine.stepWall(by: 10 * Self.year)
        let held = Self.nextLife(first, machine, boot: Self.boots[1])
        #expect(held.record.now == first.now)
        #expect(held.jump == WallClockJump(from: first.wall, to: machine.wall, isHeldBack: true))
        let allowed = Self.nextLife(first, machine, boot: Self.boots[1], jumpMax: 11 * Self.year)
        #expect(allowed.record.now == first.now + 10 * Self.year && allowed.jump == nil)
        // The correct clock after it adds no time either, and the restart after that behaves normally.
        machine.pass(5000)
        machine.reboot()
        machine.stepWall(by: -10 * Self.year)
        let right = Self.nextLife(held.record, machine, boot: Self.boots[0])
        #expect(right.record.now == first.now && right.jump?.isHeldBack == false)
        machine.pass(Self.hour)
        machine.reboot()
        #expect(Self.nextLife(right.record, machine, boot: Self.boots[1]).record.now == first.now + Self.hour)
    }

    @Test("An uptime that goes back within a boot is not trusted")
    func impossibleUptime() {
        var machine = VirtualClock(boot: 3 * Self.year, wall: 1_700_000_000_000)
        let first = Self.firstLife(&machine)
        machine.pass(900)
        let odd = VirtualClock(boot: machine.boot - Self.year, wall: machine.wall)
        let second = Self.nextLife(first, odd, boot: Self.boots[0])
        #expect(second.record.now == first.now + 900 && second.jump == nil)
    }

    @Test("A wall clock that goes back at run time and forward across a boot makes no time pass")
    func stepAndBack() {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        var clock = PolicyClock(wall: machine.wall, boot: machine.boot, bootID: Self.boots[0])
        machine.stepWall(by: -Self.hour)
        let now = clock.now(boot: machine.boot)
        let record = clock.record(now, WallOffset(wall: machine.wall, now: now))
        machine.reboot()
        machine.stepWall(by: Self.hour)
        #expect(Self.nextLife(record, machine, boot: Self.boots[1]).record.now == now)
    }

    @Test("A record is restored unchanged, also without a boot, and one of another length is refused")
    func records() throws {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let record = Self.firstLife(&machine)
        #expect(record.boot == BootMoment(id: Self.boots[0], milliseconds: machine.boot))
        var buffer = ByteBuffer()
        record.store(to: &buffer)
        #expect(ClockRecord(stored: buffer.view) == record)
        let bootless = ClockRecord(now: record.now, wall: record.wall)
        var other = ByteBuffer()
        bootless.store(to: &other)
        #expect(ClockRecord(stored: other.view) == bootless)
        machine.reboot()
        machine.pass(30)
        #expect(Self.nextLife(bootless, machine, boot: Self.boots[1]).record.now == record.now + 30)
        machine.stepWall(by: -Self.hour)
        let behind = Self.nextLife(bootless, machine, boot: Self.boots[1])
        #expect(behind.record.now == record.now && behind.jump == nil)
        for count in [0, 15, 16, 17, 47] { #expect(ClockRecord(stored: buffer.view[0..<count]) == nil) }
    }

    @Test("A boot has the id that Linux writes")
    func bootIDs() {
        let id = BootID(first: 0x0123_4567_89ab_cdef, second: 0xfedc_ba98_7654_3210)
        #expect(BootID(text: "01234567-89ab-cdef-fedc-ba9876543210") == id)
        for text in ["", "01234567-89ab-cdef-fedc-ba987654321", "00000000-0000-0000-0000-000000000000", "x"] {
            #expect(BootID(text: text) == nil)
        }
    }

    @Test("A wall clock that steps while the gateway runs moves nothing", arguments: [-hour, hour])
    func liveStep(step: Int64) {
        var machine = VirtualClock(boot: 5000, wall: 1_700_000_000_000)
        let clock = PolicyClock(wall: machine.wall, boot: machine.boot)
        #expect(clock.now(boot: machine.boot).milliseconds == 1_700_000_000_000)
        machine.stepWall(by: step)
        machine.pass(250)
        #expect(clock.now(boot: machine.boot).milliseconds == 1_700_000_000_250)
        // Only displayed times follow the wall clock.
        let now = clock.now(boot: machine.boot)
        #expect(WallOffset(wall: machine.wall, now: now).milliseconds == step)
        #expect(WallOffset(wall: machine.wall, now: now).wall(now) == machine.wall)
    }

    @Test(
        "Any stored time is safe to calculate with",
        arguments: [.min, -1, 0, .max] as [Int64],
        [.min, -1, 0, 1_700_000_000_000, .max] as [Int64]
    )
    func farAway(stored: Int64, storedWall: Int64) {
        for wall in [storedWall, 0, 1_700_000_000_000] {
            let stored = Instant(milliseconds: stored)
            let record = ClockRecord(now: stored, wall: storedWall)
            let (clock, _) = PolicyClock.resumed(record, wall: wall, boot: 5, bootID: nil, jumpMax: .max)
            let now = clock.now(boot: 6)
            #expect(now >= stored)
            let offset = WallOffset(wall: wall, now: now)
            _ = offset.wallSecondsRoundedUp(now)
            _ = offset.instant(wallSeconds: .max)
            _ = offset.wall(.distantFuture)
        }
    }

    @Test("A time maps to one number, however the readings of both clocks are rounded")
    func jitter() {
        let moment = Instant(milliseconds: 1_700_000_000_123)
        var offset = WallOffset(wall: 1_700_000_000_000, now: Instant(milliseconds: 1_700_000_000_000))
        for number in Int64(0)..<1000 {
            let now = Instant(milliseconds: 1_700_000_000_000 + number * 17)
            offset = offset.following(wall: now.milliseconds + number % 7 - 3, now: now, tolerance: number % 2)
            #expect(offset.wall(moment) == 1_700_000_000_123)
        }
    }

    @Test("A changed wall clock is followed immediately, and a small change once it has added up")
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

    @Test("A time converted to the wall clock and back is the same")
    func roundTrip() {
        let now = Instant(milliseconds: 1_700_000_000_123)
        let offset = WallOffset(wall: 1_700_003_600_123, now: now)
        #expect(offset.instant(wallSeconds: 1_700_003_700) == Instant(milliseconds: 1_700_000_100_000))
        #expect(offset.wall(offset.instant(wallSeconds: 1_700_003_700)) == 1_700_003_700_000)
        // The largest number that fits in a header converts to a distant time and must not crash.
        #expect(offset.instant(wallSeconds: .max) > now + 1_000_000_000_000)
    }

    @Test(
        "Eligible-at is rounded up to the second, so that a client that waits for it is never early",
        arguments: [(0, 0), (1, 1), (999, 1), (1000, 1), (1001, 2)] as [(Int64, Int64)]
    )
    func roundsUp(milliseconds: Int64, seconds: Int64) {
        let offset = WallOffset(wall: 5_000_000, now: Instant(milliseconds: 0))
        #expect(offset.wallSecondsRoundedUp(Instant(milliseconds: milliseconds)) == 5000 + seconds)
    }
}
