import Policy
import Testing
import Wire

@Suite("How a wake ends")
struct OutcomeTests {
    private static let first = PushHandle(rawValue: 1)

    struct Row: CustomTestStringConvertible {
        let outcome: WakeOutcome
        let action: WakeEndedAction
        let penalty: UInt8
        /// The priority at which the push, launched with priority 10, is pending again.
        let priority: Priority?
        var testDescription: String { self.outcome.rawValue }
    }

    /// The table of outcomes, for a first launch on a device with a penalty of 1.
    static let rows = [
        Row(outcome: .newData, action: .completed(Self.first), penalty: 0, priority: nil),
        Row(outcome: .noData, action: .completed(Self.first), penalty: 1, priority: nil),
        Row(outcome: .failed, action: .retries, penalty: 1, priority: .considerate),
        Row(outcome: .expired, action: .retries, penalty: 2, priority: .considerate),
        Row(outcome: .lost, action: .retries, penalty: 1, priority: .immediate),
    ]

    /// Returns a device with a penalty of 1 whose push was launched at 100 seconds.
    private static func launched(_ parameters: [(PolicyParameter, Double)] = []) throws -> DeviceDriver {
        var driver = try DeviceDriver(parameters)
        driver.report { $0.appState = .active }
        driver.launchForced(at: 0)
        #expect(driver.end(.expired, at: 30) == .nothing)
        driver.report { $0.appState = .background }
        #expect(driver.push(.immediate, at: 100) == .launched(absorbed: nil))
        return driver
    }

    @Test("There is a row for each outcome")
    func complete() {
        #expect(Self.rows.map(\.outcome) == WakeOutcome.allCases)
    }

    @Test("Each outcome has its effect on push, penalty and spacing", arguments: Self.rows)
    func effect(_ row: Row) throws {
        var driver = try Self.launched()
        #expect(driver.end(row.outcome, at: 101) == row.action)
        #expect(driver.state.inFlight == nil)
        #expect(driver.state.penalty == row.penalty)
        #expect(driver.state.pending?.priority == row.priority)
        #expect(driver.state.pending?.attempts == (row.priority == nil ? nil : 1))
        #expect((driver.state.spacing == Spacing()) == (row.outcome == .lost))
    }

    @Test(
        "A retry is absorbed by a newer push, is exhausted, or is too late, in this order",
        arguments: [
            WakeOutcome.failed, .expired, .lost,
        ]
    )
    func retry(_ outcome: WakeOutcome) throws {
        var absorbed = try Self.launched([(.maxAttempts, 1)])
        absorbed.push(.passive, at: 101, expiration: .at(DeviceDriver.at(110)))
        #expect(absorbed.end(outcome, at: 102) == .absorbed(Self.first))
        #expect(absorbed.state.pending?.priority == (outcome == .lost ? .immediate : .considerate))
        #expect(absorbed.state.pending?.expiry == DeviceDriver.at(2_592_100))
        #expect(absorbed.state.pending?.coalesced == 1)
        #expect(absorbed.state.pending?.attempts == 0)
        var exhausted = try Self.launched([(.maxAttempts, 1), (.defaultTTL, 1)])
        #expect(exhausted.end(outcome, at: 102) == .discarded(Self.first, .exhausted))
        var expired = try Self.launched([(.defaultTTL, 2)])
        #expect(expired.end(outcome, at: 102) == .discarded(Self.first, .expired))
        #expect(expired.state.pending == nil)
    }

    @Test("A restart takes the attempt of a lost wake back")
    func restart() throws {
        var driver = try Self.launched([(.maxAttempts, 1)])
        #expect(driver.end(.lost, at: 101, restarted: true) == .retries)
        #expect(driver.state.pending?.attempts == 0)
    }

    @Test("A deadline ends the wake before what is pending expires")
    func deadline() throws {
        var driver = try Self.launched([(.maxAttempts, 1)])
        driver.push(.considerate, at: 101, expiration: .at(DeviceDriver.at(130)))
        #expect(driver.timePassed(129.999) == .nothing)
        #expect(driver.timePassed(130) == .pushExpired(.absorbed(Self.first)))
        #expect(driver.timePassed(130) == .nothing)
    }

    @Test("Force quit discards the pending push once; later pushes wait")
    func forceQuit() throws {
        var driver = try Self.launched()
        driver.push(.considerate, at: 101)
        #expect(driver.report { $0.appState = .forceQuit } == PushHandle(rawValue: 2))
        #expect(driver.end(.failed, at: 102) == .retries)
        #expect(driver.report { $0.appState = .forceQuit } == nil)
        #expect(driver.state.pending != nil)
        #expect(!driver.isLaunchable(100_000))
        driver.report { $0.appState = .background }
        #expect(driver.isLaunchable(100_000))
    }

    @Test("A removed device starts fresh; its wake continues and is not retried")
    func unregistered() throws {
        var driver = try Self.launched()
        driver.push(.considerate, at: 101)
        #expect(driver.state.unregistered() == PushHandle(rawValue: 2))
        #expect(driver.state.penalty == 0 && driver.state.spacing == Spacing())
        #expect(driver.end(.expired, at: 130) == .discarded(Self.first, .unregistered))
        #expect(driver.state == DeviceState())
    }

    @Test("More time moves the deadline forward alone, and never past the longest a wake may take")
    func extensions() throws {
        var driver = try Self.launched([(.executionWindow, 30), (.maxExtension, 50)])
        let before = driver.state
        #expect(driver.extend(until: 120) == .unchanged(DeviceDriver.at(130)))
        #expect(driver.extend(until: 130) == .unchanged(DeviceDriver.at(130)))
        #expect(driver.state == before)
        #expect(driver.extend(until: 150) == .extended(DeviceDriver.at(150)))
        #expect(driver.state.nextMoment(driver.parameters) == DeviceDriver.at(150))
        #expect(driver.extend(until: 1000) == .extended(DeviceDriver.at(180)))
        #expect(driver.extend(until: 1000) == .limitReached(DeviceDriver.at(180)))
        try driver.parameters.set(.maxExtension, to: 0)
        #expect(driver.extend(until: 1000) == .limitReached(DeviceDriver.at(180)))
        #expect(driver.timePassed(179.999) == .nothing)
        #expect(driver.timePassed(180) == .pushExpired(.retries))
        #expect(driver.state.penalty == 2)
    }
}
