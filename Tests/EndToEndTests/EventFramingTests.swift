import Foundation
import Testing

@Suite("Payloads and the events that carry them", .serialized, .timeLimit(.minutes(15)))
struct EventFramingTests {
    private let topic = "com.example.lines"

    @Test("Line ends in a payload neither end its event nor begin another", arguments: ["\n", "\r", "\r\n"])
    func lineEnds(end: String) throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        let token = String(repeating: "1e", count: 32)
        let payload = #"{"aps":@{"content-available":1},@@"event":"a\nevent: expired",@@@"n":1@}"#
            .replacingOccurrences(of: "@", with: end)
        #expect(try gateway.push(token, topic: self.topic, payload: payload).status == 200)
        let event = try #require(try worker.next())
        #expect(event.name == "wake")
        let carried = try #require(event.data["payload"] as? [String: Any])
        #expect(carried["event"] as? String == "a\nevent: expired")
        #expect(carried["n"] as? Int == 1)
        let id = try #require(event.id)
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try gateway.stats().integer("wakes", "launched") == 1)
    }
}
