import Testing
import Wire

@Suite("What is told of what happens", .timeLimit(.minutes(15)))
struct LiveEventTests {
    private static let events: [LiveEvent] = LiveEvent.Kind.allCases.map { kind in
        var event = LiveEvent(at: 1_700_000_000_123, kind, topic: "com.example.app")
        event.device = "00ff"
        event.reason = kind == .refused ? "BadTopic" : nil
        event.detail = "a \"word\"\nand another\u{2028}"
        return event
    }

    private func fields(_ wire: String) -> (name: String, data: String) {
        let lines = wire.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 4 && lines[2].isEmpty && lines[3].isEmpty)
        return (String(lines[0].dropFirst("event: ".count)), String(lines[1].dropFirst("data: ".count)))
    }

    @Test("What is written is read back, whatever it holds, and is one line", arguments: Self.events)
    func back(event: LiveEvent) throws {
        let (name, data) = self.fields(String(decoding: LiveNews.event(event).wireForm, as: UTF8.self))
        #expect(name == event.kind.rawValue)
        #expect(LiveNews(name: name, data: Array(data.utf8)) == .event(event))
        #expect(data.contains(#""apnsID":null"#))
    }

    @Test("What was missed is told as a count")
    func missed() {
        let (name, data) = self.fields(String(decoding: LiveNews.missed(7).wireForm, as: UTF8.self))
        #expect(name == "missed" && data == #"{"count":7}"#)
        #expect(LiveNews(name: name, data: Array(data.utf8)) == .missed(7))
    }

    @Test(
        "What no gateway sends is nothing",
        arguments: [
            ("missed", "{}"), ("missed", "7"), ("push", ""), ("push", #"{"at":1,"event":"push"}"#),
            ("sleep", #"{"at":1,"event":"sleep","topic":"a"}"#), ("push", #"{"at":"1","event":"push","topic":"a"}"#),
        ]
    )
    func nothing(name: String, data: String) { #expect(LiveNews(name: name, data: Array(data.utf8)) == nil) }
}
