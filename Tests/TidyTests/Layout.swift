/// The files and folders at the top of the repository, the secrets that it must not contain, and the links of its
/// pages.
enum Layout {
    static let topLevel = ["Package.swift", "README.md", "Sources", "Tests", "certs", "deploy"]

    /// The folders below `Sources` and `Tests` that contain modules, in the order of their imports: the first imports
    /// no other.
    static let layers: Set<Substring> = [
        "Libraries", "Core", "Server", "Cluster", "Transfers", "SDK", "Tools", "Measurements", "Testing",
    ]

    /// The folder of the module that the file at `path` belongs to. It is in its layer's folder, or in `Sources` or
    /// `Tests` if the module has no layer.
    static func folder(of path: String) -> String {
        let parts = path.split(separator: "/")
        let isInLayer = parts.count > 2 && self.layers.contains(parts[1])
        return parts.dropLast().prefix(isInLayer ? 3 : 2).joined(separator: "/")
    }

    /// Returns the names at the top that should not be there, and the missing ones.
    static func unexpected(in names: [String]) -> [String] {
        Set(names).symmetricDifference(self.topLevel).sorted()
    }

    /// Returns the lines that contain the first line of a PEM private key, as a file or in a string.
    static func privateKeys(path: String, text: String) -> [Violation] {
        // The regular expression is slow, and hardly any file needs it.
        guard text.contains("PRIVATE KEY") else { return [] }
        return zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)).compactMap { number, line in
            guard line.contains(/-----BEGIN [A-Z ]*PRIVATE KEY-----/) else { return nil }
            return Violation(path: path, line: number, message: "a private key; let the tests make their own")
        }
    }

    /// Returns the broken links of a Markdown page into this repository.
    ///
    /// - Parameter exists: returns true if a path from the repository's root exists.
    static func deadLinks(path: String, text: String, exists: (String) -> Bool) -> [Violation] {
        zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)).flatMap { number, line in
            self.targets(in: line).compactMap { target in
                guard !target.contains("://"), !target.hasPrefix("#"), !target.hasPrefix("mailto:") else { return nil }
                let folder = path.split(separator: "/").dropLast()
                let file = target.split(separator: "#")[0]
                let full = self.resolved((folder + file.split(separator: "/")).map(String.init))
                if exists(full) { return nil }
                return Violation(path: path, line: number, message: "the link to \(target) leads nowhere")
            }
        }
    }

    /// Returns the targets in `](...)`.
    private static func targets(in line: Substring) -> [String] {
        line.split(separator: "](", omittingEmptySubsequences: false).dropFirst().compactMap { rest in
            rest.firstIndex(of: ")").map { String(rest[..<$0]) }
        }.filter { !$0.isEmpty }
    }

    private static func resolved(_ parts: [String]) -> String {
        var path: [String] = []
        for part in parts where part != "." {
            if part == ".." { _ = path.popLast() } else { path.append(part) }
        }
        return path.joined(separator: "/")
    }
}
