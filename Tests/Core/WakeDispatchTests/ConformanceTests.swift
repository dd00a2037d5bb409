import Foundation
import Testing
import WakeGateTestKit

@Suite("The engine and the simulator agree", .timeLimit(.minutes(15)))
struct ConformanceTests {
    /// A worked example, by its folder and its name.
    struct Example: CustomTestStringConvertible, Sendable {
        let folder: String
        let name: String

        var testDescription: String { self.name }

        var lines: [String] {
            get throws {
                let path = "Tests/Core/SimulationTests/\(self.folder)/\(self.name)"
                let text = try String(contentsOf: Checkout.root.appending(path: path), encoding: .utf8)
                return text.split(separator: "\n").map(String.init)
            }
        }

        static func all(_ folder: String) -> [Example] {
            let root = Checkout.root.appending(path: "Tests/Core/SimulationTests/\(folder)")
            let files = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
            return files.filter { $0.hasSuffix(".trace.jsonl") }.sorted().map { Example(folder: folder, name: $0) }
        }
    }

    private static let ofPushes = Example.all("Vectors")
    private static let ofTasks = Example.all("BackgroundVectors")

    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_SEED"].flatMap(UInt64.init)
    /// How many more seeds than in `swift test`, from the environment.
    private static let factor = ProcessInfo.processInfo.environment["WAKEGATE_TRACE_FACTOR"].flatMap(UInt64.init) ?? 1
    private static let groups: UInt64 = 4
    private static let seedsInGroup: UInt64 = 100

    private static func seeds(_ group: UInt64) -> [UInt64] {
        guard let replayed else {
            let count = self.seedsInGroup * self.factor
            return (0..<count).map { group * count + $0 + 1 }
        }
        return group == 0 ? [replayed] : []
    }

    @Test("There are worked examples to compare")
    func found() {
        #expect(Self.ofPushes.count >= 49)
        #expect(Self.ofTasks.count >= 51)
    }

    @Test(
        "Dispatcher and engine do with a trace what the simulator says, to the millisecond",
        arguments: ofPushes + ofTasks
    )
    func agrees(example: Example) throws {
        let comparison = try TraceComparison(try example.lines)
        #expect(comparison.differences.isEmpty)
        #expect(comparison.lineCount > 0)
    }

    @Test("And so they do with random traces of pushes, requests and sessions", arguments: 0..<groups)
    func agreesAtRandom(group: UInt64) throws {
        for seed in Self.seeds(group) {
            let trace = TaskTrace(seed: seed)
            let comparison = try TraceComparison(trace.headers + trace.steps.map(\.line), isOrdered: false)
            guard let first = comparison.differences.first else { continue }
            Issue.record("replay with WAKEGATE_SEED=\(seed): \(first); \(comparison.differences.count) in all")
        }
    }
}
