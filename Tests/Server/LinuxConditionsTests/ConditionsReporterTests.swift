import LinuxConditions
import Testing

@Suite("Conditions are reported on change, not too often, and again after a reconnection")
struct ConditionsReporterTests {
    @Test("After a connection all known conditions are reported immediately")
    func first() {
        var reporter = ConditionsReporter()
        reporter.conditionsRead(Self.conditions(percent: 80), now: 100)
        #expect(reporter.nextAt == nil)
        reporter.connected(now: 200)
        #expect(reporter.timePassed(now: 200) == Self.conditions(percent: 80))
        // One report at a time.
        reporter.conditionsRead(Self.conditions(percent: 70), now: 300)
        #expect(reporter.nextAt == nil)
    }

    @Test("A change is reported when it has settled, with the changed fields only")
    func change() {
        var reporter = Self.reported(percent: 80, at: 0)
        reporter.conditionsRead(Self.conditions(percent: 79), now: 20_000)
        #expect(reporter.timePassed(now: 20_999) == nil)
        var change = MachineConditions()
        change.batteryPercent = 79
        #expect(reporter.timePassed(now: 21_000) == change)
    }

    @Test("A change that is reverted before its report is not reported")
    func flicker() {
        var reporter = Self.reported(percent: 80, at: 0)
        reporter.conditionsRead(Self.conditions(percent: 79), now: 20_000)
        reporter.conditionsRead(Self.conditions(percent: 80), now: 20_500)
        #expect(reporter.nextAt == nil)
    }

    @Test("Reports are always at least ten seconds apart, and the last state is reported in the end")
    func rate() {
        var reporter = Self.reported(percent: 80, at: 0)
        var reports: [Int64] = []
        var told: MachineConditions?
        for now in stride(from: Int64(1), through: 100_000, by: 7) {
            reporter.conditionsRead(Self.conditions(percent: Int(now / 100 % 90)), now: now)
            if now % 5001 == 0 { reporter.connected(now: now) }
            if let report = reporter.timePassed(now: now) {
                reports.append(now)
                told = report
                reporter.reportConfirmed(now: now)
            }
        }
        #expect(zip(reports, reports.dropFirst()).allSatisfy { $1 - $0 >= 10_000 })
        #expect(reports.count >= 8)
        reporter.conditionsRead(Self.conditions(percent: 99), now: 100_001)
        told = reporter.timePassed(now: 120_000) ?? told
        #expect(told?.batteryPercent == 99)
    }

    @Test("A change during a report is reported after it, once it has settled")
    func changeInFlight() {
        var reporter = ConditionsReporter()
        reporter.conditionsRead(Self.conditions(percent: 80), now: 0)
        reporter.connected(now: 0)
        _ = reporter.timePassed(now: 0)
        reporter.conditionsRead(Self.conditions(percent: 60), now: 100)
        reporter.reportConfirmed(now: 200)
        #expect(reporter.nextAt == 10_000)
        #expect(reporter.timePassed(now: 10_000)?.batteryPercent == 60)
    }

    @Test("A report that did not arrive is sent again after waits that double up to five minutes")
    func retries() {
        var reporter = ConditionsReporter()
        reporter.conditionsRead(Self.conditions(percent: 80), now: 0)
        reporter.connected(now: 0)
        var now: Int64 = 0
        var waits: [Int64] = []
        for _ in 0..<9 {
            #expect(reporter.timePassed(now: now) != nil)
            reporter.reportFailed(now: now)
            guard let next = reporter.nextAt else {
                Issue.record("nothing is sent again")
                return
            }
            waits.append(next - now)
            now = next
        }
        #expect(waits == [10_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000])
    }

    @Test("A condition that changes back is reported if the report of its change may have arrived")
    func lostAnswer() {
        var reporter = Self.reported(percent: 80, at: 0)
        reporter.conditionsRead(Self.conditions(percent: 79), now: 20_000)
        #expect(reporter.timePassed(now: 21_000) != nil)
        reporter.conditionsRead(Self.conditions(percent: 80), now: 22_000)
        reporter.reportFailed(now: 23_000)
        #expect(reporter.timePassed(now: 60_000) == Self.conditions(percent: 80))
        reporter.reportConfirmed(now: 60_100)
        #expect(reporter.nextAt == nil)
    }

