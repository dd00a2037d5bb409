import Policy
import Testing
import Wire

@Suite("Lanes")
struct LaneTests {
    /// Returns a driver whose device was used and is idle, with a refresh, a processing and a continued task in flight.
    private static func busy() throws -> LanesDriver {
        var driver = try LanesDriver()
        driver.report(at: 0) { $0.appState = .active }
        driver.submit("c", .continued(.queue), at: 1)
        driver.report(at: 2) { $0.appState = .background }
        driver.submit("p", .processing(.externalPower), at: 3)
        driver.report(at: 4) { $0.charging = true }
        #expect(driver.launch(at: 4) == "p")
        driver.submit("r", .appRefresh, at: 5)
        #expect(driver.inFlight == ["r", "p", "c"])
        return driver
    }

    @Test("A device with only pushes stores nothing of tasks")
    func blank() throws {
        var driver = try LanesDriver()
        for (priority, seconds) in [(Priority.considerate, 0.0), (.considerate, 10), (.immediate, 20)] {
            driver.push(priority, at: seconds)
            #expect(driver.lanes.tasks.isBlank)
        }
    }

    @Test("After its last task an unused device stores no more than before the first")
    func blankAgain() throws {
        var driver = try LanesDriver()
        driver.submit("r", .appRefresh, at: 0)
        #expect(!driver.lanes.tasks.isBlank)
        driver.push(.considerate, at: 1)
        _ = driver.end("r", .success)
        #expect(driver.lanes.tasks.isBlank)
    }

    @Test("The sizes of a request and of a wake are limited")
    func sizes() {
        #expect(MemoryLayout<BackgroundTask>.stride <= 48)
        #expect(MemoryLayout<TaskWake>.stride <= 120)
        #expect(MemoryLayout<BackgroundTasks>.stride <= 96)
    }

    @Test("After a late step, a push that expired before the deadline of the wake in flight does not absorb its push")
    func lateStep() throws {
        let (first, second) = (PushHandle(rawValue: 1), PushHandle(rawValue: 2))
        let cases: [(expiry: Double, ends: [TimePassedAction])] = [
            (29.999, [.pendingExpired(second), .pushExpired(.retries)]), (30, [.pushExpired(.absorbed(first))]),
        ]
        for (expiry, ends) in cases {
            var driver = try LanesDriver([(.executionWindow, 30)])
            #expect(driver.push(.considerate, at: 0) == .launched(absorbed: nil))
            driver.push(.considerate, at: 1, expiration: .at(LanesDriver.at(expiry)))
            for end in ends + [.nothing] {
                #expect(driver.lanes.timePassed(LanesDriver.at(40), driver.parameters) == end)
            }
        }
    }
}

// MARK: - Restart, removal, operators

extension LaneTests {
    @Test("After a restart everything waits again with its place and its attempts, free of charge")
    func restart() throws {
        var driver = try Self.busy()
        let before = driver.lanes.device.spacing
        for name in ["r", "p", "c"] { _ = driver.end(name, .lost, restarted: true) }
        #expect(driver.waiting == ["c", "p", "r"])
        #expect(driver.lanes.tasks.waiting.allSatisfy { $0.attempts == 0 })
        #expect(driver.lanes.device.spacing == Spacing())
        #expect(driver.lanes.device.spacing != before)
        #expect(driver.lanes.tasks.lastProcessing == .distantPast)
        #expect(driver.launch(at: 6) == "r")
        #expect(driver.launch(at: 6) == "p")
        #expect(driver.launch(at: 6) == "c", "a continued task does not ask for the foreground again")
    }

    @Test("A removed device loses its pending work; its wakes in flight keep their lanes and are not retried")
    func removal() throws {
        var driver = try Self.busy()
        driver.finish("s", 2, at: 6)
        driver.submit("q", .processing([]), at: 6)
        driver.push(.considerate, at: 6)
        let action = driver.lanes.unregistered(at: LanesDriver.at(7), driver.parameters)
        #expect(action.discardedPush == PushHandle(rawValue: 1))
        #expect(action.discarded.map(driver.text) == ["s", "q"])
        #expect(driver.lanes.device.spacing == Spacing())
        #expect(driver.lanes.device.conditions == Conditions())
        #expect(driver.lanes.tasks.usage == Usage())
        #expect(driver.lanes.tasks.lastProcessing == .distantPast)
        driver.submit("r", .appRefresh, at: 8)
        driver.submit("p", .processing([]), at: 8)
        #expect(driver.launch(at: 8) == nil, "the lanes are taken")
        #expect(driver.report(at: 9) { $0.batteryLevel = 0.9 }.ended.isEmpty)
        #expect(driver.end("p", .expired).map { if case .ended = $0 { true } else { false } } == true)
        #expect(driver.lanes.device.penalty == 0)
        let lost = try #require(driver.wake("r")).task
        #expect(driver.end("r", .lost) == .discarded(lost, .unregistered, replaced: nil))
        #expect(driver.waiting == ["r", "p"])
        #expect(driver.launch(at: 10) == "r")
        #expect(driver.launch(at: 10) == "p")
    }

