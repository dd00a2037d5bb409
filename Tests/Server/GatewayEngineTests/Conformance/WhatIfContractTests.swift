import Engine
import Gateway
import Platform
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: what-if", .timeLimit(.minutes(15)))
struct WhatIfContractTests {
    private static let members = ["completed", "coalesced", "discarded", "waiting"]

    /// Returns the counts of an outcome of a what-if, in the order of `members`.
    private func counts(_ contract: EngineContract, _ request: Int, _ outcome: String) throws -> [Int] {
        try Self.members.map { try #require(Int(contract.member(request, outcome, $0))) }
    }

    private func ask(_ contract: EngineContract, _ request: Int, _ body: String) throws {
        let whatIf = try WhatIf(JSONReader.read(body))
        contract.ask { $0.whatIf(request, 1, whatIf) }
    }

    @Test("Each push counts once, and those that still wait count into the waits", arguments: EngineKind.all)
    func isIdempotent(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        var reported = 0
        for number in 0..<21 {
            contract.ask { $0.push(100 + number, 1) }
            contract.pass(seconds: 15)
            for wake in contract.wakes.dropFirst(reported) {
                // The push of the first wake is pending again, and is coalesced into the next one.
                let result: FetchResult = reported == 0 ? .failed : .newData
                contract.ask { $0.report(200 + reported, wake.id, result) }
                reported += 1
            }
        }
        #expect(reported > 2)
        try self.ask(contract, 1000, #"{"policy":{"launchInterval":600}}"#)
        #expect(contract.member(1000, "pushes") == "21", "\(contract.text(1000))")
        for outcome in ["recorded", "replayed", "whatIf"] {
            let counts = try self.counts(contract, 1000, outcome)
            #expect(counts.reduce(0, +) == 21, "\(outcome): \(contract.text(1000))")
        }
        let recorded = try self.counts(contract, 1000, "recorded")
        #expect(try recorded == self.counts(contract, 1000, "replayed"), "\(contract.text(1000))")
        for wait in ["meanWait", "maxWait"] {
            let before = try #require(Int(contract.member(1000, "replayed", wait)))
            let after = try #require(Int(contract.member(1000, "whatIf", wait)))
            #expect(after > before, "\(wait): \(contract.text(1000))")
        }
    }

    @Test("A discarded push counts once, also if it stood for others", arguments: EngineKind.all)
    func discarded(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1) }
        contract.ask { $0.push(2, 1, expiration: 0) }
        contract.ask { $0.push(3, 1) }
        contract.pass(seconds: 8000)
        contract.ask { $0.push(4, 1) }
        try self.ask(contract, 10, #"{"policy":{}}"#)
        #expect(try self.counts(contract, 10, "recorded") == [0, 1, 2, 1], "\(contract.text(10))")
        // Pushes 1 and 3 waited for at least the default lifetime, push 2 never waited, and push 4 has just arrived.
        let wait = try #require(Int(contract.member(10, "recorded", "maxWait")))
        #expect(wait >= 7_200_000, "\(contract.text(10))")
    }

    @Test("A policy under which a device would launch without end is refused", arguments: EngineKind.all)
    func tooManyLaunches(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind)
        contract.ask { $0.report(3, wake.id, .failed) }
        contract.pass(seconds: 3600)
        let policy = #"{"policy":{"launchInterval":0.001,"dailyLaunches":1000000000,"maxAttempts":1000000000}}"#
        try self.ask(contract, 10, policy)
        #expect(contract.answer(10) == "400 BadPolicy", "\(contract.text(10))")
        try self.ask(contract, 11, #"{"policy":{"launchInterval":60}}"#)
        #expect(contract.answer(11) == "200")
    }

    @Test("The simulator reproduces the what-if from an exported trace", arguments: EngineKind.all)
    func trace(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind)
        contract.pass(seconds: 3)
        contract.ask { $0.report(3, wake.id, .newData) }
        contract.ask { $0.push(4, 1) }
        contract.ask { $0.push(5, 1, expiration: 0) }
        contract.ask { $0.trace(10, 1) }
        #expect(contract.answer(10) == "200")
        var summary = ""
        let lines = contract.text(10).split(separator: "\n").map(String.init)
        try Simulator.run(trace: lines) { summary = $0 }
        let counts = try #require(JSONReader.read(summary)["summary"])
        let names = ["accepted", "launched", "completed", "discarded.expired", "pending"]
        #expect(names.map { counts[$0]?.number } == [3, 1, 1, 1, 1], "\(summary)")
    }

