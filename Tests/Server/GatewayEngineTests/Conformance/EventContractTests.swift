import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: what those are told who follow what happens", .timeLimit(.minutes(15)))
struct EventContractTests {
    @Test(
        "The way of a push is told in its order, each step once, with who and what it is of",
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

    @Test("A refused push is told with its reason, one that is discarded with why", arguments: EngineKind.all)
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

    @Test("Nothing is told before it is durable, and nothing that never was", arguments: EngineKind.onCommand)
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

    @Test(
        "Who comes later hears what happens from then on, and after the last has gone nothing is kept",
        arguments: EngineKind.all
    )
    func later(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1, .passive) }
        contract.follow()
        #expect(contract.followed().isEmpty)
        contract.followNoMore()
        contract.ask { $0.push(2, 2, .passive) }
        contract.follow()
        contract.ask { $0.push(3, 3, .passive) }
        #expect(contract.followed().map(\.kind) == [.registered, .push])
    }
}
