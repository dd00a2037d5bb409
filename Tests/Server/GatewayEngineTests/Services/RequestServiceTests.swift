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

    @Test("No stream begins for a topic beyond the limit, which is counted")
    func subscriptions() {
        var configuration = EngineRig.open()
        configuration.topicsMax = 1
        let rig = ServiceRig(configuration)
        rig.perform { $0.push(1, 1) }
        _ = rig.heard()
        rig.perform { $0.subscribe(3, topic: 1) }
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        #expect(rig.limits.met(rig.dispatcher).map(\.name) == ["topicsMax"])
    }
}
