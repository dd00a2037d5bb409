import Policy
import Testing
import Wire

@Suite("Memory pressure, and fewer continued tasks than run")
struct PressureTests {
    /// Returns a driver with four continued tasks in flight; `d` has the strategy `fail`.
    private func busy(continuedMax: Double = 9) throws -> LanesDriver {
        var driver = try LanesDriver([(.continuedMax, continuedMax)])
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

    @Test("A lower continuedMax ends the excess immediately, in the same order")
    func reload() throws {
        var driver = try self.busy()
        try self.advance("d", 1, of: 2, &driver)
        try self.advance("a", 1, of: 3, &driver)
        #expect(PolicyParameter.continuedMax.set(2, in: &driver.parameters))
        #expect(driver.lanes.tasks.hasExcess(driver.parameters))
        #expect(self.pressed(at: 1, &driver) == ["c lost", "b lost"] && driver.inFlight == ["a", "d"])
        #expect(!driver.lanes.tasks.hasExcess(driver.parameters) && driver.waiting == ["b", "c"])
        #expect(driver.launch(at: 1) == nil, "the lane is full")
        #expect(driver.end("a", .success) != nil && driver.launch(at: 2) == "b", "memory is not short")
    }
}
