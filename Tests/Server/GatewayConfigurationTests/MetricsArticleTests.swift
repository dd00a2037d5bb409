import Foundation
import Gateway
import Testing
import WakeGateTestKit
import Wire

@Suite("What is written about metrics")
struct MetricsArticleTests {
    private static let article = "Sources/Server/Gateway/Gateway.docc/Metrics.md"
    private static let dashboard = "deploy/grafana/dashboard.json"
    private static let alerts = "deploy/grafana/alerts.yml"

    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: Checkout.root.appendingPathComponent(path)), as: UTF8.self)
    }

    /// The metrics that a text names; of a histogram's parts, the histogram.
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

    @Test("The article's table has every metric with its type, labels and help, in their order, and no other")
    func table() throws {
        let article = try self.text(Self.article)
        let wanted = Metric.all.map { Self.row($0) }
        let rows = article.split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") }
        #expect(rows == wanted, "the table should be:\n\(wanted.joined(separator: "\n"))")
    }

    @Test(
        "Every metric that is named anywhere is a real one",
        arguments: [
            MetricsArticleTests.article, MetricsArticleTests.dashboard, MetricsArticleTests.alerts,
            "deploy/grafana/alerts-test.yml",
        ]
    )
    func real(path: String) throws {
        let names = Self.names(in: try self.text(path))
        #expect(names.count > 10)
        #expect(names.subtracting(Metric.all.map(\.name)) == [])
    }

    @Test("The dashboard and the alert rules together use every metric")
    func used() throws {
        let names = Self.names(in: try self.text(Self.dashboard)).union(Self.names(in: try self.text(Self.alerts)))
        #expect(Set(Metric.all.map(\.name)).subtracting(names) == [])
    }

    @Test("Every alert rule has a summary, a sentence that says what to do, and a case in its tests")
    func rules() throws {
        let rules = try self.text(Self.alerts).components(separatedBy: "- alert: ").dropFirst()
        #expect(rules.count > 10)
        for rule in rules {
            let name = rule.prefix { $0 != "\n" }
            #expect(rule.contains(/summary: "[^"]+\."/), "\(name)")
            #expect(rule.contains(/runbook: "[^"]+\."/), "\(name)")
            #expect(rule.contains("severity: "), "\(name)")
        }
        #expect(try self.text("deploy/grafana/alerts-test.yml").contains("exp_samples: [{value: \(rules.count)}]"))
    }
}
