import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Requests and sessions in the engine", .timeLimit(.minutes(15)))
struct TaskVerbTests {
    private let rig = EngineRig(EngineRig.openToTasks())

    @Test("A refusal leaves no name on a device that has others")
    func refusedNames() throws {
        let device = try #require(self.rig.register(1).device)
        try self.rig.submit(1, "refresh")
        for number in 0..<8 {
            try self.rig.engine.transfersFinished(session: "s\(number)", count: 1, id: nil, device: device)
        }
        for number in 0..<100 {
            #expect(throws: TaskRejection.policy(.tooManyPendingTaskRequests)) {
                try self.rig.submit(1, "other\(number)")
            }
            #expect(throws: TaskRejection.tooManySessions) {
                try self.rig.engine.transfersFinished(session: "t\(number)", count: 1, id: nil, device: device)
            }
        }
        #expect(self.rig.engine.taskNameCount(device) == 9)
        #expect(try self.rig.submit(1, "refresh").disposition == .replaced)
    }

    @Test("An operator's expiration means the task, not the session of its name")
    func expirationOfNamesakes() throws {
        let device = try #require(self.rig.register(1).device)
        let task = try #require(try self.rig.submit(1, "n", .processing([]), hasSlot: true).wake)
        try self.rig.engine.transfersFinished(session: "n", count: 1, id: nil, device: device)
        let session = try #require(self.rig.launchNext(1)).id
        #expect(self.rig.engine.expireForced(device, identifier: "n") == task)
        #expect(self.rig.engine.expireForced(device, identifier: "n") == session)
    }

    @Test("A repeated event of a session counts once, while its id is among the last 16")
    func eventIDs() throws {
        let device = try #require(self.rig.register(1).device)
        for id in [0...16, 1...16, 0...0].joined() {
            try self.rig.engine.transfersFinished(session: "s", count: 2, id: "\(id)", device: device)
        }
        #expect(self.rig.engine.totals.sessions.finished == 36 && self.rig.isConserved)
    }

    @Test("The events of a report have all of its transfers", arguments: [1, 65_535, 65_536, 100_000] as [UInt64])
    func largeReports(count: UInt64) throws {
        let device = try #require(self.rig.register(1).device)
        _ = self.rig.takeEvents(1)
        try self.rig.engine.transfersFinished(session: "s", count: count, id: nil, device: device)
        let counts = self.rig.takeEvents(1).compactMap { event -> UInt64? in
            guard case .transfersFinished(let count) = event.kind else { return nil }
            return UInt64(count)
        }
        #expect(counts.reduce(0, +) == count && counts.count == (count > 65_535 ? 2 : 1))
        #expect(self.rig.engine.totals.sessions.finished == Int64(count))
    }

    @Test("The memory of event ids is limited; the oldest is replaced, and a removal frees all")
    func eventMemory() throws {
        var configuration = EngineRig.openToTasks()
        configuration.taskBytesMax = 16 * 80 + 200
        let rig = EngineRig(configuration)
        let device = try #require(rig.register(1).device)
        func finish(_ device: DeviceIndex, _ number: Int) throws(TaskRejection) {
            let id = String(repeating: "e", count: 60) + String(1000 + number)
            try rig.engine.transfersFinished(session: "s", count: 1, id: id, device: device)
        }
        for number in 0..<40 { try finish(device, number) }
        #expect(rig.engine.taskBytes == 16 * 80 + 129)
        let other = try #require(rig.register(2).device)
        #expect(throws: TaskRejection.bound(.taskBytesMax)) { try finish(other, 0) }
        #expect(rig.engine.totals.sessions.finished == 40 && !rig.engine.hasTasks(other))
        rig.engine.unregister(device)
        #expect(rig.engine.taskBytes == 0)
        try finish(other, 0)
        #expect(rig.isConserved)
    }

    @Test("Limits count requests and bytes of a topic and of all; a replacement needs no additional space")
    func limits() throws {
        var configuration = EngineRig.openToTasks()
        configuration.taskRequestsMax = 3
        configuration.taskRequestsPerTopicMax = 2
        let rig = EngineRig(configuration)
        try rig.submit(1, "a", .processing([]))
        try rig.submit(1, "b", .processing([]))
        #expect(throws: TaskRejection.bound(.taskTopicPercentMax)) { try rig.submit(1, "c", .processing([])) }
        #expect(try rig.submit(1, "b", .processing([])).disposition == .replaced)
        rig.register(2, topic: 1)
        rig.register(3, topic: 2)
        try rig.submit(2, "d")
        #expect(throws: TaskRejection.bound(.taskRequestsMax)) { try rig.submit(3, "d") }
        rig.engine.cancelTask(nil, device: rig.index(1))
        try rig.submit(3, "d")
        #expect(rig.engine.totals.requests.cancelled == 2 && rig.isConserved)
    }
}

