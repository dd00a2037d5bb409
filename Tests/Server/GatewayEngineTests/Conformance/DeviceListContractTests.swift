import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: the list of devices", .timeLimit(.minutes(15)))
struct DeviceListContractTests {
    /// The devices of a list, page by page, each as its number and its state.
    private func list(
        _ contract: EngineContract,
        _ from: Int,
        _ caller: Caller = .gateway,
        _ fill: (inout DeviceQuestion) -> Void = { _ in }
    ) throws -> [String] {
        var (request, after, lines) = (from, DeviceToken?.none, [String]())
        while true {
            contract.ask {
                $0.caller = caller
                $0.devices(request) {
                    fill(&$0)
                    $0.after = after
                }
            }
            #expect(contract.answer(request) == "200")
            var index = 0
            while case let token = contract.member(request, "devices", "\(index)", "token"), !token.isEmpty {
                let state = contract.member(request, "devices", "\(index)", "state")
                let number = (1...40).first { EngineRig.token($0).hex == token }
                lines.append("\(try #require(number)) \(state)")
                index += 1
            }
            let next = contract.member(request, "next")
            guard next != "null" else { return lines }
            after = next.withByteView { DeviceToken(hex: $0) }
            try #require(after != nil)
            request += 1
            try #require(request < from + 50, "a list ends")
        }
    }

    private static func inOrder(_ numbers: some Sequence<Int>) -> [Int] {
        numbers.sorted { EngineRig.token($0).isBefore(EngineRig.token($1)) }
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

    @Test("A list is of one state, or of one hold", arguments: EngineKind.all)
    func states(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, slots: 1)
            for device in 1...4 { $0.register(10 + device, device) }
            $0.conditions(20, 2) {
                $0.batteryLevel = 0.02
                $0.charging = false
            }
        }
        // The first has the only slot, the second is held by its battery, the third by the slot.
        contract.ask { $0.push(30, 1) }
        contract.ask { for device in 2...3 { $0.push(30 + device, device) } }
        #expect(Set(try self.list(contract, 100)) == ["1 inFlight", "2 held", "3 held", "4 idle"])
        #expect(try self.list(contract, 200) { $0.state = .inFlight } == ["1 inFlight"])
        #expect(try self.list(contract, 300) { $0.state = .idle } == ["4 idle"])
        #expect(try self.list(contract, 400) { $0.state = .held } == Self.inOrder([2, 3]).map { "\($0) held" })
        #expect(try self.list(contract, 500) { $0.hold = .battery } == ["2 held"])
        #expect(try self.list(contract, 600) { $0.hold = .worker } == ["3 held"])
        #expect(try self.list(contract, 700) { $0.state = .pending } == [])
        let wake = try contract.lastWake()
        contract.ask { $0.report(40, wake.id, .newData) }
        contract.ask { $0.push(41, 1) }
        // Launches of a device are a minute apart: what comes now waits for its time.
        #expect(try self.list(contract, 800) { $0.state = .pending } == ["1 pending"])
        contract.ask { $0.devices(900) { $0.state = .pending } }
        #expect(contract.member(900, "devices", "0", "eligibleAt") != "null")
        #expect(contract.member(900, "devices", "0", "held", "0").isEmpty)
    }

    @Test("Where a page ends, a caller of a topic is told no device of another", arguments: EngineKind.all)
    func foreignEnds(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...1100 { $0.register(10_000 + device, device) } }
        contract.ask { for device in 1101...1103 { $0.register(20_000 + device, device, topic: 1) } }
        let own = Self.inOrder(1101...1103).map { EngineRig.token($0).hex }
        let stranger = try Caller.ofTopics([1])
        var (after, found) = (DeviceToken?.none, [String]())
        for request in 20...30 {
            contract.ask {
                $0.caller = stranger
                $0.devices(request) {
                    $0.state = .idle
                    $0.limit = 2
                    $0.after = after
                }
            }
            for index in 0..<2 { found.append(contract.member(request, "devices", "\(index)", "token")) }
            let next = contract.member(request, "next")
            guard next != "null" else { break }
            #expect(own.contains(next), "another's device")
            after = next.withByteView { DeviceToken(hex: $0) }
        }
        #expect(found.filter { !$0.isEmpty } == own)
    }

    @Test("A list whose devices are few among many goes on where a page ends without any", arguments: EngineKind.all)
    func sparse(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...1100 { $0.register(10_000 + device, device) } }
        let order = Self.inOrder(1...1100)
        let last = try #require(order.last)
        contract.ask { $0.push(1, last) }
        var after: DeviceToken?
        var pages: [String] = []
        for request in 20...30 {
            contract.ask {
                $0.devices(request) {
                    $0.state = .held
                    $0.after = after
                }
            }
            pages.append(contract.member(request, "devices", "0", "token"))
            after = contract.member(request, "next").withByteView { DeviceToken(hex: $0) }
            if after == nil { break }
        }
        #expect(pages.count == 2 && pages.last == EngineRig.token(last).hex, "\(pages)")
    }
}
