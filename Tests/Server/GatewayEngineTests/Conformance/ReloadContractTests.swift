import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: another policy", .timeLimit(.minutes(15)))
struct ReloadContractTests {
    @Test(
        "What may launch earlier by another policy launches earlier, with nothing else happening",
        arguments: EngineKind.all
    )
    func earlier(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        // More devices than one piece of a sweep has.
        let devices = Array(1...300)
        contract.ask { $0.subscribe(1, slots: 1000) }
        contract.ask { for device in devices { $0.push(1000 + device, device) } }
        let first = contract.wakes.map(\.id)
        try #require(first.count == devices.count)
        contract.ask { for (number, wake) in first.enumerated() { $0.report(2000 + number, wake, .newData) } }
        contract.ask { for device in devices { $0.push(3000 + device, device) } }
        contract.pass(seconds: 20)
        #expect(contract.wakes.count == devices.count, "launches are a minute apart")
        var policy = EngineContract.policy
        policy[0] = (.launchInterval, 30)
        contract.step { $0.configure(EngineRig.open(policy)) }
        contract.settle()
        #expect(contract.wakes.count == devices.count)
        for _ in 0..<3 { contract.pass(seconds: 5) }
        #expect(contract.wakes.count == 2 * devices.count, "launches are half a minute apart")
    }
}
