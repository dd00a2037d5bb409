import Engine
import Gateway
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
    func countsOnce(kind: EngineKind) throws {
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

    @Test("The simulator reproduces the what-if from an exported trace", arguments: EngineKind.all)
    func trace(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
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
}
