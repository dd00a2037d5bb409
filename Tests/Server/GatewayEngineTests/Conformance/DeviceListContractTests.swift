import Engine
import Gateway
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: the list of devices", .timeLimit(.minutes(15)))
struct DeviceListContractTests {
    /// Returns the devices of a list, page by page, each as its number and its state.
    private func list(
        _ contract: EngineContract,
        _ from: Int,
        _ caller: Caller = .gateway,
        _ fill: (inout DeviceQuestion) -> Void = { _ in }
    ) throws -> [String] {
        try contract.pages(from, of: "devices", "token", "state") { requests, request, after in
            requests.caller = caller
            requests.devices(request) {
                fill(&$0)
                $0.after = after.flatMap { $0.withByteView { DeviceToken(hex: $0) } }
            }
        }
    }

    private static func inOrder(_ numbers: some Sequence<Int>) -> [Int] {
        numbers.sorted { EngineRig.token($0).isBefore(EngineRig.token($1)) }
    }

    @Test("Devices are listed by the time that their oldest push waits", arguments: EngineKind.all)
    func waiting(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...12 { $0.register(100 + device, device, topic: device % 2) } }
        for device in [5, 2, 9, 4, 7] {
            contract.ask { $0.push(200 + device, device, topic: device % 2) }
            contract.pass(seconds: 1)
        }
        // A newer push does not take the place of an older one.
        contract.ask { $0.push(300, 5, topic: 1) }
        contract.ask { $0.conditions(301, 9) { $0.network = false } }
        func list(_ from: Int, _ caller: Caller = .gateway, _ fill: (inout DeviceQuestion) -> Void) throws -> [String] {
            try self.list(contract, from, caller) { question in
                question.order = .waiting
                fill(&question)
            }
        }
        let all = ["5 held", "2 held", "9 held", "4 held", "7 held"]
        #expect(try list(400) { _ in } == all)
        #expect(try list(500) { $0.limit = 2 } == ["5 held", "2 held"])
        #expect(try list(600) { $0.topic = EngineRig.topicName(0) } == ["2 held", "4 held"])
        #expect(try list(700, .ofTopics([1])) { _ in } == ["5 held", "9 held", "7 held"])
        #expect(try list(800) { $0.hold = .network } == ["9 held"])
        let oldest = contract.wall - 5000
        #expect(contract.member(400, "devices", "0", "waitingSince") == "\(oldest)")
        #expect(contract.member(400, "devices", "0", "receivedAt") == "\(contract.wall)")
    }

    @Test("Devices are listed in the order of their tokens, page by page, each once", arguments: EngineKind.all)
    func pages(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...20 { $0.register(100 + device, device, topic: device % 2) } }
        contract.ask { $0.unregister(130, 7) }
        let all = Self.inOrder((1...20).filter { $0 != 7 })
        #expect(try self.list(contract, 200) == all.map { "\($0) idle" })
        for limit in [1, 3, 18, 19, 20] {
            #expect(try self.list(contract, 300 + limit * 100) { $0.limit = limit } == all.map { "\($0) idle" })
        }
        let odd = all.filter { $0 % 2 == 1 }.map { "\($0) idle" }
        #expect(try self.list(contract, 5000) { $0.topic = EngineRig.topicName(1) } == odd)
        #expect(try self.list(contract, 5100, .ofTopics([1])) == odd)
        #expect(try self.list(contract, 5200, .ofTopics([1])) { $0.topic = EngineRig.topicName(0) } == [])
        #expect(try self.list(contract, 5300) { $0.topic = "com.example.unknown" } == [])
    }

    @Test(
        "A list can be filtered by state or hold, and statistics count the same devices under each hold",
        arguments: EngineKind.all
    )
    func held(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, slots: 1)
            for device in 1...6 { $0.register(10 + device, device, topic: device == 6 ? 1 : 0) }
        }
        contract.ask {
            $0.pause(20, topic: 1)
            $0.push(30, 1)
        }
        // The first has a wake in flight and a pending push without a network. The second has two holds, the third has
        // one, the fourth lacks a slot, and the sixth is paused. The fifth has no pending push.
        contract.ask {
            for device in [1, 2] { $0.conditions(40 + device, device) { $0.network = false } }
            for device in [2, 3, 6] {
                $0.conditions(50 + device, device) {
                    $0.batteryLevel = 0.02
                    $0.charging = false
                }
            }
            for device in [1, 2, 3, 4, 6] { $0.push(60 + device, device, topic: device == 6 ? 1 : 0) }
        }
        contract.ask { $0.statistics(80) }
        let holds: [(hold: Hold, devices: [Int])] = [
            (.network, [1, 2]), (.battery, [3]), (.worker, [4]), (.paused, [6]), (.thermal, []),
        ]
        for (place, (hold, devices)) in holds.enumerated() {
            let count = contract.member(80, "devices", "held", "\(hold.name)")
            #expect((Int(count) ?? 0) == devices.count, "\(hold.name)")
            let listed = try self.list(contract, 100 + place * 10) { $0.hold = hold }
            #expect(Set(listed.compactMap { Int($0.prefix { $0 != " " }) }) == Set(devices), "\(hold.name)")
        }
        let held = ["1 inFlight", "2 held", "3 held", "4 held", "6 held"]
        #expect(Set(try self.list(contract, 200) { $0.state = .held }) == Set(held))
        #expect(try self.list(contract, 210) { $0.state = .inFlight } == ["1 inFlight"])
        #expect(try self.list(contract, 220) { $0.state = .idle } == ["5 idle"])
        #expect(try self.list(contract, 230) { $0.state = .pending } == [])
        // Launches of a device are a minute apart, so the push is pending until its time.
        let wake = try contract.lastWake()
        contract.ask {
            $0.report(240, wake.id, .newData)
            $0.conditions(241, 1) { $0.network = true }
        }
        #expect(try self.list(contract, 250) { $0.state = .pending } == ["1 pending"])
        #expect(contract.member(250, "devices", "0", "eligibleAt") != "null")
        #expect(contract.member(250, "devices", "0", "held", "0").isEmpty)
    }

    @Test("A list of tokens with a common prefix is whole, and ends after them", arguments: EngineKind.all)
    func prefixes(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...20 { $0.register(100 + device, device, topic: device % 2) } }
        let all = Self.inOrder(1...20)
        for (place, device) in [all[0], all[7], all[19]].enumerated() {
            let hex = EngineRig.token(device).hex
            for (turn, count) in [1, 15, 16, 17, hex.utf8.count].enumerated() {
                let prefix = hex.prefix(count).uppercased()
                let alike = all.filter { EngineRig.token($0).hex.hasPrefix(hex.prefix(count)) }
                for limit in [1, 100] {
                    let from = 1000 + place * 2000 + turn * 200 + limit
                    let found = try self.list(contract, from) {
                        $0.prefix = prefix.withByteView { TokenPrefix(hex: $0) }
                        $0.limit = limit
                    }
                    #expect(found == alike.map { "\($0) idle" }, "\(prefix)")
                }
            }
        }
        let hex = EngineRig.token(all[7]).hex
        let prefix = String(hex.prefix(16)).withByteView { TokenPrefix(hex: $0) }
        let other = try Caller.ofTopics([(all[7] + 1) % 2])
        #expect(try self.list(contract, 8000, other) { $0.prefix = prefix } == [], "of another topic")
        contract.ask { $0.push(9000, all[7], topic: all[7] % 2) }
        contract.ask { $0.push(9001, all[8], topic: all[8] % 2) }
        let waiting = try self.list(contract, 9010) { ($0.prefix, $0.order) = (prefix, .waiting) }
        #expect(waiting == ["\(all[7]) held"])
        contract.ask { $0.devices(9020) { ($0.prefix, $0.limit) = (prefix, 1) } }
        #expect(contract.member(9020, "next") == EngineRig.token(all[7]).hex)
        contract.ask { $0.devices(9030) { ($0.prefix, $0.limit, $0.after) = (prefix, 1, EngineRig.token(all[7])) } }
        #expect(contract.member(9030, "next") == "null" && contract.member(9030, "devices", "0").isEmpty)
    }

    @Test("A prefix consists of hexadecimal digits of either case", arguments: ["", "g", "0x", "0 ", "é"])
    func prefixDigits(text: String) {
        #expect(text.withByteView { TokenPrefix(hex: $0) } == nil)
        #expect(String(repeating: "a", count: 201).withByteView { TokenPrefix(hex: $0) } == nil)
        #expect("aBc".withByteView { TokenPrefix(hex: $0) } != nil)
    }

    @Test("The end of a page never shows a device of another topic to a caller", arguments: EngineKind.all)
    func foreignEnds(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...1100 { $0.register(10_000 + device, device) } }
        contract.ask { for device in 1101...1103 { $0.register(20_000 + device, device, topic: 1) } }
        let own = Self.inOrder(1101...1103)
        let found = try self.list(contract, 20, .ofTopics([1])) { ($0.state, $0.limit) = (.idle, 2) }
        #expect(found == own.map { "\($0) idle" })
        for request in 20..<110 where contract.answerCount(request) > 0 {
            let next = contract.member(request, "next")
            #expect(next == "null" || own.contains { EngineRig.token($0).hex == next }, "another's device")
        }
    }

    @Test("A list with few matching devices continues after a page without any", arguments: EngineKind.all)
    func sparse(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...1100 { $0.register(10_000 + device, device) } }
        let last = try #require(Self.inOrder(1...1100).last)
        contract.ask { $0.push(1, last) }
        #expect(try self.list(contract, 20) { $0.state = .held } == ["\(last) held"])
        #expect(contract.member(20, "devices", "0").isEmpty && contract.answerCount(21) == 1, "on the second page")
        #expect(contract.answerCount(22) == 0)
    }
}