extension Admission {
    /// The device of an accepted push; nil for other cases.
    fileprivate var device: DeviceIndex? { if case .device(let device) = self { device } else { nil } }
}

@Suite("Which tasks are permitted", .timeLimit(.minutes(15)))
struct PermittedTasksTests {
    private func permitted(_ patterns: [String], _ base: PermittedTasks = .none) -> PermittedTasks {
        var permitted = base
        permitted["com.a"] = patterns.map { IdentifierPattern($0) }
        return permitted
    }

    @Test("A worker is warned of the patterns that match no permitted identifier")
    func warnings() {
        let texts = ["a", "a.b", "a.*", "a.b.*", "b..*", "b.*", "..*", "a-.*", "_", "a.", "a.b.", "b.a.b"]
        let letters = ["a", "b", ".", "-", "_"]
        let identifiers = (0..<5).reduce(into: [""]) { words, _ in
            words += words.flatMap { word in letters.map { word + $0 } }
        }.filter { IdentifierPattern.isIdentifier($0.utf8) }
        let known = Dictionary(
            uniqueKeysWithValues: texts.map { text in
                let pattern = IdentifierPattern(text)
                return (text, Set(identifiers.filter { pattern.matches($0) }))
            }
        )
        var generator = SeededGenerator(seed: 9)
        var warned = 0
        for _ in 0..<500 {
            let chosen = texts.filter { _ in generator.next() % 4 == 0 }
            let warning = self.permitted(chosen).warning(
                topic: "com.a",
                tasks: texts.map { IdentifierPattern($0) },
                worker: "w"
            )
            let expected = texts.filter { text in
                chosen.allSatisfy { known[$0]?.isDisjoint(with: known[text] ?? []) ?? true }
            }
            #expect(warning?.tasks.map(\.text) ?? [] == expected, "\(chosen)")
            warned += expected.count
        }
        #expect(warned > 500)
        let (none, all) = (PermittedTasks.none, PermittedTasks.all)
        #expect(none.warning(topic: "com.a", tasks: [], worker: "") == nil)
        #expect(none.warning(topic: "com.a", tasks: [IdentifierPattern("a")], worker: "")?.problem == .notPermitted)
        let everything = all.warning(topic: "com.a", tasks: [IdentifierPattern("a")], worker: "")
        #expect(everything?.problem == .everythingPermitted)
    }

    @Test("Nothing is permitted, or everything, to a topic that names nothing")
    func defaults() {
        #expect(!PermittedTasks.none.permits("a", topic: "com.a"))
        #expect(PermittedTasks.all.permits("a", topic: "com.a"))
        for identifier in ["", "a b", "a.*", "\u{212A}"] {
            #expect(!PermittedTasks.all.permits(identifier, topic: "com.a"), "\(identifier)")
        }
        let named = self.permitted(["a"], .all)
        #expect(named.permits("a", topic: "com.a") && !named.permits("b", topic: "com.a"))
        #expect(named.permits("b", topic: "com.b"))
        #expect(!self.permitted([], .all).permits("a", topic: "com.a"))
        let below = self.permitted(["a.*"])
        #expect(below.permits("a.b", topic: "com.a") && !below.permits("a.b", topic: "com.b"))
        #expect(!below.permits("a.*", topic: "com.a") && !below.permits("a.b c", topic: "com.a"))
        #expect(EngineConfiguration().permittedTasks == .none)
    }

    @Test("A topic without its own list is treated like all others")
    func unnamed() {
        var permitted = self.permitted(["a"], .all)
        #expect(Array(permitted.listedTopics) == ["com.a"])
        #expect(permitted["com.a"] == [IdentifierPattern("a")])
        permitted["com.a"] = nil
        #expect(permitted == .all && permitted["com.a"] == nil)
    }
}
