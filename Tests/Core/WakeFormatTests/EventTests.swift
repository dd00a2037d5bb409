import Testing
import Wire

@Suite("Live events", .timeLimit(.minutes(15)))
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

    @Test("Every event reads back unchanged, and is one line", arguments: Self.events)
    func back(event: LiveEvent) throws {
        let (name, data) = self.fields(String(decoding: LiveNews.event(event).wireForm, as: UTF8.self))
        #expect(name == event.kind.rawValue)
        #expect(LiveNews(name: name, data: Array(data.utf8)) == .event(event))
        #expect(data.contains(#""apnsID":null"#))
    }

    @Test("Missed events are reported as a count")
    func missed() {
        let (name, data) = self.fields(String(decoding: LiveNews.missed(7).wireForm, as: UTF8.self))
        #expect(name == "missed" && data == #"{"count":7}"#)
        #expect(LiveNews(name: name, data: Array(data.utf8)) == .missed(7))
    }

    @Test(
        "Events that no gateway sends are ignored",
        arguments: [
            ("missed", "{}"), ("missed", "7"), ("push", ""), ("push", #"{"at":1,"event":"push"}"#),
            ("sleep", #"{"at":1,"event":"sleep","topic":"a"}"#), ("push", #"{"at":"1","event":"push","topic":"a"}"#),
        ]
    )
    func nothing(name: String, data: String) { #expect(LiveNews(name: name, data: Array(data.utf8)) == nil) }
}

@Suite("Events of a worker's stream as a worker reads them")
struct StreamEventTests {
    @Test("An event that a wake's deadline is near may lack the time left, but not the deadline")
    func expiring() {
        let brief = Array(#"{"wake":"w","deadline":9000}"#.utf8)
        #expect(StreamEvent(name: "expiring", data: brief) == .expiring(wake: "w", deadline: 9000, timeLeft: nil))
        #expect(StreamEvent(name: "expiring", data: Array(#"{"wake":"w"}"#.utf8)) == nil)
    }

    @Test("An expiration names its wake, even without a known reason", arguments: ["", #","reason":"boredom""#])
    func expired(reason: String) {
        let data = Array(#"{"wake":"w"\#(reason)}"#.utf8)
        #expect(StreamEvent(name: "expired", data: data) == .expired(wake: "w", nil))
    }

    @Test("An event of conditions names its device and has every condition")
    func conditions() throws {
        let data = #"{"device":"ab","appState":"active","batteryLevel":0.5}"#
        let read = StreamEvent(name: "conditions", data: Array(data.utf8))
        guard case .conditions("ab", let fields)? = read else {
            Issue.record("it is read as \(String(describing: read))")
            return
        }
        #expect(fields["appState"] == .string("active"))
        #expect(StreamEvent(name: "conditions", data: Array(#"{"appState":"active"}"#.utf8)) == nil)
    }

    @Test("Events with unknown names are ignored, whatever their data", arguments: ["message", "", "Wake", "extended"])
    func unknown(name: String) {
        for data in ["", "{}", #"{"wake":"w"}"#] {
            #expect(StreamEvent(name: name, data: Array(data.utf8)) == .unknown)
        }
    }

    @Test("Unreadable data is not an event", arguments: ["", "[]", "{}", #"{"wake":7}"#, #"{"wake":"w""#])
    func unreadable(data: String) {
        #expect(StreamEvent(name: "wake", data: Array(data.utf8)) == nil)
        #expect(StreamEvent(name: "expired", data: Array(data.utf8)) == nil)
    }
}