    // MARK: Tasks

    /// The counts of tasks in an outcome: ended, replaced, discarded, waiting.
    private func tasks(_ contract: EngineContract, _ request: Int, _ outcome: String) throws -> [Int] {
        try ["ended", "replaced", "discarded", "waiting"].map {
            try #require(Int(contract.member(request, outcome, "tasks", $0)), "\(contract.text(request))")
        }
    }

    /// A device that ran a refresh, a processing task, a continued task and a session, and has a refresh that waits.
    private func busyContract(_ kind: EngineKind) throws -> EngineContract {
        let contract = try taskContract(kind)
        contract.ask { $0.subscribe(1, tasks: ["refresh", "clean", "export"], sessions: ["photos"]) }
        func end(_ request: Int, after seconds: Int64) throws {
            let wake = try contract.lastWake()
            contract.pass(seconds: seconds)
            contract.ask { $0.report(request, wake.id, TaskResult.success) }
            #expect(contract.answer(request) == "204")
        }
        contract.ask { $0.submit(2, 1, "refresh") }
        try end(3, after: 5)
        contract.ask { $0.submit(4, 1, "clean", .processing([])) }
        try end(5, after: 90)
        contract.ask { $0.conditions(6, 1) { $0.appState = .active } }
        contract.ask { $0.submit(7, 1, "export", .continued(.queue)) }
        contract.ask { $0.progress(8, contract.wakes[contract.wakes.count - 1].id, 10) }
        try end(9, after: 40)
        contract.ask { $0.conditions(10, 1) { $0.appState = .background } }
        contract.ask { $0.finish(11, 1, "photos", 3) }
        try end(12, after: 2)
        contract.ask { $0.submit(13, 1, "refresh", earliestBegin: contract.wall + 3_600_000) }
        contract.pass(seconds: 600)
        #expect(contract.wakes.count == 4)
        return contract
    }

