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

    private static let separators = "a\u{2028}b\u{2029}c\u{85}d"
    private static let payload = #"{"aps":{"content-available":1},"text":"\#(EventFramingTests.separators)"}"#

    @Test("No event holds a character at which some reader of lines would split it, and its strings are the same")
    func lineSeparators() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        let token = String(repeating: "2e", count: 32)
        let answer = try gateway.edge(
            "/3/device/\(token)",
            "-H",
            "apns-topic: \(self.topic)",
            "-H",
            "apns-collapse-id: \(Self.separators)",
            "--data-binary",
            Self.payload
        )
        #expect(answer.status == 200)
        var lines: [String] = []
        while let line = try worker.process.line(), !line.isEmpty || lines.isEmpty {
            if !line.isEmpty, !line.hasPrefix(":") { lines.append(line) }
        }
        let data = try #require(lines.first { $0.hasPrefix("data: ") }?.dropFirst(6))
        let raw = lines.joined().unicodeScalars
        #expect(raw.allSatisfy { ![0x85, 0x2028, 0x2029].contains($0.value) })
        let wake = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any] ?? [:]
        #expect((wake["payload"] as? [String: Any])?["text"] as? String == Self.separators)
        #expect(wake["collapseID"] as? String == Self.separators)
    }

    @Test("A payload that grows as it is written reaches a worker of the SDK whole")
    func growth() throws {
        let gateway = try RunningGateway()
        let script = "read -r payload; echo ${#payload}"
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        let beginning = #"{"aps":{"content-available":1},"text":""#
        let count = (4096 - beginning.utf8.count - 2) / 2
        let payload = beginning + String(repeating: "\u{85}", count: count) + #""}"#
        let token = String(repeating: "3e", count: 32)
        #expect(try gateway.push(token, topic: self.topic, payload: payload).status == 200)
        #expect(try worker.line() == "\(beginning.utf8.count + 2 + 6 * count)")
        try gateway.eventually("a result") { try gateway.stats().integer("wakes", "results", "newData") == 1 }
    }
}
