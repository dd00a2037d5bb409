import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: the list of pushes", .timeLimit(.minutes(15)))
struct PushListContractTests {
    /// A list, page by page: the devices' numbers and what became of their pushes.
    private func list(
        _ contract: EngineContract,
        _ from: Int,
        _ fill: (inout PushQuestion) -> Void = { _ in }
    ) throws -> [String] {
        var (request, after, lines) = (from, PushPlace?.none, [String]())
        while true {
            contract.ask {
                $0.allPushes(request) {
                    fill(&$0)
                    $0.after = after
                }
            }
            #expect(contract.answer(request) == "200")
            #expect(contract.answerCount(request) == 1)
            var index = 0
            while case let token = contract.member(request, "pushes", "\(index)", "device"), !token.isEmpty {
                let outcome = contract.member(request, "pushes", "\(index)", "outcome")
                let number = try #require((0...40).first { EngineRig.token($0).hex == token })
                lines.append("\(number) \(outcome)")
                index += 1
            }
            let next = contract.member(request, "next")
            guard next != "null" else { return lines }
            after = PushPlace(next)
            try #require(after != nil, "\(next)")
            request += 1
            try #require(request < from + 90, "a list ends")
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
    }

    @Test("Pushes of one moment have an order of their own, which pages keep", arguments: EngineKind.all)
    func moment(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { for device in 1...30 { $0.push(100 + device, device) } }
        let all = try self.list(contract, 1000)
        #expect(Set(all) == Set((1...30).map { "\($0) pending" }) && all.count == 30)
        for limit in [1, 7, 29, 30] {
            #expect(try self.list(contract, 2000 + limit * 100) { $0.limit = limit } == all)
        }
    }

    @Test("A list is of what became of pushes", arguments: EngineKind.all)
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
            #expect(try self.list(contract, 200 + place * 100) { ($0.outcome, $0.limit) = (word, 1) } == [line])
        }
        let wake = try contract.lastWake()
        contract.ask { $0.report(41, wake.id, .newData) }
        #expect(try self.list(contract, 900) { $0.outcome = "completed" } == ["1 completed"])
        #expect(try self.list(contract, 1000) { $0.outcome = "exhausted" } == [])
    }

    @Test("A place in the list is read as it was written, and nothing else is a place")
    func places() {
        for text in ["0.1.2.3", "-5.ffffffffffffffff.0.a0", "1700000000000.1.2.3"] {
            #expect(PushPlace(text)?.text == text)
        }
        for text in [
            "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.G", "1.2.3.0A", "01.2.3.4", "+1.2.3.4", "1..2.3", "1.-2.3.4",
        ] {
            #expect(PushPlace(text) == nil, "\(text)")
        }
    }
}
