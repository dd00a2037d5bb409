/// Who may import what: the module graph of the architecture, as a table.
enum ModuleImports {
    /// What each module may import, from what imports nothing to what imports most. Every module is named.
    static let allowed: [String: Set<String>] = [
        "Bytes": [],
        "Text": [],
        "LaunchPolicy": [],
        "TransferPolicy": [],
        "APNSProtocol": ["Bytes", "Text"],
        "FaultInjection": ["APNSProtocol", "Bytes"],
        "WakeFormat": ["Bytes", "Text"],
        "Simulation": ["Bytes", "LaunchPolicy", "Text"],
        "DeviceEngine": ["Bytes", "LaunchPolicy"],
        "WakeDispatch": ["Bytes", "DeviceEngine", "LaunchPolicy"],
        "Platform": ["Bytes", "CThreads", "FoundationEssentials", "Glibc", "Synchronization"],
        "SQLite": ["Bytes", "CSQLite", "Glibc"],
        "ClusterStore": ["Bytes", "DeviceEngine", "LaunchPolicy"],
        "PostgreSQL": ["Bytes", "CPostgreSQL", "Glibc", "Platform"],
        "DeviceJournal": [
            "Bytes", "CXXHash", "DeviceEngine", "Foundation", "Glibc", "Platform", "SQLite", "Synchronization",
        ],
        "History": ["Bytes", "DeviceEngine", "Glibc", "LaunchPolicy", "Platform", "SQLite"],
        "PostgresStore": [
            "Bytes", "ClusterStore", "DeviceEngine", "Glibc", "History", "LaunchPolicy", "Platform", "PostgreSQL",
        ],
        "HTTPTransport": ["Bytes", "CLinux", "CNghttp2", "COpenSSL", "Glibc", "Platform", "Synchronization"],
        "LinuxConditions": ["CNetlink", "CSystemBus", "Glibc", "Platform"],
        "ServiceManager": ["CSystemd", "Glibc"],
        "HTTPClient": ["Bytes", "CLibcurl", "Glibc", "Platform", "Synchronization"],
        "WakeWorker": [
            "FoundationEssentials", "Glibc", "HTTPClient", "LinuxConditions", "Platform", "Synchronization", "Text",
            "WakeFormat",
        ],
        "BackgroundTransfers": ["FoundationEssentials", "HTTPClient", "Platform", "Synchronization", "Text"],
        "EventLog": ["Bytes", "FoundationEssentials", "Glibc", "Platform", "ServiceManager", "Synchronization"],
        "Answers": ["Bytes", "DeviceEngine", "FaultInjection", "Text"],
        "Access": [
            "APNSProtocol", "Answers", "Bytes", "DeviceEngine", "Dispatch", "FoundationEssentials", "Glibc",
            "HTTPTransport",
            "Platform", "Synchronization", "Text",
        ],
        "Settings": [
            "APNSProtocol", "Access", "Answers", "Bytes", "CCommit", "DeviceEngine", "EventLog", "FaultInjection",
            "FoundationEssentials", "Glibc", "HTTPClient", "HTTPTransport", "History", "LaunchPolicy", "Platform",
            "ServiceManager", "Text",
            "WakeDispatch",
        ],
        "EngineRoom": [
            "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Dispatch",
            "EventLog", "FoundationEssentials", "Glibc", "HTTPTransport", "History", "LaunchPolicy", "Platform",
            "Settings",
            "Simulation", "Synchronization", "Text", "WakeDispatch", "WakeFormat",
        ],
        "Webhooks": [
            "Access", "Bytes", "DeviceEngine", "EngineRoom", "EventLog", "HTTPClient", "HTTPTransport",
            "LaunchPolicy", "Platform", "Settings", "Synchronization", "Text", "WakeDispatch", "WakeFormat",
        ],
        "Edge": [
            "APNSProtocol", "Access", "Answers", "Bytes", "CEmbeddedFiles", "DeviceEngine", "EngineRoom", "EventLog",
            "FaultInjection", "FoundationEssentials", "HTTPTransport", "LaunchPolicy", "Platform", "Settings",
            "Synchronization",
            "Text", "WakeDispatch", "WakeFormat",
        ],
        "Gateway": [
            "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Dispatch",
            "Edge", "EngineRoom", "EventLog", "FoundationEssentials", "Glibc", "HTTPClient", "HTTPTransport", "History",
            "Platform",
            "PostgresStore", "ServiceManager", "Settings", "Synchronization", "Text", "WakeDispatch", "Webhooks",
        ],
        "TransferAgent": [
            "Bytes", "CEmbeddedFiles", "DeviceEngine", "EventLog", "Glibc", "HTTPClient", "HTTPTransport",
            "LaunchPolicy",
            "LinuxConditions", "Platform", "SQLite", "ServiceManager", "Synchronization", "Text", "TransferPolicy",
        ],
        "CommandLineTool": [
            "APNSProtocol", "Access", "Answers", "BackgroundTransfers", "Bytes", "CProcess", "EngineRoom",
            "FaultInjection", "FoundationEssentials",
            "Gateway", "Glibc", "HTTPClient", "HTTPTransport", "LaunchPolicy", "Platform", "ServiceManager", "Settings",
            "Simulation", "Synchronization", "Text", "TransferAgent", "WakeFormat", "WakeWorker",
        ],
        "wakegate": ["CommandLineTool", "Gateway", "Glibc", "HTTPTransport"],
        "wakegate-history": ["Bytes", "DeviceEngine", "Glibc", "History", "LaunchPolicy", "Platform", "SQLite"],
        "wakegate-journal": [
            "Bytes", "DeviceEngine", "DeviceJournal", "Foundation", "Glibc", "LaunchPolicy", "Platform",
        ],
        "wakegate-memory": ["Bytes", "DeviceEngine", "Glibc", "LaunchPolicy", "Platform"],
        "wakegate-workers": ["Dispatch", "Foundation", "HTTPClient", "Platform", "Synchronization", "WakeWorker"],
        "WakeGateTestKit": [
            "Bytes", "CSimulatedDisk", "CSystemFaults", "ClusterStore", "DeviceEngine", "DeviceJournal", "Foundation",
            "Glibc", "History", "LaunchPolicy", "Platform", "SQLite", "Synchronization", "WakeDispatch",
        ],
    ]

