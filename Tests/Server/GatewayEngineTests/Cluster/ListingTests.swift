import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Lists over the devices of a shared store")
struct ListingTests {
    private func scene() -> ScriptedScene {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0), EngineRig.topicName(1)])
        _ = scene.heard { _ in }
        return scene
    }

    /// Returns an empty reply to a read; if `end` is given, there are more devices after it.
    private func nothing(_ number: TransactionNumber, upTo end: Int?) -> ClusterReply {
        var loaded = ScriptedScene.noRows
        loaded.sliceEnd = end.map { EngineRig.token($0) }
        return .loaded(number, loaded)
    }

    private func list(_ request: Int, topic: Int, of requests: Requests) {
        requests.devices(request) { $0.topic = EngineRig.topicName(topic) }
    }

    @Test("Lists are read in slices by turns: one over a huge table delays no other")
    func turns() throws {
        let scene = self.scene()
        #expect(scene.heard { self.list(1, topic: 0, of: $0) }.isEmpty)
        #expect(scene.store.reads.map(\.topics) == [[0]])
        #expect(scene.heard { self.list(2, topic: 1, of: $0) }.isEmpty)
        #expect(scene.store.reads.count == 1, "one slice at a time")
        scene.store.replies.append(self.nothing(scene.store.reads[0].number, upTo: 7))
        #expect(scene.heard { _ in }.isEmpty)
        #expect(scene.store.reads.map(\.topics) == [[0], [1]])
        scene.store.replies.append(self.nothing(scene.store.reads[1].number, upTo: nil))
        let heard = scene.heard { _ in }
        #expect(heard.answer(2) == "200" && heard.count == 1)
        #expect(scene.store.reads.map(\.topics) == [[0], [1], [0]])
        #expect(scene.store.reads[2].after == EngineRig.token(7), "after the slice")
        // No device of another topic is visible: the list ends without a next page.
        scene.store.replies.append(self.nothing(scene.store.reads[2].number, upTo: nil))
        let whole = scene.heard { _ in }.text(1)
        #expect(whole.contains("\"next\":null"), "\(whole)")
    }

    @Test("A list of tokens with a prefix ends after them, even if the slices of the table hold no such device")
    func prefix() throws {
        let scene = self.scene()
        let digits = Array("00000000000000".utf8)
        let prefix = try #require(digits.withByteView { TokenPrefix(hex: $0) })
        _ = scene.heard { requests in
            requests.devices(1) {
                $0.topic = EngineRig.topicName(0)
                $0.prefix = prefix
            }
        }
        scene.store.replies.append(self.nothing(try #require(scene.store.reads.last).number, upTo: 4))
        #expect(scene.heard { _ in }.isEmpty)
        scene.store.replies.append(self.nothing(try #require(scene.store.reads.last).number, upTo: 256))
        #expect(scene.heard { _ in }.compactMap(\.answered) == [1])
        #expect(scene.store.reads.count == 2)
    }

    @Test("A list by waiting time reads only devices with a pending push")
    func pending() {
        let scene = self.scene()
        _ = scene.heard { $0.devices(1) { $0.order = .waiting } }
        #expect(scene.store.reads.isEmpty && scene.store.readsOfPending.count == 1)
    }

    @Test("At most 32 lists are open: one more is refused with the limit and a remedy, until one has ended")
    func bound() throws {
        let scene = self.scene()
        let heard = scene.heard { requests in for number in 1...33 { self.list(number, topic: 0, of: requests) } }
        #expect(heard.answer(33).hasPrefix("503") && heard.count == 1, "the last list alone is answered")
        #expect(heard.text(33).contains("at most 32 lists"), "\(heard.text(33))")
        #expect(heard.text(33).contains("again when one has been answered"))
        scene.store.replies.append(self.nothing(scene.store.reads[0].number, upTo: nil))
        #expect(scene.heard { _ in }.answer(1) == "200")
        #expect(scene.heard { self.list(34, topic: 0, of: $0) }.isEmpty)
        #expect(scene.heard { self.list(35, topic: 0, of: $0) }.count == 1)
    }

    @Test("Requests for counts are limited while the database does not answer")
    func counts() throws {
        let scene = self.scene()
        let heard = scene.heard { requests in for number in 1...65_537 { requests.statistics(number) } }
        // The sample of a second is one of the requests.
        #expect(heard.compactMap(\.answered) == [65_536, 65_537])
        #expect(heard.answer(65_536).hasPrefix("503"))
        #expect(scene.heard { $0.statistics(65_538) }.count == 1)
    }

    @Test("A list is ended after 30 seconds, and the answer names the limit and a remedy")
    func deadline() throws {
        let scene = self.scene()
        #expect(scene.heard { self.list(1, topic: 0, of: $0) }.isEmpty)
        var heard: [EngineOutput] = []
        for second in 1...31 where heard.isEmpty {
            let read = try #require(scene.store.reads.last)
            scene.store.replies.append(self.nothing(read.number, upTo: second))
            heard = scene.wait(milliseconds: 1000)
            #expect(heard.isEmpty == (second < 30), "after \(second) s")
        }
        #expect(heard.answer(1).hasPrefix("503"))
        #expect(heard.text(1).contains("for 30 s. Ask for less"), "\(heard.text(1))")
    }
}
