import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("Answers to requests", .timeLimit(.minutes(15)))
struct RequestServiceTests {
    @Test("One list of topics is written at a time, and later requests wait")
    func topicLists() {
        let rig = ServiceRig()
        rig.perform {
            $0.topics(1)
            $0.topics(2)
        }
        #expect(rig.answers().isEmpty && rig.requests.isLongListNext)
        let workspace = rig.workspace()
        rig.requests.writeNextLongList(workspace)
        #expect(!rig.requests.isLongListNext, "the budget does not allow another list")
        rig.requests.writeNextLongList(workspace)
        #expect(rig.answers() == ["200"])
        #expect(rig.requests.isLongListNext)
        rig.requests.writeNextLongList(rig.workspace(rig.failure))
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        rig.requests.writeNextLongList(workspace)
        #expect(rig.answers().isEmpty && !rig.requests.isLongListNext)
    }

    @Test("A stream begins before its first wake, and none begins in a shutdown or beyond a limit")
    func subscriptions() throws {
        var configuration = EngineRig.open()
        configuration.topicsMax = 1
        let rig = ServiceRig(configuration)
        rig.perform { $0.push(1, 1) }
        _ = rig.heard()
        rig.perform { $0.subscribe(2) }
        let heard = rig.heard()
        guard heard.count == 2, case .subscribed(2, nil) = heard[0], case .wake(let wake) = heard[1] else {
            throw RigFailure("heard were \(heard)")
        }
        #expect(wake.stream == 2)
        rig.perform { $0.subscribe(3, topic: 1) }
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        #expect(rig.limits.met(rig.dispatcher).map(\.name) == ["topicsMax"])
        rig.requests.drain(rig.workspace())
        rig.perform {
            $0.subscribe(4)
            $0.readiness(5)
        }
        #expect(rig.answers() == ["503 Shutdown", "503 Shutdown"] && rig.room.isDraining)
    }
}