@Suite("The contract of an engine: the list of pushes", .timeLimit(.minutes(15)))
struct PushListContractTests {
    /// Returns the pages of a list: the devices' numbers and the states of their pushes.
    private func list(
        _ contract: EngineContract,
        _ from: Int,
        _ fill: (inout PushQuestion) -> Void = { _ in }
    ) throws -> [String] {
        try contract.pages(from, of: "pushes", "device", "outcome") { requests, request, after in
            requests.allPushes(request) {
                fill(&$0)
                $0.after = after.flatMap { LoggedPush($0) }
            }
        }
    }

    @Test("Pushes are listed newest first, page by page, each once", arguments: EngineKind.all)
    func pages(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        var starts: [Int64] = []
        for device in 1...12 {
            starts.append(contract.wall)
            contract.ask { $0.push(100 + device, device, topic: device % 2) }
            contract.pass(seconds: 1)
        }
        let all = (1...12).reversed().map { "\($0) pending" }
        for limit in [1, 5, 11, 12, 13, 1000] {
            #expect(try self.list(contract, 1000 + limit * 100) { $0.limit = limit } == all)
        }
        let odd = [11, 9, 7, 5, 3, 1].map { "\($0) pending" }
        #expect(try self.list(contract, 200_000) { ($0.topic, $0.limit) = (EngineRig.topicName(1), 2) } == odd)
        #expect(try self.list(contract, 200_100) { $0.topic = "com.example.unknown" } == [])
        #expect(try self.list(contract, 200_200) { $0.since = starts[9] } == Array(all.prefix(3)))
        #expect(contract.member(200_200, "pushes", "2", "receivedAt") == "\(starts[9])")
        #expect(contract.member(200_200, "pushes", "2", "topic") == EngineRig.topicName(0))
        // The end is not of the period.
        for limit in [1, 2, 100] {
            let found = try self.list(contract, 210_000 + limit * 100) {
                ($0.since, $0.until, $0.limit) = (starts[4], starts[9], limit)
            }
            #expect(found == Array(all[3...7]), "limit \(limit)")
        }
        #expect(try self.list(contract, 230_000) { $0.until = starts[0] } == [])
        #expect(try self.list(contract, 230_100) { $0.until = starts[11] + 1 } == all)
    }