    @Test("A removed device starts afresh, and its push in flight is not retried and adds no penalty")
    func removedPush() {
        let parameters = Parameters()
        var device = DeviceState()
        var tasks = BackgroundTasks()
        func push(_ number: UInt64, at seconds: Double) -> PushReceivedAction {
            device.pushReceived(
                PushHandle(rawValue: number),
                .immediate,
                .absent,
                at: LanesDriver.at(seconds),
                workerIsFree: true,
                parameters,
                with: &tasks
            )
        }
        func expire(at seconds: Double) -> WakeEndedAction {
            device.wakeEnded(.expired, at: LanesDriver.at(seconds), parameters, with: &tasks)
        }
        device.launchForced(at: LanesDriver.at(0), parameters, with: &tasks)
        #expect(expire(at: 30) == .nothing)
        #expect(device.penalty == 1)
        #expect(push(1, at: 100) == .launched(absorbed: nil))
        #expect(push(2, at: 101) == .waits(absorbed: nil))
        let discarded = device.unregistered()
        #expect(discarded == PushHandle(rawValue: 2))
        #expect(device.penalty == 0 && device.spacing == Spacing())
        #expect(expire(at: 130) == .discarded(PushHandle(rawValue: 1), .unregistered))
        #expect(device == DeviceState())
    }

    @Test("The cost of a removed device's wake is not restored to the fresh state")
    func removedCharge() throws {
        var driver = try LanesDriver()
        for (name, seconds) in [("first", 0.0), ("second", 1000)] {
            driver.finish(name, 1, at: seconds)
            #expect(driver.launch(at: seconds) == name)
            if name == "first" { _ = driver.end(name, .success) }
        }
        _ = driver.lanes.unregistered(at: LanesDriver.at(1001), driver.parameters)
        _ = driver.end("second", .lost)
        #expect(driver.lanes == DeviceLanes())
    }

    @Test("A continued task that is lost waits again, but not too often, and not on a device that was removed")
    func continuedDropped() throws {
        var lost = try LanesDriver(maxAttempts: 2)
        var removed = lost
        lost.report(at: 0) { $0.appState = .active }
        lost.submit("c", .continued(.fail), at: 0)
        lost.submit("d", .continued(.queue), at: 0)
        let name = lost.name("d")
        let forced = lost.lanes.taskLaunchForced(name, at: LanesDriver.at(1), lost.parameters)
        #expect(forced == .laneIsFull, "no operator has more run than may")
        #expect(lost.end("c", .lost).map { if case .waits = $0 { true } else { false } } == true)
        #expect(lost.launch(at: 1) == "c", "it has kept its place")
        let exhausted = try #require(lost.wake("c")).task
        #expect(lost.end("c", .lost) == .discarded(exhausted, .exhausted, replaced: nil))
        #expect(lost.waiting == ["d"])
        removed.report(at: 0) { $0.appState = .active }
        removed.submit("c", .continued(.queue), at: 0)
        _ = removed.lanes.unregistered(at: LanesDriver.at(1), removed.parameters)
        #expect(removed.inFlight == ["c"])
        let dropped = try #require(removed.wake("c")).task
        #expect(removed.end("c", .lost) == .discarded(dropped, .unregistered, replaced: nil))
        #expect(removed.lanes.tasks.waiting.isEmpty)
    }

    @Test("An operator launches a request despite holds, which do not interrupt it then")
    func forced() throws {
        var driver = try LanesDriver()
        driver.report(at: 0) { $0.lowPowerMode = true }
        driver.submit("p", .processing(.externalPower), at: 1)
        #expect(driver.launch(at: 1) == nil)
        let name = driver.name("p")
        let other = driver.name("q")
        #expect(driver.lanes.taskLaunchForced(other, at: LanesDriver.at(2), driver.parameters) == .notPending)
        let forced = driver.lanes.taskLaunchForced(name, at: LanesDriver.at(2), driver.parameters)
        #expect(forced == .launched(try #require(driver.wake("p"))))
        #expect(driver.lanes.tasks.lastProcessing == .distantPast)
        driver.submit("q", .appRefresh, at: 2, slotIsFree: false)
        _ = driver.lanes.taskLaunchForced(other, at: LanesDriver.at(2), driver.parameters)
        #expect(driver.inFlight == ["q", "p"] && driver.lanes.device.spacing == Spacing())
        driver.submit("p", .processing([]), at: 3)
        #expect(driver.lanes.taskLaunchForced(name, at: LanesDriver.at(3), driver.parameters) == .laneIsFull)
        #expect(driver.report(at: 4) { $0.batteryLevel = 0.9 }.ended.isEmpty)
        #expect(driver.report(at: 5) { $0.thermalState = .serious }.ended.count == 1)
    }
}

