import Engine
import Gateway
import Testing
import WakeGateTestKit
import Wire

@Suite("Answers from rows that other transactions have written", .timeLimit(.minutes(15)))
struct AnswersFromRowsTests {
    @Test("A repeated push that changes nothing is answered after a commit, because one server may have its row alone")
    func repeatedPush() throws {
        let scene = ScriptedScene()
        let store = scene.store
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.push(1, 1, clientID: 7) }
        let first = try scene.findNothing()
        _ = scene.heard { _ in }
        var rows = ScriptedScene.noRows
        rows.devices = store.written
        #expect(rows.devices.count == 1)
        store.replies.append(.failed(first, .refused(StoreError(message: "No standby has confirmed the commit."))))
        #expect(scene.heard { $0.push(2, 1, clientID: 7) }.compactMap(\.answered) == [1])
        let second = try #require(store.loads.last)
        store.replies.append(.loaded(second, rows))
        #expect(scene.heard { _ in }.isEmpty)
        #expect(store.written.isEmpty, "the commit changes nothing")
        store.replies.append(.committed(second, endedElsewhere: []))
        #expect(scene.heard { _ in }.compactMap(\.answered) == [2])
    }
}
