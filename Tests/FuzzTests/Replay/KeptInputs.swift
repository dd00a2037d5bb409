import Foundation

/// The inputs that are kept beside the targets, a folder for each: a corpus that reaches far, and former crashers.
enum KeptInputs {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    /// The targets that have a corpus.
    static func targets() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: self.root.appendingPathComponent("Corpus").path))
    }

    /// The inputs of one target, by the path of their file below `Tests/FuzzTests`.
    static func inputs(_ target: String) throws -> [(path: String, bytes: [UInt8])] {
        try ["Corpus", "Crashers"].flatMap { kind in
            let folder = self.root.appendingPathComponent("\(kind)/\(target)")
            guard FileManager.default.fileExists(atPath: folder.path) else { return [(path: String, bytes: [UInt8])]() }
            return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { name in
                ("\(kind)/\(target)/\(name)", Array(try Data(contentsOf: folder.appendingPathComponent(name))))
            }
        }
    }
}
