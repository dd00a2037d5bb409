import Foundation
import Gateway
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

@Suite("The article about the configuration")
struct ConfigurationArticleTests {
    /// A row of a table in the article.
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

    private func rows() throws -> [Row] {
        try Checkout.article("Configuration").split(separator: "\n").compactMap { Row($0) }
    }

    /// The expected text about every key, except its example. Limits are described in another article.
    private static var wanted: [String] {
        GatewayConfiguration.keys.filter { !$0.name.hasPrefix("limits.") }.map {
            self.line($0.name, $0.summary, $0.requirement, $0.defaultText)
        } + [
            self.line(
                "topics.TOPIC.\(PermittedTasksKey.name)",
                PermittedTasksKey.summary,
                PermittedTasksKey.requirement,
                "null"
            )
        ]
            + WebhookConfiguration.keys.map {
                self.line("topics.TOPIC.webhook.\($0.name)", $0.summary, $0.requirement, $0.defaultText)
            }
    }

    private static func line(_ key: String, _ summary: String, _ requirement: String, _ value: String?) -> String {
        "| `\(key)` | \(summary) | \(requirement) | \(value.map { "`\($0)`" } ?? "none") |"
    }

    @Test("The tables have exactly the keys of the code, with their values and defaults, in order")
    func tables() throws {
        let rows = try self.rows().map {
            "| `\($0.key)` | \($0.summary) | \($0.requirement) | \($0.defaultText) |"
        }
        #expect(rows == Self.wanted, "the tables should be:\n\(Self.wanted.joined(separator: "\n"))")
    }

    @Test("Each example is a valid value of its key, in a file and with --set")
    func examples() throws {
        for row in try self.rows() {
            let example = row.example
            #expect(example != String(row.defaultText.dropFirst().dropLast()), "\(row.key): its default is its example")
            let key = row.key.replacing("TOPIC", with: "com.example.app")
            // A webhook without a URL is refused.
            let others =
                row.key.contains(".webhook.") && !row.key.hasSuffix(".url")
                ? ["topics.com.example.app.webhook.url=https://hooks.example.com/wake"] : []
            #expect(throws: Never.self, "\(row.key)") {
                _ = try ConfigurationLoader.load(file: nil, settings: others + ["\(key)=\(example)"])
            }
        }
    }
}

@Suite("Documentation of metrics")
struct MetricsArticleTests {
    private static let dashboard = "deploy/grafana/dashboard.json"
    private static let alerts = "deploy/grafana/alerts.yml"

    /// Returns the metrics named in a text. Parts of a histogram count as the histogram.
    private static func names(in text: String) -> Set<String> {
        let histograms = Set(Metric.all.filter { $0.kind == .histogram }.map(\.name))
        return Set(
            text.matches(of: /wakegate_[a-z_]+/).map { match in
                let name = String(match.output)
                let whole = name.replacing(/_(bucket|sum|count)$/, with: "")
                return histograms.contains(whole) ? whole : name
            }
        )
    }

    private static func row(_ metric: Metric) -> String {
        let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
        return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
    }

    @Test("The article's table has exactly the metrics of the code, with type, labels and help, in order")
    func table() throws {
        let article = try Checkout.article("Metrics")
        let wanted = Metric.all.map { Self.row($0) }
        let rows = article.split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") }
        #expect(rows == wanted, "the table should be:\n\(wanted.joined(separator: "\n"))")
    }

    @Test(
        "Every metric that is mentioned exists",
        arguments: [
            "Sources/Server/Gateway/Gateway.docc/Metrics.md", MetricsArticleTests.dashboard, MetricsArticleTests.alerts,
            "deploy/grafana/alerts-test.yml",
        ]
    )
    func real(path: String) throws {
        let names = Self.names(in: try Checkout.text(path))
        #expect(names.count > 10)
        #expect(names.subtracting(Metric.all.map(\.name)) == [])
    }

    @Test("The dashboard and the alert rules together use every metric")
    func used() throws {
        let names = try [Self.dashboard, Self.alerts].flatMap { Self.names(in: try Checkout.text($0)) }
        #expect(Set(Metric.all.map(\.name)).subtracting(names) == [])
    }

    @Test("Every alert rule has a summary, an instruction, and a test case")
    func rules() throws {
        let rules = try Checkout.text(Self.alerts).components(separatedBy: "- alert: ").dropFirst()
        #expect(rules.count > 10)
        for rule in rules {
            let name = rule.prefix { $0 != "\n" }
            #expect(rule.contains(/summary: "[^"]+\."/), "\(name)")
            #expect(rule.contains(/runbook: "[^"]+\."/), "\(name)")
            #expect(rule.contains("severity: "), "\(name)")
        }
        #expect(try Checkout.text("deploy/grafana/alerts-test.yml").contains("exp_samples: [{value: \(rules.count)}]"))
        // No alert fires for a limit that normal work reaches.
        let expression = try #require(rules.first { $0.hasPrefix("WakeGateLimitMet\n") })
        let start = try #require(expression.range(of: "limit!~\""))
        let excluded = expression[start.upperBound...].prefix { $0 != "\"" }.split(separator: "|").map(String.init)
        #expect(Set(excluded) == GatewayLimit.routineNames)
        #expect(excluded.count == GatewayLimit.routineNames.count)
    }
}

@Suite("The article about limits")
struct BoundsArticleTests {
    /// Formats a number with thousands separators.
    private static func text(_ number: Int) -> String {
        let digits = String(number)
        return String(
            digits.enumerated().flatMap { index, digit in
                index > 0 && (digits.count - index) % 3 == 0 ? [",", digit] : [digit]
            }
        )
    }

    /// Returns the expected row of a limit in the article.
    private static func row(_ limit: GatewayLimit) -> String {
        let value = "\(self.text(limit.defaultValue)) \(limit.unit)"
        return "| `\(limit.name)` | \(value) | \(limit.summary) | \(limit.rationale) |"
    }

    @Test("The article's table has exactly the limits of the code, with default, purpose and advice, in order")
    func table() throws {
        let rows = try Checkout.article("Bounds").split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") }
        let wanted = GatewayLimit.all.map { Self.row($0) }
        #expect(rows == wanted, "the table should be:\n\(wanted.joined(separator: "\n"))")
    }

    @Test("The article describes the consequence of each limit, and names exactly those that normal work reaches")
    func consequences() throws {
        let article = try Checkout.article("Bounds")
        let section = try #require(article.components(separatedBy: "## What happens past a bound").last)
        for name in GatewayLimit.counterNames { #expect(section.contains("`\(name)`"), "\(name)") }
        let item = try #require(article.components(separatedBy: "\n- Normal work reaches ").dropFirst().first)
        let sentence = try #require(item.replacing("\n", with: " ").components(separatedBy: ". ").first)
        #expect(Set(sentence.matches(of: /`(\w+)`/).map { String($0.1) }) == GatewayLimit.routineNames)
    }
}
