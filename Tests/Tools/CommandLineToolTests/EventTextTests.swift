import CommandLineTool
import Testing
import Wire
import wakegate

@Suite("What is shown of what happens")
struct EventTextTests {
    private static let token = String(repeating: "0badcafe", count: 8)

    private func event(_ kind: LiveEvent.Kind, _ change: (inout LiveEvent) -> Void = { _ in }) -> String {
        var event = LiveEvent(at: 1_763_709_599_001, kind, topic: "com.example.app")
        event.device = Self.token
        change(&event)
        return EventText.line(.event(event))
    }

    @Test("Each event is a line: when, what, how it went, and of whom")
    func lines() {
        let (at, of) = ("2025-11-21T07:20:00Z", "com.example.app  \(Self.token)")
        let push = self.event(.push) {
            $0.disposition = "scheduled"
            $0.apnsID = "X"
        }
        #expect(push == "\(at) push        scheduled  \(of)  apns-id X")
        let launched = self.event(.launched) {
            $0.detail = "attempt 1, coalesced 0"
            $0.wake = "W"
        }
        #expect(launched == "\(at) launched    attempt 1, coalesced 0  \(of)  wake W")
        #expect(self.event(.result) { $0.outcome = "failed" } == "\(at) result      failed  \(of)")
        #expect(self.event(.refused) { $0.reason = "BadTopic" } == "\(at) refused     BadTopic  \(of)")
        #expect(self.event(.registered) == "\(at) registered  \(of)")
        #expect(self.event(.paused) { $0.device = nil } == "\(at) paused      com.example.app")
    }

    @Test("What was missed is told, and nothing that a terminal would obey is shown")
    func others() {
        #expect(EventText.line(.missed(7)).contains("7 or more events were not shown"))
        #expect(self.event(.discarded) { $0.detail = "a\u{1b}[2Jb\n" }.contains("a?[2Jb?"))
    }

    @Test("What is followed is what the options name")
    func path() throws {
        func path(_ line: String) throws -> String? {
            let words = line.split(separator: " ").map(String.init)
            guard case .run(let parsed) = try CommandParser(CommandTable.all).parse(words) else { return nil }
            return EventsCommand.path(parsed)
        }
        #expect(try path("events --json") == "/v1/events")
        let all = try path("events --outcome refused --device ab --topic a.b")
        #expect(all == "/v1/events?topic=a.b&device=ab&outcome=refused")
    }
}
