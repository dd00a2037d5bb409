import Foundation

/// A worked example: the lines of a trace and of its outcome.
struct Vector {
    let trace: [String]
    let outcome: [String]

    private static let folder = Bundle.module.resourceURL?.appending(path: "Vectors")

    /// The names of the examples, sorted; empty when the folder was not found.
    static let names: [String] = {
        guard let folder, let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else {
            return []
        }
        return files.filter { $0.hasSuffix(".trace.jsonl") }.map { String($0.dropLast(".trace.jsonl".count)) }.sorted()
    }()

    init(_ name: String) throws {
        self.trace = try Self.lines("\(name).trace.jsonl")
        self.outcome = try Self.lines("\(name).outcome.jsonl")
    }

    private static func lines(_ file: String) throws -> [String] {
        guard let folder else { throw CocoaError(.fileNoSuchFile) }
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return text.split(separator: "\n").map(String.init)
    }

    /// A line as the JSON object that it is, read by somebody else's parser.
    static func object(_ line: String) throws -> NSDictionary {
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? NSDictionary else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        return object
    }
}
