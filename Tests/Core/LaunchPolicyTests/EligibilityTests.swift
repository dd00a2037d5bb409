import Policy
import Testing
import Wire

@Suite("Eligibility")
struct EligibilityTests {
    typealias Row = (penalty: Int, lowPower: Bool, maxInterval: Double, considerate: Double, immediate: Double)

    static let rows: [Row] = [
        (0, false, 14_400, 900, 900),
        (0, true, 14_400, 1800, 900),
        (1, false, 14_400, 1800, 1800),
        (3, true, 14_400, 14_400, 7200),
        (4, false, 14_400, 14_400, 14_400),
        (4, true, 14_400, 14_400, 14_400),
        (2, false, 2000, 2000, 2000),
        (4, true, 1, 900, 900),
    ]

    @Test("The interval doubles by penalty and low power, within its bounds", arguments: Self.rows)
    func interval(_ row: Row) throws {
        var driver = try DeviceDriver([(.maxInterval, row.maxInterval)])
        driver.report { $0.appState = .active }
        for launch in 0..<row.penalty {
            driver.push(.considerate, at: Double(launch) * 100)
            driver.end(.expired, at: Double(launch) * 100 + 30)
            driver.report { $0.appState = .forceQuit }
            driver.report { $0.appState = .active }
        }
        driver.report { $0.lowPowerMode = row.lowPower }
        #expect(driver.state.penalty == row.penalty)
        #expect(driver.interval(.considerate) == row.considerate)
        #expect(driver.interval(.passive) == row.considerate)
        #expect(driver.interval(.immediate) == row.immediate)
    }

    @Test("The penalty stops at its maximum, and new data clears it")
    func penalty() throws {
        var driver = try DeviceDriver([(.maxPenalty, 2), (.maxAttempts, 1)])
        driver.report { $0.appState = .active }
        for launch in 0..<4 {
            driver.push(.considerate, at: Double(launch))
            #expect(driver.end(.expired, at: Double(launch)) != .retries)
            #expect(driver.state.penalty == [1, 2, 2, 2][launch])
        }
        for (result, penalty) in [(WakeOutcome.noData, 2), (.failed, 2), (.lost, 2), (.newData, 0)] {
            driver.push(.considerate, at: 10)
            driver.end(result, at: 10)
            #expect(driver.state.penalty == penalty, "\(result)")
        }
    }

    @Test("Before the first launch a device is eligible at once")
    func first() throws {
        let driver = try DeviceDriver()
        for priority in Priority.allCases { #expect(driver.eligibleAt(priority) == .distantPast) }
    }

    @Test("The allowance lets a burst jump, then one more each refill")
    func allowance() throws {
        var driver = try DeviceDriver([(.immediateBurst, 2), (.immediateRefill, 100)])
        for moment in [0.0, 1, 2] {
            #expect(driver.push(.immediate, at: moment) == .launched(absorbed: nil))
            driver.end(.noData, at: moment)
        }
        // Two early launches, at 1 and 2, filled the allowance up to 201. The next one is allowed one refill before
        // that.
        #expect(driver.eligibleAt(.immediate) == DeviceDriver.at(101))
        #expect(driver.eligibleAt(.considerate) == DeviceDriver.at(902))
        #expect(driver.push(.immediate, at: 100.999) == .waits(absorbed: nil))
        #expect(!driver.isLaunchable(100.999))
        #expect(driver.isLaunchable(101))
    }

    @Test("The budget counts launches of a window that opens with its first launch")
    func budget() throws {
        var driver = try DeviceDriver([(.dailyLaunches, 2), (.budgetWindow, 5000), (.launchInterval, 10)])
        for moment in [100.0, 200] {
            driver.push(.considerate, at: moment)
            driver.end(.noData, at: moment)
        }
        for priority in Priority.allCases { #expect(driver.eligibleAt(priority) == DeviceDriver.at(5100)) }
        #expect(driver.push(.immediate, at: 5099.999) == .waits(absorbed: nil))
        driver.launch(at: 5100)
        #expect(driver.state.spacing.windowStart == DeviceDriver.at(5100))
        #expect(driver.state.spacing.windowCount == 1)
    }

    @Test("A launch while active costs nothing, and nothing holds it back")
    func active() throws {
        var driver = try DeviceDriver([(.dailyLaunches, 1)])
        driver.push(.considerate, at: 0)
        driver.end(.noData, at: 0)
        let before = driver.state.spacing
        driver.report { $0.appState = .active }
        for priority in Priority.allCases {
            #expect(driver.eligibleAt(priority) == .distantPast)
            #expect(driver.push(priority, at: 1) == .launched(absorbed: nil))
            driver.end(.noData, at: 1)
        }
        #expect(driver.state.spacing == before)
    }

    @Test("The next moment is a deadline, an expiry or the moment of eligibility, the first of them")
    func nextMoment() throws {
        var driver = try DeviceDriver()
        #expect(driver.state.nextMoment(driver.parameters) == nil)
        driver.push(.considerate, at: 0)
        #expect(driver.state.nextMoment(driver.parameters) == DeviceDriver.at(30))
        driver.push(.considerate, at: 1, expiration: .at(DeviceDriver.at(20)))
        #expect(driver.state.nextMoment(driver.parameters) == DeviceDriver.at(20))
        driver.end(.newData, at: 2)
        driver.push(.considerate, at: 3)
        #expect(driver.state.nextMoment(driver.parameters) == DeviceDriver.at(900))
        driver.report { $0.network = false }
        #expect(driver.state.nextMoment(driver.parameters) == DeviceDriver.at(2_592_003))
    }
}
