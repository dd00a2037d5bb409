import Foundation

/// The files of this repository in a checkout.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every Swift file below `Sources` and `Tests`.
    static func sources() throws -> [SourceText] { try self.read.get() }

    /// The files that all tests of the sources share, because reading and blanking each file takes seconds.
    private static let read = Result {
        try ["Sources", "Tests"].flatMap { try files(below: $0) }
            .filter { $0.hasSuffix(".swift") }
            .map { SourceText(path: $0, text: try text(of: $0)) }
    }

    /// Returns all files that would be committed: all except those of hidden folders at the top, and those that
    /// `certs/.gitignore` ignores.
    static func committedFiles() throws -> [String] {
        try self.topLevel().flatMap { name in
            name == "certs" ? ["certs/README.md", "certs/.gitignore"] : try self.files(below: name)
        }
    }

    /// The visible names at the top of the checkout, sorted.
    static func topLevel() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: self.root.path).filter { !$0.hasPrefix(".") }.sorted()
    }

    static func text(of path: String) throws -> String {
        String(decoding: try Data(contentsOf: self.root.appendingPathComponent(path)), as: UTF8.self)
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: self.root.appendingPathComponent(path).path)
    }

    /// Returns the paths from the root of all files below `path`, or `path` itself if it is a file; sorted.
    private static func files(below path: String) throws -> [String] {
        guard try self.isFolder(path) else { return self.exists(path) ? [path] : [] }
        let folder = self.root.appendingPathComponent(path).path
        return try FileManager.default.subpathsOfDirectory(atPath: folder).map { "\(path)/\($0)" }.filter { file in
            try !self.isFolder(file) && !file.contains("__pycache__")
        }.sorted()
    }

    private static func isFolder(_ path: String) throws -> Bool {
        guard self.exists(path) else { return false }
        return try self.root.appendingPathComponent(path).resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true
    }
}