    @Test("A list can be filtered by the outcome of pushes", arguments: EngineKind.all)
    func outcomes(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, slots: 1)
            for device in 1...5 { $0.register(10 + device, device) }
        }
        contract.ask { $0.push(30, 1) }
        contract.pass(seconds: 1)
        contract.ask { $0.push(31, 2) }
        contract.pass(seconds: 1)
        contract.ask { $0.push(32, 2) }
        contract.pass(seconds: 1)
        contract.ask { $0.push(33, 3, wakes: false) }
        contract.pass(seconds: 1)
        contract.ask { $0.push(34, 4) }
        contract.ask { $0.unregister(40, 4) }
        let lines = ["4 unregistered", "3 noWake", "2 pending", "2 coalesced", "1 inFlight"]
        #expect(try self.list(contract, 100) == lines)
        #expect(contract.member(100, "pushes", "4", "outcomeAt") == "null")
        #expect(contract.member(100, "pushes", "0", "outcomeAt") != "null")
        for (place, line) in lines.enumerated() {
            let word = String(line.dropFirst(2))
            #expect(PushQuestion.outcomes.contains(word))
            #expect(try self.list(contract, 200 + place * 100) { ($0.outcomes, $0.limit) = ([word], 1) } == [line])
        }
        let wake = try contract.lastWake()
        contract.ask { $0.report(41, wake.id, .newData) }
        #expect(try self.list(contract, 900) { $0.outcomes = ["completed"] } == ["1 completed"])
        #expect(try self.list(contract, 1000) { $0.outcomes = ["exhausted"] } == [])
        let two: Set = ["completed", "noWake"]
        #expect(try self.list(contract, 1100) { $0.outcomes = two } == ["3 noWake", "1 completed"])
    }

    @Test("A push is listed as lost after a wake of it was lost, whatever its state", arguments: EngineKind.all)
    func lost(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, slots: 1)
            $0.register(11, 1)
            $0.register(12, 2)
            $0.push(30, 1)
        }
        #expect(try self.list(contract, 100) { $0.outcomes = ["lost"] } == [])
        contract.ask { $0.endStream(1) }
        #expect(try self.list(contract, 200) { $0.outcomes = ["lost"] } == ["1 pending"])
        contract.ask { $0.subscribe(2, slots: 1) }
        let wake = try contract.lastWake()
        contract.ask { $0.report(41, wake.id, .newData) }
        contract.ask { $0.push(31, 2) }
        #expect(try self.list(contract, 300) { $0.outcomes = ["lost", "inFlight"] } == ["2 inFlight", "1 completed"])
        #expect(contract.member(300, "pushes", "0", "lost") == "0")
        #expect(contract.member(300, "pushes", "1", "lost") == "1")
    }

    @Test("A list position reads back as written, and malformed positions are refused")
    func places() {
        for text in ["0.1.2.3", "-5.ffffffffffffffff.0.a0", "1700000000000.1.2.3"] {
            #expect(LoggedPush(text)?.text == text)
        }
        for text in [
            "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.G", "1.2.3.0A", "01.2.3.4", "+1.2.3.4", "1..2.3", "1.-2.3.4",
        ] {
            #expect(LoggedPush(text) == nil, "\(text)")
        }
    }
}

