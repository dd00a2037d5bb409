import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("Simulator")
struct SimulatorTests {
    private static func run(_ trace: [String], overrides: [(String, Double)] = []) throws -> [String] {
        var lines: [String] = []
        try Simulator.run(trace: trace, overrides: overrides) { lines.append($0) }
        return lines
    }

    private static func push(_ name: String, _ device: String, at time: String) -> String {
        #"{"t": \#(time), "device": "\#(device)", "push": {"apnsID": "\#(name)", "priority": 5}}"#
    }

    @Test("An empty trace has only a summary")
    func empty() throws {
        #expect(try Self.run(["", "  "]) == [#"{"summary":{"pending":0,"inFlight":0}}"#])
    }

    @Test("A simulation stops after its number of launches, also if a wake is lost at its launch again and again")
    func stopped() throws {
        var simulator = try Simulator(overrides: [("policy.maxAttempts", 1_000_000_000)])
        simulator.launchesLeft = 1000
        var launches = 0
        func count(_ line: OutcomeLine) { launches += line.json.contains("\"launch\"") ? 1 : 0 }
        try simulator.take(#"{"worker": [["lost", 0]]}"#, count)
        try simulator.take(Self.push("p0", "a", at: "0"), count)
        _ = simulator.finish(count)
        #expect(simulator.isStopped && (1000...1001).contains(launches))
    }

    @Test("Overrides win over the trace's own parameters")
    func overrides() throws {
        let trace = [
            #"{"policy": {"launchInterval": 60}}"#, Self.push("p0", "a", at: "0"), Self.push("p1", "a", at: "5"),
        ]
        #expect(try Self.run(trace).contains { $0.hasPrefix(#"{"t":60,"#) })
        #expect(
            try Self.run(trace, overrides: [("policy.launchInterval", 7.5)]).contains { $0.hasPrefix(#"{"t":7.5,"#) }
        )
    }

    @Test("Durations are rounded to milliseconds, halves up")
    func rounded() throws {
        let trace = [
            #"{"policy": {"launchInterval": 1.0006, "refreshFlex": 0}}"#, #"{"worker": [["newData", 0.0005]]}"#,
            #"{"tasks": {"r": [["success", 0.0004]]}}"#, Self.push("p0", "a", at: "0"),
            #"{"t": 0.5, "device": "a", "submit": {"identifier": "r", "kind": "appRefresh"}}"#,
        ]
        let results = try Self.run(trace).filter { $0.contains("\"result\"") }
        #expect(results.first?.hasPrefix(#"{"t":0.001,"#) == true)
        #expect(results.last?.hasPrefix(#"{"t":1.001,"#) == true)
    }

    @Test("At the same time devices act in the order of their first mention, before the events of that time")
    func order() throws {
        let trace = [Self.push("p0", "b", at: "0"), Self.push("p1", "a", at: "0"), Self.push("p2", "c", at: "1")]
        let order = try Self.run(trace).filter { $0.contains(#""t":1,"#) }.compactMap {
            $0.split(separator: "\"")[safe: 5]
        }
        #expect(order == ["b", "a", "c", "c"])
    }

    @Test("Names are escaped, and read back with their escapes")
    func escapes() throws {
        let line = #"{"t": 0.010, "device": "\u00e9\"\ud83d\ude00\n", "push": {"apnsID": "x"}}"#
        let lines = try Self.run([line])
        #expect(lines.first?.hasPrefix(#"{"t":0.01,"device":"é\"😀\n","event":"push""#) == true, "\(lines)")
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        self.indices.contains(index) ? self[index] : nil
    }
}

@Suite("The articles about the rules and about traces", .timeLimit(.minutes(15)))
struct ArticleTests {
    private static func article(_ path: String) throws -> [String] {
        let text = try Checkout.text("Sources/Core/Policy/Policy.docc/\(path)")
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test(
        "The table of an article has exactly its parameters with their defaults",
        arguments: [
            ("Rules.md", Set(PolicyParameter.allCases).subtracting(PolicyParameter.ofTasks)),
            ("BackgroundRules.md", Set(PolicyParameter.ofTasks)),
        ]
    )
    func parameters(article: String, known: Set<PolicyParameter>) throws {
        let rows = try Self.article(article).compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let name = cells.first?.trimmingCharacters(in: ["`"]) ?? ""
            return PolicyParameter(rawValue: name).map { ($0, cells[1]) }
        }
        #expect(Set(rows.map(\.0)) == known && rows.count == known.count)
        let ofTasks = PolicyParameter.ofTasks
        #expect(rows.map(\.0).filter(ofTasks.contains) == ofTasks.filter(known.contains), "in their order")
        for (name, value) in rows {
            #expect(name.value(in: Parameters()) == Double(value.replacing(",", with: "")), "\(name)")
        }
    }

    @Test("The example of a trace has exactly the outcome shown below it")
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

@Suite("The worked examples of the rules", .timeLimit(.minutes(15)))
struct VectorTests {
    @Test("All the examples are here")
    func found() {
        #expect(WorkedExample.ofPushes.count >= 49)
        #expect(WorkedExample.ofTasks.count >= 51)
    }

    @Test("Each example has exactly its outcome", arguments: WorkedExample.ofPushes + WorkedExample.ofTasks)
    func outcome(of example: WorkedExample) throws {
        var lines: [String] = []
        try Simulator.run(trace: example.trace) { lines.append($0) }
        let actual = try lines.map(Self.object)
        let expected = try example.outcome.map(Self.object)
        try Self.expectOrdered(actual)
        #expect(actual.count == expected.count)
        let devices = Set((actual + expected).compactMap { $0["device"] as? String })
        #expect(!devices.isEmpty)
        for device in devices.sorted() {
            let actual = actual.filter { $0["device"] as? String == device }
            let expected = expected.filter { $0["device"] as? String == device }
            #expect(actual.count == expected.count, "device \(device)")
            for (index, pair) in zip(actual, expected).enumerated() {
                #expect(pair.0 == pair.1, "device \(device), outcome \(index + 1)")
            }
        }
        #expect(try Self.counters(actual.last) == Self.counters(expected.last))
    }

    /// Parses a line as a JSON object with an independent parser.
    private static func object(_ line: String) throws -> NSDictionary {
        try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? NSDictionary)
    }

    /// Returns the nonzero counters of the summary. Only `pending` and `inFlight` may not be left out.
    private static func counters(_ line: NSDictionary?) throws -> [String: Int] {
        let counters = try #require(line?["summary"] as? [String: Int])
        #expect(counters["pending"] != nil && counters["inFlight"] != nil)
        return counters.filter { $0.value != 0 }
    }

    private static func expectOrdered(_ lines: [NSDictionary]) throws {
        let times = try lines.dropLast().map { try #require($0["t"] as? Double) }
        #expect(times == times.sorted())
        #expect(lines.last?["summary"] != nil)
    }
}
