import Foundation

/// The inputs that are kept together with the targets. Each target has a folder with a corpus of wide coverage, and one
/// with former crashers.
enum KeptInputs {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    /// Returns the targets that have a corpus.
    static func targets() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: self.root.appendingPathComponent("Corpus").path))
    }

    /// Returns the inputs of one target, with the paths of their files below `Tests/FuzzTests`.
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