@Suite("The contract of an engine: events for followers", .timeLimit(.minutes(15)))
struct EventContractTests {
    @Test(
        "The steps of a push are reported in order, once, with their device, topic and identifiers",
        arguments: EngineKind.all
    )
    func push(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.follow()
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
        contract.ask { $0.report(3, wake.id, .newData) }
        let events = contract.followed()
        #expect(events.map(\.kind) == [.registered, .push, .launched, .result])
        #expect(Set(events.map(\.device)).count == 1 && events.first?.device?.isEmpty == false)
        #expect(Set(events.map(\.topic)).count == 1 && events.first?.topic.isEmpty == false)
        #expect(events.dropFirst().allSatisfy { $0.apnsID == events.last?.apnsID && $0.apnsID != nil })
        #expect(events[2].wake != nil && events[2].wake == events[3].wake && events[1].wake == nil)
        #expect(events.allSatisfy { $0.at == contract.wall })
        #expect(events.map(\.disposition) == [nil, "launched", nil, nil])
        #expect(events.map(\.outcome) == [nil, nil, nil, "newData"])
        #expect(events.map(\.detail) == [nil, nil, "attempt 1, coalesced 0", nil])
    }

    @Test("A refused push is reported with its reason, and a discarded one, too", arguments: EngineKind.all)
    func refused(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1, .passive) }
        contract.follow()
        contract.ask { $0.push(2, 1, topic: 1) }
        let refused = try #require(contract.followed().first)
        #expect(refused.kind == .refused && refused.reason == "DeviceTokenNotForTopic")
        #expect(refused.device != nil && refused.apnsID != nil && refused.wake == nil)
        contract.ask { $0.push(3, 2, expiration: contract.wall / 1000 - 1) }
        let events = contract.followed()
        #expect(events.map(\.kind) == [.registered, .push, .discarded])
        #expect(events.map(\.reason) == [nil, nil, "expired"])
        contract.ask { $0.push(4, 1, isDryRun: true) }
        contract.ask { $0.push(5, 1, topic: 1, isDryRun: true) }
        #expect(contract.followed().isEmpty, "a dry run is nothing that happened")
    }

    @Test("An event is reported only once it is durable, never if its commit failed", arguments: EngineKind.onCommand)
    func durable(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.follow()
        contract.step { $0.push(2, 1) }
        #expect(contract.followed().isEmpty)
        contract.settle()
        #expect(contract.followed().map(\.kind) == [.registered, .push, .launched])
        contract.failNextCommit()
        contract.step { $0.push(3, 2) }
        contract.settle()
        #expect(contract.word(3) == "ServiceUnavailable")
        #expect(!contract.followed().contains { $0.kind == .push || $0.kind == .launched })
    }
}
