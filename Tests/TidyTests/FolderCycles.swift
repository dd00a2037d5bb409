/// Whether the folders of a module lie in layers as modules do: no two may need each other, directly or by way of
/// others.
///
/// A folder needs another one when a file of it names a type that is declared, outside of all types, in the other. What
/// an extension in another folder adds to a type is not seen.
enum FolderCycles {
    /// The folders of each module that need each other still. Take out what no longer does; nothing may be added.
    static let known: [String: Set<String>] = [
        "WakeWorker": [".", "Session"],
    ]

    /// The first place at which a folder names something of another one.
    private struct Need {
        let path: String
        let line: Int
        let name: String
    }

    /// The lines that close a cycle, of folders that are not known to be in one.
    static func violations(in files: [SourceText], known: [String: Set<String>] = Self.known) -> [Violation] {
        var violations: [Violation] = []
        for (module, needs) in self.needs(files).sorted(by: { $0.key < $1.key }) {
            let cyclic = self.cyclic(needs)
            let new = cyclic.subtracting(known[module] ?? [])
            for (from, needed) in needs where cyclic.contains(from) {
                for (to, need) in needed where cyclic.contains(to) && (new.contains(from) || new.contains(to)) {
                    let message =
                        "\(from) needs \(need.name) of \(to), which needs \(from) in turn: let arrows go one way"
                    violations.append(Violation(path: need.path, line: need.line, message: message))
                }
            }
        }
        return violations.sorted { ($0.path, $0.line) < ($1.path, $1.line) }
    }

    /// Folders that are known to need each other, and do not any more.
    static func unneeded(for files: [SourceText], known: [String: Set<String>] = Self.known) -> [String] {
        let needs = self.needs(files)
        return known.flatMap { module, folders in
            folders.subtracting(self.cyclic(needs[module] ?? [:])).map { "\(module)/\($0)" }
        }.sorted()
    }

    /// By module and folder: which other folders are needed. Files at a module's root are the folder ".".
    private static func needs(_ files: [SourceText]) -> [String: [String: [String: Need]]] {
        var needs: [String: [String: [String: Need]]] = [:]
        for (module, files) in Dictionary(grouping: files.filter(\.isSource), by: \.module) {
            guard Set(files.map(self.folder)).count > 1 else { continue }
            var homes: [Substring: String] = [:]
            for file in files {
                for name in file.code.compactMap({ self.declared($0) }) { homes[name] = self.folder(file) }
            }
            for file in files {
                let from = self.folder(file)
                for (number, line) in zip(1..., file.code) {
                    for name in self.names(line) {
                        guard let to = homes[name], to != from, needs[module]?[from]?[to] == nil else { continue }
                        let need = Need(path: file.path, line: number, name: String(name))
                        needs[module, default: [:]][from, default: [:]][to] = need
                    }
                }
            }
        }
        return needs
    }

    private static func folder(_ file: SourceText) -> String {
        let rest = file.path.dropFirst(Layout.folder(of: file.path).count + 1)
        let parts = rest.split(separator: "/")
        return parts.count > 1 ? String(parts[0]) : "."
    }

    /// The type that a line declares outside of all types for the whole module; nil when it declares none.
    private static func declared(_ line: String) -> Substring? {
        guard let first = line.first, first != " " else { return nil }
        let words = line.split(separator: " ")
        guard let index = words.firstIndex(where: { self.keywords.contains($0) }), index + 1 < words.count,
            words[..<index].allSatisfy({ $0.hasPrefix("@") || self.modifiers.contains($0) })
        else { return nil }
        return self.names(String(words[index + 1])).first
    }

    private static let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    private static let modifiers: Set<Substring> = ["public", "package", "internal", "final", "indirect"]

    /// The words of a line that may be names of types: those that begin with a capital letter.
    private static func names(_ line: String) -> [Substring] {
        var names: [Substring] = []
        var start: String.Index?
        let bytes = line.utf8
        for index in bytes.indices {
            if self.isOfName(bytes[index]) {
                if start == nil { start = index }
            } else if let from = start {
                if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[from]) { names.append(line[from..<index]) }
                start = nil
            }
        }
        if let from = start, (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[from]) {
            names.append(line[from...])
        }
        return names
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// The folders from which one comes back to them.
    private static func cyclic(_ needs: [String: [String: Need]]) -> Set<String> {
        Set(
            needs.keys.filter { folder in
                var seen: Set<String> = []
                var next = Array(needs[folder, default: [:]].keys)
                while let reached = next.popLast() {
                    guard seen.insert(reached).inserted else { continue }
                    next += needs[reached, default: [:]].keys
                }
                return seen.contains(folder)
            }
        )
    }
}
