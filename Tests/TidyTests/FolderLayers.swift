/// Checks that the folders of a module form layers as modules do: the order names each folder of the module, and a
/// folder needs only folders that come before it.
///
/// A folder needs another one if one of its files names a type that is declared at file level in the other folder.
/// Members that an extension in another folder adds to a type are not detected.
enum FolderLayers {
    /// The folders of each module that has folders, beginning with those that need no other folder; "." is the files at
    /// the module's root.
    static let order: [String: [String]] = [
        "CCommit": ["include", "."],
        "CEmbeddedFiles": ["include", "."],
        "CProcess": ["include", "."],
        "CStreamEnds": ["include", "."],
        "CSimulatedDisk": ["include", "."],
        "CSystemFaults": ["include", "."],
        "Wire": ["Bytes", "Text", "APNS", "Faults", "WakeFormat"],
        "Policy": ["Launch", "Simulation"],
        "Engine": ["Devices", "Dispatch", "Cluster"],
        "ServiceManager": [".", "EventLog"],
        "Storage": ["SQLite", "Journal", "History"],
        "HTTPTransport": [
            "Basics", "Address", "System", "TLS", "HPACK", "Message", "HTTP1", "HTTP2", "Loop", "Server",
        ],
        "Gateway": [
            "Answers", "Access", "Access/Credentials", "Access/Certificates", "Access/Callers", "Access/Providers",
            "Settings", "Settings/FaultRules", "EngineRoom/Members", "EngineRoom/Answers",
            "EngineRoom/Live", "EngineRoom/WhatIf", "EngineRoom/Exchange", "EngineRoom/History", "EngineRoom/Metrics",
            "EngineRoom/Store", "EngineRoom/World", "EngineRoom/Commits", "EngineRoom/Services", "EngineRoom/Engine",
            "EngineRoom/Cluster", "EngineRoom/Import", "Webhooks", "Edge/Dashboard", "Edge/OpenAPI", "Edge/Faults",
            "Edge/Operations", "Edge/Handler", "Process/Reload", "Process",
        ],
        "PostgresStore": ["Connection", "Store"],
        "TransferAgent": ["Policy", "OpenAPI", "Settings", "Store", "Files", "Network", "Engine", "API", "Process"],
        "WakeWorker": ["Gateway", "Notification", "Device", "Tasks", "Session", "."],
        "BackgroundTransfers": ["Transfer", "Agent", "Events", "."],
        "CommandLineTool": [
            "Console", "Definition", "Parsing", "Documentation", "Simulate", "Size", "Client", "Views", "Tasks",
            "Worker", "Stats", "Transfers", ".",
        ],
        "WakeGateTestKit": [
            ".", "Certificates", "Disk", "Faults", "Traces", "Cluster", "PostgreSQL",
        ],
    ]

    /// Returns the folders that the order does not name, and the folders that it names but that do not exist.
    ///
    /// - Parameter paths: every file of the repository, from its root.
    static func unexpected(in paths: [String], order: [String: [String]] = Self.order) -> [String] {
        var found: [String: Set<String>] = [:]
        for path in paths where path.hasPrefix("Sources/") {
            let folder = self.folder(of: path)
            guard !folder.contains(".docc"), path.split(separator: "/").count > 3 else { continue }
            found[self.module(of: path), default: []].insert(folder)
        }
        let there = found.filter { $0.value != ["."] }.flatMap { module, folders in folders.map { "\(module)/\($0)" } }
        let named = order.flatMap { module, folders in folders.map { "\(module)/\($0)" } }
        return Set(there).symmetricDifference(named).sorted()
    }

    /// Returns the first line of each folder that needs a folder which the order does not name before it.
    static func violations(in files: [SourceText], order: [String: [String]] = Self.order) -> [Violation] {
        var violations: [Violation] = []
        for (module, files) in Dictionary(grouping: files.filter(\.isSource), by: \.module) {
            let order = order[module] ?? []
            for need in self.needs(files) {
                guard let from = order.firstIndex(of: need.from), let to = order.firstIndex(of: need.to), from < to
                else { continue }
                let message =
                    "\(need.from) needs \(need.name) of \(need.to), which stands above it: let arrows go one way"
                violations.append(Violation(path: need.path, line: need.line, message: message))
            }
        }
        return violations.sorted { ($0.path, $0.line) < ($1.path, $1.line) }
    }

    /// The first place where a folder names a type of another folder.
    private struct Need {
        let from: String
        let to: String
        let path: String
        let line: Int
        let name: String
    }

    /// Returns which folders of a module need which other folders.
    private static func needs(_ files: [SourceText]) -> [Need] {
        var homes: [Substring: String] = [:]
        for file in files {
            for name in file.code.compactMap({ self.declared($0) }) { homes[name] = self.folder(of: file.path) }
        }
        guard Set(homes.values).count > 1 else { return [] }
        var needs: [String: Need] = [:]
        for file in files {
            let from = self.folder(of: file.path)
            for (number, line) in zip(1..., file.code) {
                for name in self.names(line) {
                    guard let to = homes[name], to != from, needs["\(from) \(to)"] == nil else { continue }
                    let need = Need(from: from, to: to, path: file.path, line: number, name: String(name))
                    needs["\(from) \(to)"] = need
                }
            }
        }
        return Array(needs.values)
    }

    private static func module(of path: String) -> String {
        String(Layout.folder(of: path).split(separator: "/").last ?? "")
    }

    /// The folder of a file in its module, with a slash if it is in a subfolder; "." at the module's root.
    private static func folder(of path: String) -> String {
        let rest = path.dropFirst(Layout.folder(of: path).count + 1).split(separator: "/").dropLast()
        return rest.isEmpty ? "." : rest.joined(separator: "/")
    }

    /// Returns the type that a line declares at file level for the whole module; nil if it declares none.
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

    /// Returns the words of a line that may be type names: those that begin with a capital letter.
    private static func names(_ line: String) -> [Substring] {
        line.utf8.split { !BannedWords.isNamePart($0) }
            .filter { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0[$0.startIndex]) }
            .map { Substring($0) }
    }
}
