import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite(.timeLimit(.minutes(15)))
struct PolicyTimeTests {
    /// A database with a clock that tests set.
    private struct Clocked {
        static let expression = "(SELECT wall FROM public.test_clock)"
        let database: TestDatabase

        init() throws {
            self.database = try TestDatabase()
            try self.database.query(
                "CREATE TABLE public.test_clock (wall bigint); INSERT INTO public.test_clock VALUES (1000000)"
            )
        }

        func set(_ wall: Int64) throws { try self.database.query("UPDATE public.test_clock SET wall = \(wall)") }
    }

    @Test("Policy time is the primary's clock, and stops while the clock is behind")
    func steps() throws {
        let clocked = try Clocked()
        let rig = try StoreRig(clocked.database.address, clock: Clocked.expression)
        #expect(rig.attachment.now == Instant(milliseconds: 1_000_000))
        // The latest time that the other rig has seen is earlier than the row.
        let other = try StoreRig(clocked.database.address, clock: Clocked.expression)
        try clocked.set(1_005_000)
        try rig.write([1]) { .of($0, $1) }
        try clocked.set(1_001_000)
        // The row was written at a later time than the clock shows now, no matter who reads it.
        #expect(try other.find(.tokens([1])).now >= Instant(milliseconds: 1_005_000))
        #expect(try rig.find(.tokens([1])).now >= Instant(milliseconds: 1_005_000))
        // For this reason, the wall time of the view does not go back either, so wall times keep their distance from
        // now.
        let view = try rig.find(.tokens([1]))
        #expect(view.wall == view.now.milliseconds)
    }

    @Test("Policy time continues at once after the primary's clock steps back, even without a recent commit")
    func stepBack() throws {
        let clocked = try Clocked()
        let rig = try StoreRig(clocked.database.address, clock: Clocked.expression)
        try rig.write([1]) { .of($0, $1) }
        try clocked.set(1_060_000)
        #expect(try rig.view().now == Instant(milliseconds: 1_060_000))
        try clocked.set(1_050_000)
        try clocked.database.wait(for: "10000", of: "SELECT shift FROM wakegate.meta")
        try clocked.set(1_050_700)
        let view = try rig.view()
        #expect(view.now == Instant(milliseconds: 1_060_700) && view.wall == 1_050_700)
        #expect(try rig.find(.tokens([1])).now == Instant(milliseconds: 1_060_700))
    }

    @Test("On a primary whose clock is behind, a gateway's time continues from the latest commit at the clock's pace")
    func shift() throws {
        let clocked = try Clocked()
        let rig = try StoreRig(clocked.database.address, clock: Clocked.expression)
        try clocked.set(1_005_000)
        try rig.write([1]) { .of($0, $1) }
        rig.stop()
        try clocked.set(500_000)
        let other = try StoreRig(clocked.database.address, clock: Clocked.expression)
        #expect(other.attachment.now == Instant(milliseconds: 1_005_000))
        try clocked.set(500_700)
        #expect(try other.find(.tokens([2])).now == Instant(milliseconds: 1_005_700))
    }

    @Test("Only wakes that ended more than ten minutes ago are forgotten")
    func forgetting() throws {
        let clocked = try Clocked()
        let rig = try StoreRig(clocked.database.address, clock: Clocked.expression)
        try rig.write([1, 2]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        try rig.write([1]) { .of($0, $1, ended: [.numbered(1)]) }
        try clocked.set(1_400_000)
        try rig.write([3]) {
            .of($0, $1, launched: [(.numbered(3), $1.now + 1000)], ended: [.numbered(3)])
        }
        try clocked.set(1_700_000)
        var first = LoadPlan()
        first.wakes = [.numbered(1)]
        while try !rig.find(first).devices.isEmpty { _ = try rig.view() }
        var rest = LoadPlan()
        rest.wakes = [.numbered(2), .numbered(3)]
        #expect(try rig.find(rest).devices.map(\.token) == [.numbered(2), .numbered(3)])
    }

    @Test("After a failover to a standby whose clock is behind, no commit is lost and time continues")
    func failover() throws {
        let primary = try PostgresServer(PostgresServer.Options(isDurable: false))
        let name = try primary.database().split(separator: "/").last.map(String.init) ?? ""
        let standby = try primary.makeStandby()
        let address =
            "postgresql://postgres@127.0.0.1:\(primary.port),127.0.0.1:\(standby.port)/\(name)"
            + "?target_session_attrs=read-write"
        let wall = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        let clock = "(\(wall) - CASE current_setting('port') WHEN '\(standby.port)' THEN 3600000 ELSE 0 END)"
        let rig = try StoreRig(address, clock: clock)
        try rig.write([1, 2]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        let before = try rig.find(.tokens([1])).now
        let number = rig.number
        primary.kill()
        _ = try rig.detached()
        try standby.query("ALTER SYSTEM SET synchronous_standby_names = ''")
        try standby.promote()
        try rig.attached()
        #expect(rig.number > number)
        #expect(rig.attachment.now >= before)
        let after = try rig.find(.tokens([1, 2]))
        #expect(after.devices.count == 2)
        #expect(after.now >= before)
        #expect(after.wall < before.milliseconds)
        _ = try rig.view { $0.dead == [number] }
        #expect(try rig.find(.selection(.wakes(of: number, countMax: 9))).heldWakes.count == 2)
        #expect(try rig.counts().total.accepted == 2)
        rig.stop()
    }
}
