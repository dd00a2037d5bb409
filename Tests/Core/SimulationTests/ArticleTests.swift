import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("The articles about the rules and about traces", .timeLimit(.minutes(15)))
struct ArticleTests {
    private static func article(_ path: String) throws -> [String] {
        let file = Checkout.root.appendingPathComponent("Sources/Core/Policy/Policy.docc/\(path)")
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("The table of the rules has every parameter with its default, and no other")
    func parameters() throws {
        let rows = try Self.article("Rules.md").compactMap { line -> [Substring]? in
            let cells = line.split(separator: "|").map { Substring($0.trimmingCharacters(in: .whitespaces)) }
            let name = cells.first?.trimmingCharacters(in: ["`"]) ?? ""
            return PolicyParameter(rawValue: name) == nil ? nil : cells
        }
        let found = try rows.map { cells in
            let name = try #require(PolicyParameter(rawValue: cells[0].trimmingCharacters(in: ["`"])))
            return (name, try #require(Double(cells[1].replacing(",", with: ""))))
        }
        let known = Set(PolicyParameter.allCases).subtracting(PolicyParameter.ofTasks)
        #expect(Set(found.map(\.0)) == known)
        #expect(found.count == known.count)
        for (name, value) in found { #expect(name.value(in: Parameters()) == value, "\(name)") }
    }

    @Test("The table of background tasks has each of their parameters with its default")
    func taskParameters() throws {
        let rows = try Self.article("BackgroundRules.md").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let name = cells.first?.trimmingCharacters(in: ["`"]) ?? ""
            return PolicyParameter(rawValue: name).map { ($0, cells) }
        }
        #expect(rows.map(\.0) == PolicyParameter.ofTasks)
        for (name, cells) in rows {
            #expect(name.value(in: Parameters()) == Double(cells[1].replacing(",", with: "")), "\(name)")
        }
    }

    @Test("The example of a trace has the outcome that stands below it, line by line")
    func example() throws {
        let lines = try Self.article("Traces.md")
        let block = try #require(lines.split(separator: "```console").dropFirst().first?.split(separator: "```").first)
        let parts = block.split(separator: "$ wakegate simulate trace")
        try #require(parts.count == 2)
        let trace = parts[0].dropFirst().map(\.self)
        #expect(trace.count >= 2)
        var outcome: [String] = []
        try Simulator.run(trace: trace) { outcome.append($0) }
        #expect(outcome == Array(parts[1]))
    }
}