    @Test("A report that certainly changed nothing is repeated alone, because operators may have set other conditions")
    func refusedForNow() {
        var reporter = Self.reported(percent: 80, at: 0)
        reporter.conditionsRead(Self.conditions(percent: 79), now: 20_000)
        #expect(reporter.timePassed(now: 21_000)?.json == #"{"batteryLevel":0.79}"#)
        reporter.reportFailed(now: 21_100, mayHaveArrived: false)
        #expect(reporter.timePassed(now: 60_000)?.json == #"{"batteryLevel":0.79}"#)
    }

    @Test("A refused report is not repeated until it changes, or the gateway is connected again")
    func refused() {
        var reporter = ConditionsReporter()
        reporter.conditionsRead(Self.conditions(percent: 80), now: 0)
        reporter.connected(now: 0)
        _ = reporter.timePassed(now: 0)
        reporter.reportRefused(now: 10)
        reporter.conditionsRead(Self.conditions(percent: 80), now: 15_000)
        #expect(reporter.nextAt == nil)
        var changed = reporter
        changed.conditionsRead(Self.conditions(percent: 81), now: 20_000)
        #expect(changed.timePassed(now: 30_000) == Self.conditions(percent: 81))
        reporter.connected(now: 20_000)
        #expect(reporter.timePassed(now: 20_000) == Self.conditions(percent: 80))
    }

    @Test("After a reconnection everything is reported again, and nothing without a connection")
    func reconnection() {
        var reporter = Self.reported(percent: 80, at: 0)
        reporter.disconnected()
        reporter.conditionsRead(Self.conditions(percent: 10), now: 30_000)
        #expect(reporter.timePassed(now: 60_000) == nil)
        reporter.conditionsRead(Self.conditions(percent: 80), now: 61_000)
        reporter.connected(now: 70_000)
        #expect(reporter.timePassed(now: 70_000) == Self.conditions(percent: 80))
    }

    @Test("After appState is left to another reporter no report has it, not even a repeated one")
    func appState() {
        var reporter = ConditionsReporter()
        var conditions = Self.conditions(percent: 80)
        conditions.appState = .active
        reporter.conditionsRead(conditions, now: 0)
        reporter.connected(now: 0)
        #expect(reporter.timePassed(now: 0)?.appState == .active)
        reporter.endAppState()
        reporter.reportFailed(now: 100)
        #expect(reporter.timePassed(now: 60_000) == Self.conditions(percent: 80))
        reporter.reportConfirmed(now: 60_100)
        #expect(reporter.nextAt == nil)
        reporter.disconnected()
        reporter.connected(now: 90_000)
        #expect(reporter.timePassed(now: 90_000) == Self.conditions(percent: 80))
    }

    @Test("appState is reported like any other condition: on a change, and alone")
    func appStateChange() {
        var reporter = Self.reported(percent: 80, at: 0)
        var conditions = Self.conditions(percent: 80)
        conditions.appState = .active
        reporter.conditionsRead(conditions, now: 20_000)
        #expect(reporter.timePassed(now: 21_000)?.json == #"{"appState":"active"}"#)
        reporter.reportConfirmed(now: 21_100)
        conditions.appState = .background
        reporter.conditionsRead(conditions, now: 40_000)
        #expect(reporter.timePassed(now: 41_000)?.json == #"{"appState":"background"}"#)
    }

    /// Returns a reporter whose first report has been confirmed.
    private static func reported(percent: Int, at now: Int64) -> ConditionsReporter {
        var reporter = ConditionsReporter()
        reporter.conditionsRead(Self.conditions(percent: percent), now: now)
        reporter.connected(now: now)
        _ = reporter.timePassed(now: now)
        reporter.reportConfirmed(now: now)
        return reporter
    }

    private static func conditions(percent: Int) -> MachineConditions {
        var conditions = MachineConditions()
        conditions.batteryPercent = percent
        conditions.charging = false
        conditions.network = true
        return conditions
    }
}
