/// The modules of the toolchain that each module may import, and one importing file for each C module.
///
/// SwiftPM checks the imports of the package's own modules against the manifest.
enum ModuleImports {
    /// The modules that may import each module of the toolchain.
    static let importers: [String: Set<String>] = [
        "Foundation": [
            "Storage", "WakeGateTestKit", "wakegate-workers",
        ],
        "FoundationEssentials": [
            "BackgroundTransfers", "CommandLineTool", "Gateway", "Platform", "ServiceManager", "WakeWorker",
            "WakeWorkerTesting", "wakegate",
        ],
        "Glibc": [
            "CommandLineTool", "Gateway", "HTTPClient", "HTTPTransport", "LinuxConditions", "Platform", "PostgresStore",
            "ServiceManager", "Storage", "TransferAgent", "WakeGateTestKit", "WakeWorker", "wakegate",
            "wakegate-memory",
        ],
        "Dispatch": [
            "Gateway", "wakegate-workers",
        ],
        "Synchronization": [
            "BackgroundTransfers", "CommandLineTool", "Gateway", "HTTPClient", "HTTPTransport", "Platform",
            "ServiceManager", "Storage", "TransferAgent", "WakeGateTestKit", "WakeWorker", "WakeWorkerTesting",
            "wakegate-workers",
        ],
    ]

    static func violations(in files: [SourceText]) -> [Violation] {
        var importsOfC: [String: [Violation]] = [:]
        var violations: [Violation] = []
        let modules = Set(files.map(\.module))
        for file in files where file.isSource {
            for (number, line) in zip(1..., file.code) {
                guard let module = self.importedModule(line) else { continue }
                if self.isCModule(module) {
                    let message = "\(module) already has its one importing file"
                    importsOfC[module, default: []].append(Violation(path: file.path, line: number, message: message))
                } else if !modules.contains(module), self.importers[module]?.contains(file.module) != true {
                    let message = "\(file.module) may not import \(module); see `importers`"
                    violations.append(Violation(path: file.path, line: number, message: message))
                }
            }
        }
        for (_, found) in importsOfC.sorted(by: { $0.key < $1.key }) where found.count > 1 {
            violations += found.dropFirst()
        }
        return violations
    }

    /// Returns the module that an import line names; nil for any other line.
    static func importedModule(_ line: String) -> String? {
        guard line.containsBytes(of: "import") else { return nil }
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
