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
        let file = Checkout.root.appendingPathComponent("Sources/Core/Policy/Policy.docc/\(path)")
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("The table of the rules has exactly the parameters of the code with their defaults")
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
        #expect(Vector.names(.pushes).count >= 49)
        #expect(Vector.names(.backgroundTasks).count >= 51)
    }

    @Test("Each example of pushes has exactly its outcome", arguments: Vector.names(.pushes))
    func pushes(_ name: String) throws {
        try Self.expectOutcome(of: Vector(name, in: .pushes))
    }

    @Test("Each example of background tasks has exactly its outcome", arguments: Vector.names(.backgroundTasks))
    func backgroundTasks(_ name: String) throws {
        try Self.expectOutcome(of: Vector(name, in: .backgroundTasks))
    }

    private static func expectOutcome(of vector: Vector) throws {
        var lines: [String] = []
        try Simulator.run(trace: vector.trace) { lines.append($0) }
        let actual = try lines.map(Vector.object)
        let expected = try vector.outcome.map(Vector.object)
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

/// A worked example: the lines of a trace and of its outcome.
struct Vector {
    /// The folders of examples.
    enum Folder: String {
        case pushes = "Vectors"
        case backgroundTasks = "BackgroundVectors"

        fileprivate var url: URL? { Bundle.module.resourceURL?.appending(path: self.rawValue) }
    }

    let trace: [String]
    let outcome: [String]

    /// The names of the examples in `folder`, sorted; empty if the folder was not found.
    static func names(_ folder: Folder) -> [String] {
        guard let path = folder.url?.path, let files = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            return []
        }
        return files.filter { $0.hasSuffix(".trace.jsonl") }.map { String($0.dropLast(".trace.jsonl".count)) }.sorted()
    }

    init(_ name: String, in folder: Folder) throws {
        self.trace = try Self.lines("\(name).trace.jsonl", in: folder)
        self.outcome = try Self.lines("\(name).outcome.jsonl", in: folder)
    }

    private static func lines(_ file: String, in folder: Folder) throws -> [String] {
        guard let folder = folder.url else { throw CocoaError(.fileNoSuchFile) }
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return text.split(separator: "\n").map(String.init)
    }

    /// Parses a line as a JSON object with an independent parser.
    static func object(_ line: String) throws -> NSDictionary {
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? NSDictionary else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        return object
    }
}
