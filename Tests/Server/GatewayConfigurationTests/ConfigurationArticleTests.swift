import Foundation
import Gateway
import Testing
import WakeGateTestKit

@Suite("The article about the configuration")
struct ConfigurationArticleTests {
    /// A row of one of its tables.
    private struct Row {
        let key: String
        let summary: String
        let requirement: String
        let defaultText: String
        let example: String

        init?(_ line: Substring) {
            // A bar within a cell is escaped.
            let cells = line.replacing("\\|", with: "\u{0}").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces).replacing("\u{0}", with: "|")
            }
            guard cells.count == 5, cells[0].hasPrefix("`"), cells[4].hasPrefix("`") else { return nil }
            self.key = String(cells[0].dropFirst().dropLast())
            self.summary = cells[1]
            self.requirement = cells[2]
            self.defaultText = cells[3]
            self.example = String(cells[4].dropFirst().dropLast())
        }
    }

    private func article() throws -> String {
        let path = "Sources/Server/Gateway/Gateway.docc/Configuration.md"
        return String(decoding: try Data(contentsOf: Checkout.root.appendingPathComponent(path)), as: UTF8.self)
    }

    private func rows() throws -> [Row] { try self.article().split(separator: "\n").compactMap { Row($0) } }

    /// What the article says of every key, but its example: the bounds have an article of their own.
    private static var wanted: [String] {
        ConfigurationKey.all.filter { !$0.name.hasPrefix("limits.") }.map {
            self.line($0.name, $0.summary, $0.requirement, $0.defaultText)
        } + [
            self.line(
                "topics.TOPIC.\(PermittedTasksKey.name)",
                PermittedTasksKey.summary,
                PermittedTasksKey.requirement,
                "null"
            )
        ]
            + WebhookKey.all.map {
                self.line("topics.TOPIC.webhook.\($0.name)", $0.summary, $0.requirement, $0.defaultText)
            }
    }

    private static func line(_ key: String, _ summary: String, _ requirement: String, _ value: String?) -> String {
        "| `\(key)` | \(summary) | \(requirement) | \(value.map { "`\($0)`" } ?? "none") |"
    }

    @Test("Its tables have every key of the code with what it takes and its default, in the code's order, and no other")
    func tables() throws {
        let rows = try self.rows().map {
            "| `\($0.key)` | \($0.summary) | \($0.requirement) | \($0.defaultText) |"
        }
        #expect(rows == Self.wanted, "the tables should be:\n\(Self.wanted.joined(separator: "\n"))")
    }

    @Test("Each example is a value that its key takes, from a file and from --set")
    func examples() throws {
        for row in try self.rows() {
            let example = row.example
            #expect(example != String(row.defaultText.dropFirst().dropLast()), "\(row.key): its default is no example")
            let key = row.key.replacing("TOPIC", with: "com.example.app")
            // A webhook is refused without its URL.
            let others =
                row.key.contains(".webhook.") && !row.key.hasSuffix(".url")
                ? ["topics.com.example.app.webhook.url=https://hooks.example.com/wake"] : []
            #expect(throws: Never.self, "\(row.key)") {
                _ = try ConfigurationLoader.load(file: nil, settings: others + ["\(key)=\(example)"])
            }
        }
    }
}
