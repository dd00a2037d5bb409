import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("When progress of continued tasks is stored", .timeLimit(.minutes(15)))
struct ReportedProgressTests {
    private let rig = EngineRig(EngineRig.openToTasks([(.continuedMax, 3)]))
    private let store = SimulatedStore()

    init() throws {
        try self.store.load { _, _ in }
        try self.store.begin()
        self.rig.register(1)
        self.rig.conditions(1) { $0.appState = .active }
    }

    private func start(_ identifier: String = "export") throws -> WakeID {
        let wake = try #require(try self.rig.submit(1, identifier, .continued(.queue), hasSlot: true).wake)
        try self.store.commit(from: self.rig.engine)
        return wake
    }

    private func tell(_ completed: UInt64, _ wake: WakeID) {
        let outcome = self.rig.engine.progress(TaskProgress(completed: completed, total: 99), wake: wake)
        if case .lasts = outcome { return }
        Issue.record("the progress was \(outcome)")
    }

    /// Commits the changes to the store and returns the numbers of task records and of other records.
    private func written() throws -> (tasks: Int, others: Int) {
        var batch = RecordBatch()
        self.rig.engine.takeStep(into: &batch)
        let keys = batch.records.map { $0.key }
        try self.store.commit(batch)
        return (keys.count { $0.kind == .tasks }, keys.count { $0.kind != .tasks })
    }

    /// Returns the progress of the tasks of device 1 that the store has.
    private func kept() throws -> [UInt64?] {
        let next = try self.rig.restarted(from: self.store, EngineRig.openToTasks())
        return next.snapshot(1).tasks.map { task in
            guard case .running(_, _, _, let progress) = task.state else { return nil }
            return progress?.completed
        }
    }

    @Test("Many reports are no change, and then one: of the last, within the second")
    func coalesced() throws {
        let wake = try self.start()
        for completed in 1...400 as ClosedRange<UInt64> { self.tell(completed, wake) }
        #expect(!self.rig.engine.hasChanges)
        #expect(try self.written() == (0, 0) && self.kept() == [nil])
        let due = try #require(self.rig.engine.progressDue)
        #expect(due > self.rig.instant && due < self.rig.instant + 1000)
        self.rig.advance(by: due.milliseconds - self.rig.now - 1)
        self.tell(401, wake)
        #expect(!self.rig.engine.hasChanges && self.rig.engine.progressDue == due, "no task waits longer for another")
        self.rig.advance(by: 1)
        #expect(self.rig.engine.hasChanges)
        #expect(try self.written() == (1, 0) && self.kept() == [401])
        #expect(!self.rig.engine.hasChanges && self.rig.engine.progressDue == nil)
    }

    @Test("The progress of each task is stored once per interval, and only if it changed")
    func repeated() throws {
        let wakes = [try self.start("a"), try self.start("b")]
        self.rig.register(2)
        self.rig.conditions(2) { $0.appState = .active }
        let other = try #require(try self.rig.submit(2, "c", .continued(.queue), hasSlot: true).wake)
        _ = try self.written()
        for completed in 1...3 as ClosedRange<UInt64> { for wake in wakes + [other] { self.tell(completed, wake) } }
        self.rig.advance(by: 1000)
        #expect(try self.written() == (2, 0) && self.kept() == [3, 3], "a record is a device's")
        self.tell(3, other)
        #expect(self.rig.engine.progressDue == nil)
        self.rig.advance(by: 1000)
        #expect(try self.written() == (0, 0))
    }

    @Test("Any other change of the device's tasks also stores its progress, and stores it once")
    func riding() throws {
        let wake = try self.start()
        self.tell(7, wake)
        try self.rig.submit(1, "refresh")
        #expect(self.rig.engine.hasChanges)
        #expect(try self.written().tasks == 1 && self.kept().contains(7))
        self.rig.advance(by: 1000)
        #expect(try self.written() == (0, 0))
        self.tell(8, wake)
        self.rig.register(2)
        _ = try self.written()
        #expect(try self.kept().contains(7), "changes of other devices do not")
    }

    @Test("An engine without a store also forgets progress, so no list grows")
    func nothingKept() throws {
        for round in 0..<50 as Range<UInt64> {
            let wake = try #require(try self.rig.submit(1, "export", .continued(.queue), hasSlot: true).wake)
            self.tell(round + 1, wake)
            _ = self.rig.engine.report(.task(.success), wake: wake)
            _ = self.rig.engine.takeStep()
            self.rig.advance(by: 1000)
            _ = self.rig.engine.takeStep()
            #expect(self.rig.engine.progressDue == nil)
        }
    }

    @Test("Progress moves the device's next due time, together with its other due times")
    func dueMoment() throws {
        let first = try self.start("a")
        self.rig.advance(by: 10_000)
        let second = try self.start("b")
        // Workers are warned five seconds before their deadlines.
        #expect(self.rig.engine.nextDue == self.rig.instant + 45_000)
        self.tell(1, first)
        #expect(self.rig.engine.nextDue == self.rig.instant + 55_000)
        self.rig.conditions(1) { $0.appState = .background }
        try self.rig.submit(1, "refresh", after: 20)
        #expect(self.rig.engine.nextDue == self.rig.instant + 20_000)
        self.tell(2, second)
        #expect(self.rig.engine.nextDue == self.rig.instant + 20_000)
        // The deadline has passed but was not processed: a report first applies what is due.
        self.rig.pass(60_000)
        _ = self.rig.engine.advance(to: self.rig.instant, devicesMax: 0)
        let told = TaskProgress(completed: 3, total: 9)
        #expect(self.rig.engine.progress(told, wake: first) == .ended(.task(.continued, .expired)))
    }
}
