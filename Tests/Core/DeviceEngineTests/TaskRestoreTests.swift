import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Storing requests and sessions", .timeLimit(.minutes(15)))
struct TaskRestoreTests {
    @Test("A device without requests, sessions and uses has no record for them")
    func noRecord() throws {
        let rig = EngineRig(EngineRig.openToTasks())
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        _ = rig.engine.report(.push(.newData), wake: wake)
        rig.conditions(1) { $0.charging = true }
        #expect(throws: TaskRejection.policy(.notForeground)) { try rig.submit(1, "a", .continued(.queue)) }
        #expect(Self.records(rig).isEmpty && !rig.engine.hasTasks(rig.index(1)))
        try rig.submit(1, "a")
        #expect(Self.records(rig).map(\.isEmpty) == [false])
        rig.engine.cancelTask("a", device: rig.index(1))
        #expect(Self.records(rig).map(\.isEmpty) == [true])
        #expect(!rig.engine.hasTasks(rig.index(1)))
        try rig.submit(1, "a")
        rig.engine.cancelTask("a", device: rig.index(1))
        try rig.submit(1, "b")
        #expect(Self.records(rig).map(\.isEmpty) == [false])
    }

    /// Returns the changed task records.
    private static func records(_ rig: EngineRig) -> [[UInt8]] {
        rig.engine.takeRecords().filter { $0.key.kind == .tasks }.map { $0.content }
    }
}

@Suite("Records of wakes that are no push's")
struct LaunchKindRecordTests {
    /// Returns the records, by kind, of an engine with one device whose only wake was answered.
    private static func records(_ rig: EngineRig) throws -> (topic: [UInt8], device: [UInt8], wake: WakeID) {
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        #expect(rig.engine.report(.push(.noData), wake: wake) == .ended)
        let stored = Self.stored(rig.engine)
        return (try #require(stored[.topic]), try #require(stored[.device]), wake)
    }

    private static func stored(_ engine: DeviceEngine) -> [RecordKey.Kind: [UInt8]] {
        engine.takeRecords().reduce(into: [:]) { $0[$1.key.kind] = $1.content }
    }

    /// Returns an engine restored from these records; nil if it refuses one.
    private static func engine(_ topic: [UInt8], _ device: [UInt8], at rig: EngineRig) -> DeviceEngine? {
        let next = EngineRig(start: rig.now, seed: 99).engine
        do {
            try next.restore(RecordKey(.topic), topic)
            try next.restore(RecordKey(.device), device)
            try next.finishRestoring(now: rig.instant)
            next.loseEveryWake()
            return next
        } catch { return nil }
    }

    /// Returns the part of a topic's record for one kind of task: its code, launches and results.
    private static func section(_ kind: UInt8, launched: UInt8, _ results: [(code: UInt8, count: UInt8)]) -> [UInt8] {
        func number(_ value: UInt8) -> [UInt8] { [value] + [UInt8](repeating: 0, count: 7) }
        return [kind] + number(launched) + [UInt8(results.count)] + results.flatMap { [$0.code] + number($0.count) }
    }

    @Test("Launches and outcomes of a topic's tasks are read, and stored again unchanged")
    func topic() throws {
        let rig = EngineRig()
        let (topic, device, _) = try Self.records(rig)
        let outcomes = (1...6).map { (code: UInt8($0), count: UInt8($0 == 4 ? 7 : 0)) }
        let sessions = Self.section(4, launched: 2, (1...6).map { (code: UInt8($0), count: UInt8($0 == 1 ? 2 : 0)) })
        let more = topic + Self.section(2, launched: 9, outcomes) + sessions
        let engine = try #require(Self.engine(more, device, at: rig))
        let tasks = engine.totals.tasks
        #expect(tasks.launched[.processing] == 9 && tasks.launched[.urlSession] == 2 && tasks.launched.sum == 11)
        #expect(tasks[.processing][.interrupted] == 7 && tasks[.processing].sum == 7)
        #expect(tasks[.urlSession][.success] == 2 && tasks[.appRefresh].sum == 0)
        // Pushes are counted separately.
        #expect(engine.totals.launched == 1 && engine.totals.results.sum == 1)
        // The removal of a device writes its topic again.
        engine.unregister(try #require(engine.find(EngineRig.token(1))))
        #expect(Self.stored(engine)[.topic] == more)
    }

    @Test("A topic without tasks needs no bytes for them, and one with impossible tasks is refused")
    func impossibleTopics() throws {
        let rig = EngineRig()
        let (topic, device, _) = try Self.records(rig)
        let good = Self.section(1, launched: 1, [(1, 1)])
        #expect(Self.engine(topic + good, device, at: rig) != nil)
        let bad = [
            [1], Array(good.dropLast()), good + [0], good + good, Self.section(0, launched: 1, [(1, 1)]),
            Self.section(5, launched: 1, [(1, 1)]), Self.section(1, launched: 0, [(1, 1)]),
            Self.section(1, launched: 1, [(7, 1)]),
        ]
        for (number, section) in bad.enumerated() {
            #expect(Self.engine(topic + section, device, at: rig) == nil, "section \(number)")
        }
    }

    @Test("How a task's wake ended is remembered in the byte of a push's, and a push's result does not repeat it")
    func endedWake() throws {
        let rig = EngineRig()
        let (topic, device, wake) = try Self.records(rig)
        // The last part of the record is the list of ended wakes: here one wake with its id, outcome and time.
        let place = device.count - 9
        #expect(device[place - 17] == 1 && device[place] == 2)
        var changed = device
        for (code, outcome) in [(0x11, LaunchOutcome.task(.appRefresh, .success)), (0x46, .task(.urlSession, .lost))] {
            changed[place] = UInt8(code)
            let engine = try #require(Self.engine(topic, changed, at: rig))
            #expect(engine.report(.push(.noData), wake: wake) == .otherKind)
            #expect(engine.report(.task(.failure), wake: wake) == .endedOtherwise(outcome))
            #expect(engine.extend(wake, by: 1000) == .ended(outcome))
        }
        for code in [0, 6, 0x10, 0x17, 0x51, 0xFF] as [UInt8] {
            changed[place] = code
            #expect(Self.engine(topic, changed, at: rig) == nil, "\(code)")
        }
    }
}
