/// The page that follows a push through files and functions. Everything that it names must exist.
enum PushPath {
    static let page = "Sources/Server/Gateway/Gateway.docc/PushPath.md"

    /// A row of one of the page's tables.
    struct Step {
        /// Counted from 1.
        let line: Int
        let section: String
        /// The path starting after the layer's folder. It begins with the module.
        let file: String
        /// A function, or another declaration.
        let name: String
        /// True if the push or its result is passed on here.
        let handsOn: Bool

        var module: Substring { self.file.prefix { $0 != "/" } }
    }

    /// The numbers of files and modules on a path of the push.
    struct Figures: Hashable {
        let files: Int
        let modules: Int
        let filesOfAllRows: Int
        let modulesOfAllRows: Int

        init(_ steps: some Collection<Step>) {
            self.files = Set(steps.lazy.filter(\.handsOn).map(\.file)).count
            self.modules = Set(steps.lazy.filter(\.handsOn).map(\.module)).count
            self.filesOfAllRows = Set(steps.map(\.file)).count
            self.modulesOfAllRows = Set(steps.map(\.module)).count
        }
    }

    /// The number of table sections, starting with the first one, that each figure covers; nil for all sections.
    private static let ways: [(name: String, sectionCount: Int?)] = [
        ("to the 200", 4), ("to the 200 and the wake", 5), ("to the answered result", nil),
    ]

    /// Returns the rows that name a file and a function, in their order.
    static func steps(in text: String) -> [Step] {
        var steps: [Step] = []
        var section = ""
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.hasPrefix("## ") { section = String(line.dropFirst(3)) }
            guard line.hasPrefix("| `") || line.hasPrefix("| · `") else { continue }
            let parts = line.split(separator: "`", omittingEmptySubsequences: false)
            guard parts.count >= 5, parts[1].hasSuffix(".swift") else { continue }
            let step = Step(
                line: index + 1,
                section: section,
                file: String(parts[1]),
                name: String(parts[3]),
                handsOn: line.hasPrefix("| `")
            )
            steps.append(step)
        }
        return steps
    }

    /// Returns the files and functions that the page names but that do not exist, and the figures that do not match its
    /// rows.
    ///
    /// - Parameters:
    ///   - page: the text of the page.
    ///   - files: the repository's files.
    ///   - text: returns the text of one of these files.
    static func violations(
        in page: String,
        files: [String],
        text: (String) throws -> String
    ) rethrows -> [Violation] {
        try self.missing(in: page, of: self.page, files: files, text: text)
            + self.wrongFigures(in: page, self.steps(in: page))
    }

    /// Returns the files and functions that the tables of a page name but that do not exist.
    ///
    /// - Parameters:
    ///   - page: the text of the page.
    ///   - path: the path of the page.
    ///   - files: the repository's files.
    ///   - text: returns the text of one of these files.
    static func missing(
        in page: String,
        of path: String,
        files: [String],
        text: (String) throws -> String
    ) rethrows -> [Violation] {
        var violations: [Violation] = []
        for (file, steps) in Dictionary(grouping: self.steps(in: page), by: \.file) {
            let source = files.first { $0.hasPrefix("Sources/") && $0.hasSuffix("/" + file) }
            let declared = try source.map { self.declared(in: SourceText(path: $0, text: try text($0))) }
            for step in steps where declared?.contains(Substring(step.name)) != true {
                let fault = declared == nil ? "\(file) does not exist" : "\(file) declares no \(step.name)"
                violations.append(Violation(path: path, line: step.line, message: "\(fault); follow the way anew"))
            }
        }
        return violations.sorted { $0.line < $1.line }
    }

    /// Returns the names of all functions, properties and types.
    private static func declared(in file: SourceText) -> Set<Substring> {
        let keywords: Set<Substring> = ["func", "var", "let", "struct", "enum", "class"]
        return file.code.reduce(into: []) { names, line in
            let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
            for (before, name) in zip([""] + words, words)
            where keywords.contains(before) || name == "init" || name == "subscript" { names.insert(name) }
        }
    }

    private static func wrongFigures(in text: String, _ steps: [Step]) -> [Violation] {
        var sections: [String] = []
        for step in steps where sections.last != step.section { sections.append(step.section) }
        return self.ways.compactMap { way in
            let counted = Set(sections.prefix(way.sectionCount ?? sections.count))
            let figures = Figures(steps.filter { counted.contains($0.section) })
            let row =
                "| \(way.name) | \(figures.files) | \(figures.modules) "
                + "| \(figures.filesOfAllRows) | \(figures.modulesOfAllRows) |"
            guard !text.contains(row) else { return nil }
            return Violation(path: self.page, line: 1, message: "its figures should be \"\(row)\"")
        }
    }
}