    static func violations(in files: [SourceText]) -> [Violation] {
        var importers: [String: [Violation]] = [:]
        var unnamed: Set<String> = []
        var violations: [Violation] = []
        for file in files where file.isSource {
            if self.allowed[file.module] == nil, unnamed.insert(file.module).inserted {
                let message = "\(file.module) has no line in the table of imports: say what it may import"
                violations.append(Violation(path: file.path, line: 1, message: message))
            }
            for (number, line) in zip(1..., file.code) {
                guard let module = self.importedModule(line) else { continue }
                if let allowed = self.allowed[file.module], !allowed.contains(module) {
                    violations.append(
                        Violation(
                            path: file.path,
                            line: number,
                            message: "\(file.module) may not import \(module): arrows never go up"
                        )
                    )
                }
                if self.isCModule(module) {
                    importers[module, default: []].append(
                        Violation(
                            path: file.path,
                            line: number,
                            message: "\(module) already has its one importing file"
                        )
                    )
                }
            }
        }
        for (_, found) in importers.sorted(by: { $0.key < $1.key }) where found.count > 1 {
            violations += found.dropFirst()
        }
        return violations
    }

    /// The module an import line names, or nil when the line is no import.
    static func importedModule(_ line: String) -> String? {
        guard line.contains("import") else { return nil }
        let words = line.split(separator: " ")
        guard let index = words.firstIndex(of: "import"), index + 1 < words.count,
            words[..<index].allSatisfy({ $0.hasPrefix("@") || self.accessLevels.contains($0) })
        else { return nil }
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
        let name = kinds.contains(words[index + 1]) && index + 2 < words.count ? words[index + 2] : words[index + 1]
        return String(name.split(separator: ".")[0])
    }

    private static let accessLevels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]

    static func isCModule(_ name: String) -> Bool {
        let letters = Array(name)
        return letters.count > 1 && letters[0] == "C" && letters[1].isUppercase
    }
}
