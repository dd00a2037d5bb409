/// Who may import what: the module graph of the architecture, as a table.
enum ModuleImports {
    /// What each module may import; a module that is not named may import anything but C libraries it does not own.
    static let allowed: [String: Set<String>] = [
        "Bytes": [],
        "Text": [],
        "Dashboard": [],
        "LaunchPolicy": [],
        "APNSProtocol": ["Bytes", "Text"],
        "FaultInjection": ["APNSProtocol", "Bytes"],
        "DeviceEngine": ["Bytes", "LaunchPolicy"],
        "WakeDispatch": ["Bytes", "DeviceEngine", "LaunchPolicy"],
        "Simulation": ["Bytes", "LaunchPolicy", "Text"],
        "HTTPTransport": ["Bytes", "CLinux", "CNghttp2", "COpenSSL", "Glibc", "Synchronization"],
        "LinuxConditions": ["CNetlink", "Glibc"],
        "ServiceManager": ["CSystemd", "Glibc"],
        "HTTPClient": ["Bytes", "CLibcurl", "Glibc"],
        "WakeWorker": [
            "FoundationEssentials", "Glibc", "HTTPClient", "LinuxConditions", "Synchronization", "Text",
        ],
    ]

    static func violations(in files: [SourceText]) -> [Violation] {
        var importers: [String: [Violation]] = [:]
        var violations: [Violation] = []
        for file in files where file.isSource {
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
        let words = line.split(separator: " ")
        guard let index = words.firstIndex(of: "import"), index + 1 < words.count,
            words[..<index].allSatisfy({ $0.hasPrefix("@") || self.accessLevels.contains($0) })
        else { return nil }
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
        let name = kinds.contains(words[index + 1]) && index + 2 < words.count ? words[index + 2] : words[index + 1]
        return String(name.split(separator: ".")[0])
    }

    private static let accessLevels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]

    private static func isCModule(_ name: String) -> Bool {
        let letters = Array(name)
        return letters.count > 1 && letters[0] == "C" && letters[1].isUppercase
    }
}
