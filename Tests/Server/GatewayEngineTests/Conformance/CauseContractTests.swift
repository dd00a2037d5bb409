import Engine
import Gateway
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: the log says what launches waited for", .timeLimit(.minutes(15)))
struct CauseContractTests {
    /// A member of an event of a device's log, the newest first; empty when there is none.
    private func event(_ contract: EngineContract, _ question: Int, _ place: Int, _ path: String...) -> String {
        contract.member(question, at: ["events", "\(place)"] + path)
    }

    @Test("A launch says how long interval, holds and workers kept it back", arguments: EngineKind.all)
    func launch(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.report(3, contract.wakes[0].id, FetchResult.newData) }
        contract.ask { $0.push(4, 1) }
        contract.pass(seconds: 10)
        contract.ask { $0.conditions(5, 1) { $0.batteryLevel = 0.05 } }
        contract.pass(seconds: 20)
        contract.ask { $0.conditions(6, 1) { $0.network = false } }
        contract.pass(seconds: 40)
        contract.ask { $0.conditions(7, 1) { $0.network = true } }
        contract.pass(seconds: 5)
        contract.ask { $0.push(8, 2) }
        contract.ask { $0.conditions(9, 1) { $0.charging = true } }
        #expect(contract.wakes.count == 2, "another device has the only slot")
        contract.pass(seconds: 3)
        contract.ask { $0.report(10, contract.wakes[1].id, FetchResult.newData) }
        #expect(contract.wakes.count == 3)
        contract.ask { $0.deviceEvents(11, 1) }
        #expect(self.event(contract, 11, 0, "event") == "launch")
        #expect(self.event(contract, 11, 0, "waited", "interval") == "10000")
        #expect(self.event(contract, 11, 0, "waited", "hold", "battery") == "25000")
        #expect(self.event(contract, 11, 0, "waited", "hold", "network") == "40000")
        #expect(self.event(contract, 11, 0, "waited", "worker") == "3000")
        let detail = "attempt 1, coalesced 0, waited 10 s interval, 40 s network, 25 s battery, 3 s worker"
        #expect(self.event(contract, 11, 0, "detail") == detail)
        #expect(self.event(contract, 11, 1, "changed", "charging") == "true")
        #expect(self.event(contract, 11, 2, "changed", "network") == "true")
        #expect(self.event(contract, 11, 4, "changed", "batteryLevel") == "0.05")
        #expect(self.event(contract, 11, 4, "detail") == "batteryLevel 0.05")
        #expect(self.event(contract, 11, 4, "changed", "network").isEmpty)
        // The first push launched as it came.
        #expect(self.event(contract, 11, 7, "event") == "launch" && self.event(contract, 11, 7, "waited").isEmpty)
    }

    @Test("The events of a period can be asked for, and continue where a page ended", arguments: EngineKind.all)
    func period(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        var moments: [Int64] = []
        contract.ask { $0.register(9, 1) }
        for request in 1...5 {
            moments.append(contract.wall)
            contract.ask { $0.conditions(request, 1) { $0.batteryLevel = Double(request) / 10 } }
            contract.pass(seconds: 10)
        }
        var selection = EventSelection()
        (selection.kind, selection.limit) = (.conditions, 2)
        (selection.since, selection.until) = (moments[1], moments[4])
        contract.ask { $0.deviceEvents(10, 1, selection) }
        #expect((0...2).map { self.event(contract, 10, $0, "changed", "batteryLevel") } == ["0.4", "0.3", ""])
        selection.before = HistoryCursor(contract.member(10, "next"))
        contract.ask { $0.deviceEvents(11, 1, selection) }
        #expect((0...1).map { self.event(contract, 11, $0, "changed", "batteryLevel") } == ["0.2", ""])
        #expect(contract.member(11, "next") == "null")
    }

    @Test("What is discarded says under which hold it waited", arguments: EngineKind.all)
    func discarded(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1)
            $0.register(12, 1)
        }
        contract.ask { $0.conditions(2, 1) { $0.network = false } }
        contract.ask { $0.push(3, 1, expiration: 0) }
        contract.ask { $0.push(4, 1, expiration: contract.wall / 1000 + 100) }
        contract.pass(seconds: 101)
        contract.ask { $0.push(5, 1) }
        contract.pass(seconds: 7)
        contract.ask { $0.pause(6) }
        contract.pass(seconds: 4)
        contract.ask { $0.dropPending(7, 1) }
        contract.ask { $0.deviceEvents(8, 1) }
        #expect(self.event(contract, 8, 0, "event") == "discard" && self.event(contract, 8, 0, "held") == "paused")
        #expect(self.event(contract, 8, 0, "waited", "hold", "network") == "11000")
        #expect(self.event(contract, 8, 2, "event") == "discard" && self.event(contract, 8, 2, "held") == "network")
        #expect(self.event(contract, 8, 2, "waited", "hold", "network") == "101000")
        #expect(self.event(contract, 8, 4, "event") == "discard" && self.event(contract, 8, 4, "held") == "network")
        #expect(self.event(contract, 8, 4, "detail") == "expired")
        contract.ask { $0.push(9, 2, topic: 1, expiration: 0) }
        contract.ask { $0.deviceEvents(10, 2) }
        #expect(self.event(contract, 10, 0, "held") == "worker", "no worker is subscribed to its topic")
    }

    @Test(
        "A retry has waited since its wake ended, and a pause does not count as a wait for a worker",
        arguments: EngineKind.all
    )
    func retry(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind)
        contract.pass(seconds: 10)
        contract.ask { $0.report(3, contract.wakes[0].id, FetchResult.failed) }
        contract.pass(seconds: 30)
        contract.ask { $0.pause(4) }
        contract.pass(seconds: 50)
        contract.ask { $0.resume(5) }
        #expect(contract.wakes.count == 2)
        contract.ask { $0.deviceEvents(6, 1) }
        #expect(self.event(contract, 6, 0, "detail") == "attempt 2, coalesced 0, waited 30 s interval, 50 s paused")
    }

    @Test("What a wait had is there after a restart", arguments: EngineKind.keeping)
    func restart(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        contract.ask {
            $0.push(1, 1)
            $0.register(2, 2)
            $0.push(10, 3)
            $0.register(11, 4)
        }
        contract.ask { $0.submit(3, 2, "com.example.clean", .processing(.externalPower)) }
        contract.ask { $0.submit(12, 4, "com.example.clean", .processing([])) }
        contract.pass(seconds: 10)
        contract.ask { $0.conditions(4, 1) { $0.network = false } }
        contract.pass(seconds: 20)
        try contract.restart()
        contract.pass(seconds: 5)
        contract.ask { $0.conditions(5, 1) { $0.network = true } }
        contract.ask { $0.conditions(6, 2) { $0.charging = true } }
        contract.pass(seconds: 1)
        contract.ask { $0.subscribe(7, tasks: ["com.example.clean"]) }
        contract.ask {
            $0.deviceEvents(8, 1)
            $0.deviceEvents(9, 2)
            $0.deviceEvents(13, 3)
            $0.deviceEvents(14, 4)
        }
        for device in [13, 14] {
            #expect(self.event(contract, device, 0, "event") == "launch")
            #expect(self.event(contract, device, 0, "waited", "worker") == "36000", "only a worker was missing")
            #expect(self.event(contract, device, 0, "waited", "interval") == "0")
        }
        #expect(self.event(contract, 8, 0, "waited", "hold", "network") == "25000")
        #expect(self.event(contract, 8, 0, "waited", "worker") == "1000")
        #expect(self.event(contract, 8, 0, "waited", "interval") == "10000", "it waited for a worker, too, at first")
        #expect(self.event(contract, 9, 0, "event") == "launch")
        #expect(self.event(contract, 9, 0, "waited", "hold", "power") == "35000")
        #expect(self.event(contract, 9, 0, "waited", "worker") == "1000")
    }

    @Test(
        "A dropped request says under which hold it waited, and a launch after one how long",
        arguments: EngineKind.all
    )
    func tasks(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        contract.ask { $0.subscribe(1, tasks: ["com.example.clean"]) }
        contract.ask { $0.register(2, 1) }
        contract.ask { $0.submit(3, 1, "com.example.clean", .processing(.externalPower)) }
        contract.pass(seconds: 30)
        contract.ask { $0.submit(4, 1, "com.example.clean", .processing(.externalPower)) }
        contract.pass(seconds: 15)
        contract.ask { $0.conditions(5, 1) { $0.charging = true } }
        contract.ask { $0.deviceEvents(6, 1) }
        #expect(
            self.event(contract, 6, 0, "event") == "launch" && self.event(contract, 6, 0, "task") == "com.example.clean"
        )
        #expect(self.event(contract, 6, 0, "waited", "hold", "power") == "15000")
        #expect(self.event(contract, 6, 2, "event") == "discard" && self.event(contract, 6, 2, "held") == "power")
        #expect(self.event(contract, 6, 2, "waited", "hold", "power") == "30000")
    }

    @Test("A request that is not taken is in the log with its reason", arguments: EngineKind.all)
    func refused(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks[EngineRig.topicName(0)] = [.init("com.example.*")] }
        contract.ask { $0.register(1, 1) }
        contract.follow()
        contract.ask { $0.submit(2, 1, "com.other") }
        for session in 0..<9 { contract.ask { $0.finish(10 + session, 1, "session\(session)") } }
        #expect(contract.answer(2) == "403 NotPermitted" && contract.answer(18) == "409 TooManySessions")
        contract.ask { $0.deviceEvents(3, 1) }
        #expect(self.event(contract, 3, 0, "event") == "refused" && self.event(contract, 3, 0, "session") == "session8")
        #expect(self.event(contract, 3, 0, "detail") == "TooManySessions")
        #expect(self.event(contract, 3, 9, "event") == "refused" && self.event(contract, 3, 9, "task") == "com.other")
        #expect(self.event(contract, 3, 9, "kind") == "appRefresh")
        #expect(self.event(contract, 3, 9, "detail") == "NotPermitted")
        let told = contract.followed().filter { $0.kind == .taskRefused }
        #expect(told.map(\.reason) == ["NotPermitted", "TooManySessions"])
        #expect(told.map(\.detail) == ["appRefresh com.other", "urlSession session8"])
        contract.ask { $0.finish(19, 1, "session0") }
        #expect(contract.answer(19) == "202", "a session that waits takes more transfers")
        let sessions = try contract.counters().sessions
        #expect(sessions.finished == 9 && sessions.refused == 1 && sessions.waiting == 9)
    }

    @Test("A push shows payload, worker, holds and wait", arguments: EngineKind.all)
    func push(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let label = "a worker of more than sixteen bytes"
        contract.ask { $0.register(1, 1) }
        contract.ask { $0.conditions(2, 1) { $0.network = false } }
        contract.ask { $0.push(3, 1) }
        contract.pass(seconds: 30)
        contract.ask { $0.way(4, of: 3) }
        let payload = #"{"aps":{"content-available":1},"n":3}"#
        #expect(contract.member(4, "payloadBytes") == "\(payload.utf8.count)")
        #expect(contract.member(4, "held", "0") == "network" && contract.member(4, "worker") == "null")
        #expect(contract.member(4, "waited") == "null" && contract.member(4, "coalesced") == "0")
        #expect((Int64(contract.member(4, "expiresAt")) ?? 0) > contract.wall)
        contract.follow()
        contract.ask { $0.subscribe(5, tasks: ["com.example.*"], label: label) }
        #expect(contract.followed().map(\.detail) == ["\(label): 4 slots, pushes, tasks com.example.*"])
        contract.ask { $0.conditions(6, 1) { $0.network = true } }
        contract.ask { $0.way(7, of: 3) }
        #expect(contract.member(7, "state") == "inFlight" && contract.member(7, "worker") == label)
        #expect(contract.text(7).contains("\"held\":[]"))
        #expect(contract.member(7, "waited", "hold", "network") == "30000")
        contract.ask { $0.deviceEvents(8, 1) }
        #expect(self.event(contract, 8, 0, "event") == "launch", "the log of a device leaves out the names of workers")
    }

    @Test(
        "The log of a device has the worker of each launch, and a running task names its own",
        arguments: EngineKind.all
    )
    func workers(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        let label = "a worker of more than sixteen bytes"
        contract.ask {
            $0.register(1, 1)
            $0.subscribe(2, tasks: ["com.example.a"], sessions: ["photos"], takesPushes: false, label: label)
            $0.subscribe(3, tasks: ["com.example.b"], takesPushes: false)
            $0.subscribe(4, label: "pushes")
        }
        contract.ask {
            $0.submit(5, 1, "com.example.a", .processing([]))
            $0.finish(6, 1, "photos")
        }
        contract.ask { $0.listTasks(7, 1) }
        #expect(contract.member(7, "running", "0", "worker") == label, "\(contract.text(7))")
        for (number, wake) in contract.wakes.enumerated() {
            contract.ask { $0.report(80 + number, wake.id, TaskResult.success) }
        }
        contract.pass(seconds: 7200)
        contract.ask { $0.submit(9, 1, "com.example.b", .processing([])) }
        contract.ask { $0.listTasks(10, 1) }
        #expect(contract.member(10, "running", "0", "worker") == "null", "\(contract.text(10))")
        contract.ask { $0.push(11, 1) }
        contract.ask { $0.deviceEvents(12, 1) }
        let launches = (0..<15).filter { self.event(contract, 12, $0, "event") == "launch" }.map { place in
            ["kind", "worker"].map { self.event(contract, 12, place, $0) }
        }
        #expect(
            launches == [["", "pushes"], ["processing", ""], ["urlSession", label], ["processing", label]],
            "\(contract.text(12))"
        )
    }

    @Test("The log of a device has the streams that name it, and those for its topic", arguments: EngineKind.all)
    func subscriptions(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.register(1, 1)
            $0.register(2, 2)
            $0.register(3, 3, topic: 1)
        }
        contract.pass(seconds: 1)
        contract.ask { $0.subscribe(4, tasks: ["com.example.*"], label: "for all") }
        contract.pass(seconds: 1)
        let long = String(repeating: "long", count: 70)
        contract.ask { $0.subscribe(5, naming: [1, 3], label: long) }
        contract.pass(seconds: 1)
        contract.ask { for device in 1...3 { $0.deviceEvents(10 + device, device) } }
        let all = "for all: 4 slots, pushes, tasks com.example.*"
        let logs = [(1, ["subscribed", "subscribed", "registered"]), (2, ["subscribed", "registered"])]
        for (device, expected) in logs {
            let events = (0...3).map { self.event(contract, 10 + device, $0, "event") }.filter { !$0.isEmpty }
            #expect(events == expected, "\(contract.text(10 + device))")
            #expect(self.event(contract, 10 + device, expected.count - 2, "detail") == all)
        }
        let cut = self.event(contract, 11, 0, "detail")
        #expect(cut.hasPrefix("longlong") && cut.hasSuffix("…") && cut.utf8.count <= NameParts.bytesMax)
        #expect(self.event(contract, 13, 0, "event") == "registered", "the stream is of another topic")
        contract.ask {
            $0.explain(20, 1)
            $0.explain(21, 2)
        }
        #expect(contract.member(20, "recent", "0", "event") == "subscribed")
        #expect(contract.member(20, "recent", "1", "event") == "registered")
        #expect(contract.member(21, "recent", "0", "event") == "registered")
        var selection = EventSelection()
        (selection.kind, selection.limit) = (.subscription, 1)
        contract.ask { $0.deviceEvents(30, 1, selection) }
        #expect(self.event(contract, 30, 0, "detail") == cut && self.event(contract, 30, 1, "event").isEmpty)
        selection.before = HistoryCursor(contract.member(30, "next"))
        contract.ask { $0.deviceEvents(31, 1, selection) }
        #expect(self.event(contract, 31, 0, "detail") == all)
    }

    @Test("A subscription is in the log after a restart", arguments: EngineKind.keeping)
    func storedSubscription(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.register(1, 1) }
        contract.pass(seconds: 1)
        contract.ask { $0.subscribe(2, naming: [1], label: "first") }
        contract.pass(seconds: 1)
        try contract.restart()
        contract.ask { $0.deviceEvents(3, 1) }
        #expect(self.event(contract, 3, 0, "detail") == "first: 4 slots, pushes", "\(contract.text(3))")
    }

    @Test("Followers receive waits, conditions and submissions", arguments: EngineKind.all)
    func followed(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.follow()
        contract.ask { $0.conditions(2, 1) { $0.network = false } }
        contract.ask { $0.push(3, 1, expiration: 0) }
        contract.ask { $0.submit(4, 1, "com.example.clean", .processing([])) }
        contract.ask { $0.cancel(5, 1, "com.example.clean") }
        let told = contract.followed()
        try #require(told.map(\.kind) == [.conditions, .push, .discarded, .submitted, .discarded])
        #expect(
            told.map(\.detail) == [
                "network false", nil, "held by network", "processing com.example.clean",
                "processing com.example.clean, held by worker",
            ]
        )
        #expect(told[3].disposition == "scheduled" && told[4].reason == "cancelled")
    }
}
