import Foundation

/// A worked example of the rules: a trace and its outcome.
package struct WorkedExample: CustomStringConvertible, Sendable {
    /// The examples of pushes, sorted by name; empty if their folder was not found.
    package static let ofPushes = Self.all(in: "Vectors")
    /// The examples of background tasks, sorted by name; empty if their folder was not found.
    package static let ofTasks = Self.all(in: "BackgroundVectors")

    package let description: String
    private let path: String

    /// The lines of the trace.
    package var trace: [String] { get throws { try self.lines("trace") } }
    /// The lines of the outcome.
    package var outcome: [String] { get throws { try self.lines("outcome") } }

    private static func all(in folder: String) -> [WorkedExample] {
        let folder = "Tests/Core/SimulationTests/\(folder)"
        let files = try? FileManager.default.contentsOfDirectory(atPath: Checkout.root.appending(path: folder).path)
        let suffix = ".trace.jsonl"
        return (files ?? []).filter { $0.hasSuffix(suffix) }.sorted().map {
            let name = String($0.dropLast(suffix.count))
            return WorkedExample(description: name, path: "\(folder)/\(name)")
        }
    }

    private func lines(_ part: String) throws -> [String] {
        try Checkout.text("\(self.path).\(part).jsonl").split(separator: "\n").map(String.init)
    }
}
