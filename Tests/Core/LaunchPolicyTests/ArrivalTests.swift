import Policy
import Testing
import Wire

@Suite("A push arrives")
struct ArrivalTests {
    @Test("A push launches immediately, or waits without a free worker or while a wake is in flight")
    func waits() throws {
        var driver = try DeviceDriver()
        #expect(driver.push(.considerate, at: 0, workerIsFree: false) == .waits(absorbed: nil))
        #expect(driver.isLaunchable(0))
        #expect(driver.push(.passive, at: 1) == .launched(absorbed: PushHandle(rawValue: 1)))
        #expect(driver.state.inFlight?.push.coalesced == 1)
        #expect(driver.push(.immediate, at: 2) == .waits(absorbed: nil))
        #expect(driver.state.inFlight?.deadline == DeviceDriver.at(31))
    }

    @Test("Joint pushes are as urgent and live as long as the best of them; the newest is carried")
    func joint() throws {
        var driver = try DeviceDriver()
        driver.report { $0.network = false }
        driver.push(.immediate, at: 0, expiration: .at(DeviceDriver.at(500)))
        driver.push(.passive, at: 1, expiration: .at(DeviceDriver.at(900)))
        let third = driver.push(.considerate, at: 2, expiration: .at(DeviceDriver.at(100)))
        #expect(third == .waits(absorbed: PushHandle(rawValue: 2)))
        let pending = try #require(driver.state.pending)
        #expect(pending.handle == PushHandle(rawValue: 3))
        #expect(pending.priority == .immediate && pending.coalesced == 2 && pending.attempts == 0)
        #expect(pending.expiry == DeviceDriver.at(900))
        #expect(pending.receivedAt == DeviceDriver.at(2) && pending.firstReceivedAt == DeviceDriver.at(0))
    }

    @Test("A now-or-never push launches or is discarded, and leaves the pending push unchanged")
    func nowOrNever() throws {
        var driver = try DeviceDriver()
        #expect(driver.push(.considerate, at: 0, expiration: .nowOrNever) == .launched(absorbed: nil))
        #expect(driver.state.inFlight?.push.expiry == DeviceDriver.at(0))
        driver.push(.considerate, at: 1)
        let before = driver.state
        #expect(driver.push(.immediate, at: 2, expiration: .nowOrNever) == .discarded)
        #expect(driver.state == before)
    }

    @Test(
        "A push that expires on arrival or before is discarded",
        arguments: [(9.999, true), (10, true), (10.001, false)]
    )
    func tooLate(_ expiry: Double, _ isDiscarded: Bool) throws {
        var driver = try DeviceDriver()
        let action = driver.push(.considerate, at: 10, expiration: .at(DeviceDriver.at(expiry)))
        #expect((action == .discarded) == isDiscarded)
    }

    @Test("A pending push is launchable before its expiry and dropped at it")
    func expiry() throws {
        var driver = try DeviceDriver()
        driver.push(.considerate, at: 0, expiration: .at(DeviceDriver.at(5)), workerIsFree: false)
        #expect(driver.isLaunchable(4.999) && !driver.isLaunchable(5))
        let action = driver.timePassed(5)
        #expect(action == .pendingExpired(PushHandle(rawValue: 1)))
        #expect(driver.state == DeviceState())
    }
}
