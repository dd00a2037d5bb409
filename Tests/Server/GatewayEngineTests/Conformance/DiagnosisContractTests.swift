import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("The contract of an engine: why, and a dry run at the same moment", .timeLimit(.minutes(15)))
struct DiagnosisContractTests {
    @Test("Without a push, explain says what a dry run is answered", arguments: EngineKind.all)
    func nothingPending(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let topic = EngineRig.topicName(0)
        let would = "Nothing is pending, and a push of priority 5 that comes now would"
        var request = 10
        /// What a dry run and explain say.
        func both(_ change: (Requests) -> Void) -> (word: String?, hold: String?, why: String) {
            request += 10
            contract.ask(change)
            contract.ask { $0.push(request, 1, isDryRun: true) }
            contract.ask { $0.explain(request + 1, 1) }
            #expect(contract.text(request + 1).contains("\"held\":[]"), "nothing is pending")
            return (contract.word(request), contract.reply(request)?.hold, contract.member(request + 1, "why"))
        }
        var told = both { $0.register(1, 1) }
        #expect(told.hold == "worker")
        #expect(told.why.hasPrefix("\(would) wait: no worker is subscribed to \(topic): start one "))
        told = both { $0.subscribe(2) }
        #expect(told.word == "launched" && told.why == "Nothing is pending, and the next push may launch at once.")
        told = both { $0.conditions(3, 1) { $0.backgroundRefresh = .restricted } }
        #expect(told.hold == "backgroundRefresh")
        #expect(told.why.hasPrefix("\(would) be held because background refresh is restricted, which the user "))
        told = both { requests in
            requests.conditions(4, 1) { report in
                report.backgroundRefresh = .available
                report.network = false
                report.batteryLevel = 0
            }
        }
        #expect(told.hold == "network")
        #expect(told.why.hasPrefix("\(would) be held for 2 reasons, until all of them have ended: the device has no "))
        #expect(told.why.contains("; the battery is at 0 %, below the critical "))
        told = both { $0.conditions(5, 1) { $0.appState = .active } }
        #expect(told.word == "launched" && told.why == "Nothing is pending, and the next push may launch at once.")
    }

    @Test("After a launch, explain says until when a dry run waits", arguments: EngineKind.all)
    func interval(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
        contract.ask { $0.report(3, wake.id, .newData) }
        contract.ask {
            $0.push(4, 1, isDryRun: true)
            $0.explain(5, 1)
        }
        #expect(contract.word(4) == "scheduled" && contract.reply(4)?.hold == nil)
        #expect(contract.reply(4)?.eligibleAt == (contract.wall + 60_000 + 999) / 1000)
        let why = contract.member(5, "why")
        #expect(why.hasPrefix("Nothing is pending, and a push of priority 5 that comes now would wait until "))
        #expect(why.hasSuffix("and launches of priority 5 are 60 s apart."), "\(why)")
    }
}