@Suite("Memory pressure, and fewer continued tasks than run")
struct PressureTests {
    /// Returns a driver with four continued tasks in flight; `d` has the strategy `fail`.
    private func busy() throws -> LanesDriver {
        var driver = try LanesDriver([(.continuedMax, 9)])
        driver.report(at: 0) { $0.appState = .active }
        for name in ["a", "b", "c"] { driver.submit(name, .continued(.queue), at: 0) }
        driver.submit("d", .continued(.fail), at: 0)
        #expect(driver.inFlight == ["a", "b", "c", "d"])
        return driver
    }

    private func advance(_ name: String, _ completed: UInt64, of total: UInt64, _ driver: inout LanesDriver) throws {
        let arrival = try #require(driver.wake(name)).task.arrival
        let now = LanesDriver.at(0)
        #expect(
            driver.lanes.progressReported(arrival, completed: completed, of: total, at: now, driver.parameters) != nil
        )
    }

    /// Returns the tasks that pressure ends at this time, in order, with their outcomes.
    private func pressed(at seconds: Double, _ driver: inout LanesDriver) -> [String] {
        var ended: [String] = []
        while true {
            switch driver.lanes.timePassed(LanesDriver.at(seconds), driver.parameters) {
            case .taskEndedByPressure(let wake, let outcome, let action):
                if case .waits(let task, nil) = action { #expect(task.attempts == 0 && outcome == .lost) }
                ended.append("\(driver.text(wake.task)) \(outcome)")
            case .nothing: return ended
            case let other: ended.append("\(other)")
            }
        }
    }

    @Test("Critical pressure ends the least advanced task, one every five seconds, of equals the newest")
    func order() throws {
        var driver = try self.busy()
        try self.advance("a", 1, of: 4, &driver)
        try self.advance("b", 90, of: 1000, &driver)
        // Without a total, the progress counts as zero.
        try self.advance("c", 7, of: 0, &driver)
        driver.report(at: 1) { $0.memoryPressure = .warning }
        #expect(self.pressed(at: 1, &driver) == [] && driver.lanes.tasks.pressure == 0)
        #expect(driver.report(at: 2) { $0.memoryPressure = .critical }.ended.isEmpty)
        #expect(self.pressed(at: 2, &driver) == ["d interrupted"])
        let next = driver.lanes.nextMoment(from: LanesDriver.at(2), driver.parameters)
        #expect(next == LanesDriver.at(7) && driver.inFlight == ["a", "b", "c"])
        #expect(self.pressed(at: 6.999, &driver) == [])
        #expect(self.pressed(at: 7, &driver) == ["c lost"])
        // Repeating the same report ends nothing.
        driver.report(at: 8) { $0.memoryPressure = .critical }
        #expect(self.pressed(at: 8, &driver) == [])
        #expect(self.pressed(at: 12, &driver) == ["b lost"])
        #expect(driver.waiting == ["b", "c"] && driver.lanes.device.penalty == 0)
        // Tasks that pressure ended are held; newly submitted ones are not.
        let held = driver.lanes.tasks.waiting.map { driver.lanes.hold($0, at: LanesDriver.at(12), driver.parameters) }
        #expect(held == [.memory, .memory] && driver.launch(at: 12) == nil)
        driver.submit("e", .continued(.fail), at: 13)
        #expect(driver.inFlight == ["a", "e"])
        #expect(self.pressed(at: 17, &driver) == ["e interrupted"] && self.pressed(at: 22, &driver) == ["a lost"])
        #expect(driver.lanes.tasks.pressure == 0 && driver.inFlight.isEmpty)
        driver.report(at: 23) { $0.memoryPressure = .normal }
        #expect(driver.launch(at: 23) == "a" && driver.launch(at: 23) == "b" && driver.launch(at: 23) == "c")
        #expect(driver.lanes.tasks.inFlight.allSatisfy { $0.task.attempts == 1 })
    }

    @Test("A pressure that is lifted ends nothing more, and the step is a parameter")
    func lifted() throws {
        var driver = try self.busy()
        #expect(PolicyParameter.pressureStep.set(2, in: &driver.parameters))
        driver.report(at: 1) { $0.memoryPressure = .critical }
        #expect(self.pressed(at: 1, &driver) == ["d interrupted"])
        #expect(self.pressed(at: 3, &driver) == ["c lost"])
        driver.report(at: 4) { $0.memoryPressure = .warning }
        #expect(self.pressed(at: 50, &driver) == [] && driver.lanes.tasks.pressure == 0)
        driver.report(at: 51) { $0.memoryPressure = .critical }
        #expect(self.pressed(at: 51, &driver) == ["b lost"])
    }
}
