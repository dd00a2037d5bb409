/// The files in `Sources/LAYER/MODULE/MODULE.docc`, from which `deploy/docs` builds the documentation.
enum Catalogs {
    /// The command that builds the documentation.
    static let command = "deploy/docs"

    /// Returns the library modules without a catalog, the module pages with missing parts, and the articles that no
    /// page links to.
    ///
    /// - Parameters:
    ///   - files: every file below `Sources`, as paths from the repository's root.
    ///   - text: returns the text of one of these files.
    static func violations(in files: [String], text: (String) throws -> String) rethrows -> [Violation] {
        var violations: [Violation] = []
        for (folder, files) in self.modules(files).sorted(by: { $0.key < $1.key }) {
            let module = String(folder.split(separator: "/").last ?? "")
            let page = "\(folder)/\(module).docc/\(module).md"
            let articles = files.filter { $0.hasSuffix(".md") && $0.contains(".docc/") && $0 != page }
            guard files.contains(page) else {
                if try self.isLibrary(files, text) || !articles.isEmpty {
                    let message = "missing; say in it what \(module) is for, and how it works"
                    violations.append(Violation(path: page, line: 1, message: message))
                }
                continue
            }
            violations += self.violations(inPage: try text(page), path: page, module, articles)
        }
        return violations
    }

    private static func violations(
        inPage text: String,
        path: String,
        _ module: String,
        _ articles: [String]
    ) -> [Violation] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var missing: [String] = []
        if lines.first != "# ``\(module)``" { missing.append("the title \"# ``\(module)``\"") }
        if lines.count < 3 || !lines[1].isEmpty || lines[2].isEmpty { missing.append("a sentence below the title") }
        missing += ["## Overview", "## Topics"].filter { heading in !lines.contains { $0 == heading } }
        for article in articles {
            let name = article.split(separator: "/").last.map { $0.dropLast(".md".count) } ?? ""
            if !text.contains("- <doc:\(name)>") { missing.append("the topic <doc:\(name)>") }
        }
        return missing.map { Violation(path: path, line: 1, message: "it lacks \($0)") }
    }

    /// The Swift and documentation files of each module, by the module's folder.
    private static func modules(_ files: [String]) -> [String: [String]] {
        let parts = files.filter { $0.hasPrefix("Sources/") && ($0.hasSuffix(".swift") || $0.contains(".docc/")) }
        return Dictionary(grouping: parts) { Layout.folder(of: $0) }
    }

    /// Returns the links of a page, such as ``Type/function(label:)``, that name nothing that the sources declare.
    static func deadSymbols(path: String, text: String, declared: Set<String>) -> [Violation] {
        var violations: [Violation] = []
        for (number, line) in zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)) {
            for link in line.matches(of: #/``([^`]+)``/#) {
                for part in link.1.split(separator: "/") where !declared.contains(String(part)) {
                    let message = "no declaration is named \(part); `\(self.command)` would fail"
                    violations.append(Violation(path: path, line: number, message: message))
                }
            }
        }
        return violations
    }

    /// Returns the names that links can have: modules, types, properties, cases, and functions with their labels.
    static func declarations(in files: [SourceText]) -> Set<String> {
        let keywords: Set<Substring> = [
            "struct", "class", "enum", "protocol", "actor", "typealias", "var", "let", "case", "func", "subscript",
        ]
        var names = Set(files.map(\.module))
        for file in files where file.isSource {
            for (index, line) in file.code.enumerated() {
                let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                let keyword = words.firstIndex(where: keywords.contains)
                if let keyword { names.formUnion(words[keyword...].dropFirst().map(String.init)) }
                guard keyword != nil || words.contains("init"), line.contains("(") else { continue }
                let code = file.code[index...].prefix(40).joined(separator: "\n")
                guard let found = DeclaredParameters(firstIn: code) else { continue }
                names.insert("\(found.name)(\(found.labels.map { "\($0):" }.joined()))")
            }
        }
        return names
    }

    /// Returns true if a module is not a program. Other modules cannot import a program.
    private static func isLibrary(_ files: [String], _ text: (String) throws -> String) rethrows -> Bool {
        let sources = files.filter { $0.hasSuffix(".swift") }
        return try !sources.isEmpty
            && !sources.contains { file in
                try SourceText(path: file, text: text(file)).code.contains { $0.hasPrefix("@main") }
            }
    }
}