    @Test("Tasks are replayed, too, each once, and share the interval of pushes", arguments: EngineKind.all)
    func replaysTasks(kind: EngineKind) throws {
        let contract = try self.busyContract(kind)
        try self.ask(contract, 100, #"{"policy":{"launchInterval":1200}}"#)
        #expect(contract.member(100, "tasks") == "5" && contract.member(100, "pushes") == "0")
        #expect(try self.tasks(contract, 100, "recorded") == [4, 0, 0, 1], "\(contract.text(100))")
        // The refresh that may not begin for an hour waits in the replay, too.
        #expect(try self.tasks(contract, 100, "replayed") == [4, 0, 0, 1], "\(contract.text(100))")
        // The session's wake does not come within the period: the refresh charged the interval.
        #expect(try self.tasks(contract, 100, "whatIf") == [3, 0, 0, 2], "\(contract.text(100))")
        #expect(contract.member(100, "whatIf", "tasks", "launched") == "3")
    }

    @Test("A request that was replaced or cancelled counts once", arguments: EngineKind.all)
    func replaced(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask { $0.submit(1, 1, "refresh", earliestBegin: contract.wall + 600_000) }
        contract.pass(seconds: 30)
        contract.ask { $0.submit(2, 1, "refresh", earliestBegin: contract.wall + 600_000) }
        contract.pass(seconds: 30)
        contract.ask { $0.submit(3, 1, "clean", .processing([])) }
        contract.pass(seconds: 30)
        contract.ask { $0.cancel(4, 1, "refresh") }
        try self.ask(contract, 10, #"{"policy":{}}"#)
        for outcome in ["recorded", "replayed"] {
            #expect(try self.tasks(contract, 10, outcome) == [0, 1, 1, 1], "\(outcome): \(contract.text(10))")
        }
    }

    @Test("An exported trace has the tasks, and the simulator runs it as the what-if does", arguments: EngineKind.all)
    func taskTrace(kind: EngineKind) throws {
        let contract = try self.busyContract(kind)
        contract.ask { $0.trace(100, 1) }
        var summary = ""
        let lines = contract.text(100).split(separator: "\n").map(String.init)
        for word in [#""submit":{"identifier":"clean","kind":"processing"}"#, #""finished":{"session":"photos""#] {
            #expect(lines.contains { $0.contains(word) }, "\(word) in \(lines)")
        }
        try Simulator.run(trace: lines) { summary = $0 }
        let counts = try #require(JSONReader.read(summary)["summary"])
        let names = ["tasks.submitted", "tasks.results.success", "tasks.waiting", "sessions.completed"]
        #expect(names.map { counts[$0]?.number } == [4, 3, 1, 3], "\(summary)")
    }

    @Test("Recorded conditions hold pushes in the replay, too", arguments: EngineKind.all)
    func conditions(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.register(900, 1)
            // It has conditions, and nothing that could be replayed.
            $0.register(901, 2)
            $0.subscribe(1)
        }
        for device in 1...2 { contract.ask { $0.conditions(1 + device, device) { $0.network = false } } }
        for push in 0..<3 {
            contract.ask { $0.push(10 + push, 1) }
            contract.pass(seconds: 200)
        }
        #expect(contract.wakes.isEmpty)
        contract.ask { $0.conditions(20, 1) { $0.network = true } }
        let wake = try contract.lastWake()
        contract.pass(seconds: 5)
        contract.ask { $0.report(21, wake.id, .newData) }
        try self.ask(contract, 100, #"{"policy":{"launchInterval":600}}"#)
        for outcome in ["recorded", "replayed", "whatIf"] {
            #expect(try self.counts(contract, 100, outcome) == [1, 2, 0, 0], "\(outcome): \(contract.text(100))")
            #expect(contract.member(100, outcome, "maxWait") == "600000", "\(outcome): \(contract.text(100))")
        }
        #expect(contract.member(100, "conditionReports") == "0")
        contract.ask { $0.trace(101, 1) }
        #expect(contract.text(101).contains(#""conditions":{"network":false}"#), "\(contract.text(101))")
        try self.ask(contract, [102], topic: 0, "launchInterval=600")
        #expect(["devices", "examined"].map { contract.member(102, $0) } == ["1", "2"], "\(contract.text(102))")
        for outcome in ["recorded", "current", "proposed"] {
            #expect(try self.counts(contract, 102, outcome) == [1, 2, 0, 0], "\(outcome): \(contract.text(102))")
            #expect(contract.member(102, outcome, "maxWaitMs") == "600000", "\(outcome): \(contract.text(102))")
        }
    }

    @Test("A continued task of a device whose use was reported is replayed in that use", arguments: EngineKind.all)
    func use(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask { $0.subscribe(1, tasks: ["export"]) }
        contract.ask { $0.conditions(2, 1) { $0.appState = .active } }
        contract.ask { $0.submit(3, 1, "export", .continued(.queue)) }
        contract.ask { $0.trace(4, 1) }
        let reports = contract.text(4).split(separator: "\n").filter { $0.contains("appState") }
        #expect(reports.count == 1, "the replay adds no report of its own: \(contract.text(4))")
    }

    // MARK: Topics

    private func ask(_ contract: EngineContract, _ requests: [Int], topic: Int, _ query: String = "") throws {
        let whatIf = try query.withByteView { query throws(APIError) in try WhatIf(query: query) }
        contract.ask { for request in requests { $0.whatIf(request, topic: topic, whatIf) } }
    }

    @Test("The devices of a topic are replayed together, and those of no other", arguments: EngineKind.all)
    func topic(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...6 { $0.register(device, device, topic: device % 2) } }
        contract.ask { for topic in 0...1 { $0.subscribe(10 + topic, topic: topic, slots: 16) } }
        var (reported, request) = (0, 100)
        for _ in 0..<8 {
            // Device 6 has no push, and devices 1, 3 and 5 are of the other topic.
            contract.ask { for device in [1, 2, 3, 4] { $0.push(request + device, device, topic: device % 2) } }
            request += 10
            for wake in contract.wakes.dropFirst(reported) {
                contract.ask { $0.report(request, wake.id, .newData) }
                (reported, request) = (reported + 1, request + 1)
            }
            contract.pass(seconds: 20)
        }
        try self.ask(contract, [1000], topic: 0, "launchInterval=600")
        #expect(contract.answer(1000) == "200")
        let members = ["devices", "examined", "registered", "pushes", "tasks", "isWhole"]
        #expect(members.map { contract.member(1000, $0) } == ["2", "3", "3", "16", "0", "true"])
        for outcome in ["recorded", "current", "proposed"] {
            #expect(try self.counts(contract, 1000, outcome).reduce(0, +) == 16, "\(outcome): \(contract.text(1000))")
        }
        #expect(try self.counts(contract, 1000, "recorded") == self.counts(contract, 1000, "current"))
        #expect(contract.member(1000, "proposed", "launches") == "2", "\(contract.text(1000))")
        #expect(contract.member(1000, "changes", "launchInterval") == "600.0")
        for wait in ["meanWaitMs", "maxWaitMs"] {
            let before = try #require(Int(contract.member(1000, "current", wait)))
            let after = try #require(Int(contract.member(1000, "proposed", wait)))
            #expect(after > before, "\(wait): \(contract.text(1000))")
        }
        // The counts of a topic are those of its devices.
        var launches = 0
        for device in [2, 4, 6] {
            let whatIf = try WhatIf(JSONReader.read(#"{"policy":{}}"#))
            contract.ask { $0.whatIf(1100 + device, device, whatIf) }
            launches += try #require(Int(contract.member(1100 + device, "recorded", "launched")))
        }
        #expect(contract.member(1000, "recorded", "launches") == "\(launches)")
    }

    @Test("A topic with more devices than a step takes is replayed wholly", arguments: EngineKind.all)
    func steps(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let devices = 300
        contract.ask { for device in 1...devices { $0.push(device, device) } }
        try self.ask(contract, [1000], topic: 0)
        let members = ["devices", "examined", "registered", "pushes", "isWhole"]
        #expect(members.map { contract.member(1000, $0) } == ["300", "300", "300", "300", "true"])
        #expect(contract.member(1000, "recorded", "waiting") == "300")
    }

    @Test("The devices with the newest activity come first", arguments: EngineKind.alone)
    func newestFirst(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let devices = 10_200
        for first in stride(from: 1, to: devices, by: 1000) {
            contract.ask { for device in first..<min(first + 1000, devices + 1) { $0.register(device, device) } }
        }
        contract.pass(seconds: 1)
        // Tokens are in no order that would favor these.
        contract.ask { for device in [7, 5000, devices] { $0.push(100_000 + device, device) } }
        let began = SystemClock.monotonic
        try self.ask(contract, [200_000], topic: 0)
        // A replay ends after ten seconds. A busy machine may have examined fewer devices by then.
        let hasTime = SystemClock.monotonic - began < 10_000
        let examined = try #require(Int(contract.member(200_000, "examined")))
        #expect(contract.member(200_000, "devices") == "3" && (hasTime ? examined == 10_000 : examined <= 10_000))
        #expect(contract.member(200_000, "registered") == "\(devices)")
        #expect(contract.member(200_000, "isWhole") == "false")
    }

    @Test("Of many replays of topics at a time some are refused, and later ones are not", arguments: EngineKind.all)
    func bounded(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1) }
        try self.ask(contract, Array(10..<20), topic: 0)
        let answers = (10..<20).map { contract.answer($0) }
        #expect(answers.count { $0 == "200" } == 2 && answers.count { $0 == "429 TooManyRequests" } == 8, "\(answers)")
        try self.ask(contract, [20], topic: 0)
        #expect(contract.answer(20) == "200")
        try self.ask(contract, [21], topic: 5)
        #expect(contract.answer(21) == "404 UnknownTopic")
    }
}
