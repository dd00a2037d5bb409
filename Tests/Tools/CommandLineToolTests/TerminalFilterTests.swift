import CommandLineTool
import HTTPClient
import Testing
import Wire

@Suite("No output of the command line contains terminal control characters")
struct TerminalFilterTests {
    /// A name that would move the cursor, reverse the following text, clear the screen and begin a new line.
    private static let hostile = #"a\u202eb\u009b2J\u001b[2J\u2066c\nforged"#
    private static let sanitized = "a?b?2J?[2J?c?forged"

    private static func value(_ json: String) throws -> JSONValue {
        try JSONReader.read(json.replacing("NAME", with: self.hostile))
    }

    private static func rows(_ json: String, _ member: String) throws -> [JSONValue] {
        try self.value(json)[member]?.elements ?? []
    }

    /// Texts that show the name, each with its number of lines.
    private static let texts: [(name: String, lines: Int, text: @Sendable () throws -> String)] = [
        (
            "tasks", 2,
            {
                TaskText.all(try value(#"{"tasks":[{"identifier":"NAME","progress":{"title":"NAME","completed":1}}]}"#))
            }
        ),
        (
            "explanation", 0,
            {
                ExplainText.text(
                    try value(
                        #"{"why":"NAME","token":"NAME","recent":[{"event":"NAME","detail":"NAME"}]}"#
                    )
                )
            }
        ),
        ("totals", 0, { StatsText.totals(try value(#"{"since":"NAME","gateways":[{"name":"NAME"}]}"#)) }),
        (
            "topics and webhooks", 3,
            {
                StatsText.topics(
                    try value(#"{"topics":[{"topic":"NAME","webhook":{"lastError":"NAME","failures":1}}]}"#)
                )
            }
        ),
        ("topic list", 2, { TopicCommands.text(try value(#"{"topics":[{"topic":"NAME"}]}"#)) }),
        (
            "device list", 2,
            {
                DeviceListCommand.text(
                    try rows(#"{"devices":[{"topic":"NAME","token":"NAME"}]}"#, "devices"),
                    withHeader: true
                )
            }
        ),
        (
            "push list", 2,
            {
                PushListCommand.text(
                    try rows(#"{"pushes":[{"topic":"NAME","device":"NAME"}]}"#, "pushes"),
                    withHeader: true
                )
            }
        ),
        (
            "fault rules", 2,
            {
                FaultCommands.table(try value(#"{"rules":[{"id":"NAME","rule":{"when":{"topic":"NAME"}}}]}"#))
            }
        ),
        (
            "sessions", 2,
            { TransferText.sessions(try rows(#"{"sessions":[{"session":"NAME","topic":"NAME"}]}"#, "sessions")) }
        ),
        ("reload", 2, { ReloadCommand.text(try value(#"{"changed":[{"key":"NAME","old":"NAME","new":"NAME"}]}"#)) }),
        (
            "push steps", 0,
            {
                var history = PushHistoryText("x")
                return history.newLines(try value(#"{"events":[{"event":"NAME","detail":"NAME"}]}"#)).joined(
                    separator: "\n"
                )
            }
        ),
        (
            "refusal", 0,
            {
                let body = #"{"reason":"NAME","message":"NAME"}"#.replacing("NAME", with: hostile)
                return GatewayAnswer.refusal(HTTPResponse(status: 400, body: Array(body.utf8)))
            }
        ),
        (
            "view", 0,
            {
                let name = try value(#"["NAME"]"#).elements.first?.text ?? ""
                var line = StyledLine(name)
                line.append(column: name, 40)
                return line.text(width: 200, isColoured: false)
            }
        ),
        (
            "worker's log", 1,
            {
                var queue = OutputQueue()
                queue.appendOwn(try value(#"["NAME"]"#).elements.first?.text ?? "")
                return String(decoding: queue.next(1000), as: UTF8.self)
            }
        ),
        (
            "prefix of a command's output", 1,
            {
                var lines = OutputLines(prefix: try value(#"["NAME"]"#).elements.first?.text ?? "")
                return lines.received(Array("text\n".utf8)[...]).map { String(decoding: $0, as: UTF8.self) }.joined()
            }
        ),
    ]

    @Test("Tables, lists, explanations, errors, views and logs are filtered")
    func filtered() throws {
        for (name, count, makeText) in Self.texts {
            let text = try makeText()
            #expect(text.contains(Self.sanitized), "\(name): \(text.debugDescription)")
            #expect(text.unicodeScalars.allSatisfy { TerminalText.isShown($0) || $0 == "\n" }, "\(name)")
            #expect(!text.contains("\nforged"), "\(name)")
            if count > 0 { #expect(text.split(separator: "\n").count == count, "\(name): \(text)") }
        }
    }
}
