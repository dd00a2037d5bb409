import CommandLineTool
import HTTPClient
import Testing
import Wire

@Suite("No output of the command line contains terminal control characters")
struct TerminalFilterTests {
    /// A name that would move the cursor, reverse the following text, clear the screen and begin a new line.
    private static let hostile = #"a\u202eb\u009b2J\u001b[2J\u2066c\nforged"#
    private static let sanitized = "a?b?2J?[2J?c?forged"

    /// Answers that contain the name, or the name alone, each with its text and the number of lines of the text.
    private static let texts: [(name: String, lines: Int, json: String, text: @Sendable (JSONValue) -> String)] = [
        (
            "tasks", 2, #"{"tasks":[{"identifier":"NAME","progress":{"title":"NAME","completed":1}}]}"#,
            { TaskText.all($0) }
        ),
        (
            "explanation", 0, #"{"why":"NAME","token":"NAME","recent":[{"event":"NAME","detail":"NAME"}]}"#,
            { ExplainText.text($0) }
        ),
        ("totals", 0, #"{"since":"NAME","gateways":[{"name":"NAME"}]}"#, { StatsText.totals($0) }),
        (
            "topics and webhooks", 3, #"{"topics":[{"topic":"NAME","webhook":{"lastError":"NAME","failures":1}}]}"#,
            { StatsText.topics($0) }
        ),
        ("topic list", 2, #"{"topics":[{"topic":"NAME"}]}"#, { TopicCommands.text($0) }),
        (
            "device list", 2, #"[{"topic":"NAME","token":"NAME"}]"#,
            { DeviceListCommand.text($0.elements, withHeader: true) }
        ),
        (
            "push list", 2, #"[{"topic":"NAME","device":"NAME"}]"#,
            { PushListCommand.text($0.elements, withHeader: true) }
        ),
        ("fault rules", 2, #"{"rules":[{"id":"NAME","rule":{"when":{"topic":"NAME"}}}]}"#, { FaultCommands.table($0) }),
        ("sessions", 2, #"[{"session":"NAME","topic":"NAME"}]"#, { TransferText.sessions($0.elements) }),
        ("reload", 2, #"{"changed":[{"key":"NAME","old":"NAME","new":"NAME"}]}"#, { ReloadCommand.text($0) }),
        (
            "push steps", 0, #"{"events":[{"event":"NAME","detail":"NAME"}]}"#,
            { push in
                var history = PushHistoryText("x")
                return history.newLines(push).joined(separator: "\n")
            }
        ),
        (
            "refusal", 0, "{}",
            { _ in
                let body = #"{"reason":"NAME","message":"NAME"}"#.replacing("NAME", with: hostile)
                return GatewayAnswer.refusal(HTTPResponse(status: 400, body: Array(body.utf8)))
            }
        ),
        (
            "view", 0, #""NAME""#,
            { name in
                var line = StyledLine(name.text ?? "")
                line.append(column: name.text ?? "", 40)
                return line.text(width: 200, isColoured: false)
            }
        ),
        (
            "worker's log", 1, #""NAME""#,
            { name in
                var queue = OutputQueue()
                queue.appendOwn(name.text ?? "")
                return String(decoding: queue.next(1000), as: UTF8.self)
            }
        ),
        (
            "prefix of a command's output", 1, #""NAME""#,
            { name in
                var lines = OutputLines(prefix: name.text ?? "")
                return lines.received(Array("text\n".utf8)[...]).map { String(decoding: $0, as: UTF8.self) }.joined()
            }
        ),
    ]

    @Test("Tables, lists, explanations, errors, views and logs are filtered")
    func filtered() throws {
        for (name, count, json, makeText) in Self.texts {
            let text = makeText(try JSONReader.read(json.replacing("NAME", with: Self.hostile)))
            #expect(text.contains(Self.sanitized), "\(name): \(text.debugDescription)")
            #expect(text.unicodeScalars.allSatisfy { TerminalText.isShown($0) || $0 == "\n" }, "\(name)")
            #expect(!text.contains("\nforged"), "\(name)")
            if count > 0 { #expect(text.split(separator: "\n").count == count, "\(name): \(text)") }
        }
    }
}
