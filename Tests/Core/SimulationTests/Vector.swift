import Foundation

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

    /// The names of the examples in `folder`, sorted; empty when it was not found.
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

    /// A line as the JSON object that it is, read by somebody else's parser.
    static func object(_ line: String) throws -> NSDictionary {
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? NSDictionary else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        return object
    }
}
