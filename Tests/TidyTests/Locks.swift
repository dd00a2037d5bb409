/// The page that lists every lock in the order in which they are taken. It must agree with the sources.
enum Locks {
    static let page = "Sources/Server/Gateway/Gateway.docc/LocksAndShutdown.md"

    /// A lock in the sources, or on the page.
    struct Lock: Hashable {
        /// The path starting after the layer's folder. It begins with the module.
        let file: String
        /// The property or variable that holds it.
        let name: String
        /// Counted from 1.
        let line: Int

        var key: String { "`\(self.file)` `\(self.name)`" }
    }

    private static let types = ["Monitor", "Mutex", "Latch", "DispatchQueue"]

    /// Returns the locks that files declare.
    static func declared(in files: [SourceText]) -> [Lock] {
        let declaration = /\b(?:let|var) (\w+)(?:: | = )(?:Mutex[<(]|(?:Monitor|Latch)\b|DispatchQueue(?:\(label|$))/
        return files.filter(\.isSource).flatMap { file in
            zip(1..., file.code).compactMap { number, line -> Lock? in
                guard self.types.contains(where: { line.containsBytes(of: $0) }),
                    let found = line.firstMatch(of: declaration)
                else { return nil }
                let path = file.path.split(separator: "/").dropFirst(2).joined(separator: "/")
                return Lock(file: path, name: String(found.output.1), line: number)
            }
        }
    }

    /// Returns the locks on the page in their order, each with the locks that are taken under it.
    static func listed(in page: String) -> [(lock: Lock, taken: [Lock])] {
        zip(1..., page.split(separator: "\n", omittingEmptySubsequences: false)).compactMap { number, line in
            let parts = line.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
            guard parts.count >= 5, parts[0] == "| ", parts[1].hasSuffix(".swift"), parts[2] == " " else { return nil }
            let taken = stride(from: 5, to: parts.count - 2, by: 2).filter { parts[$0].hasSuffix(".swift") }
            return (
                Lock(file: parts[1], name: parts[3], line: number),
                taken.map { Lock(file: parts[$0], name: parts[$0 + 2], line: number) }
            )
        }
    }

    /// Returns the locks that the page does not list, the listed locks that do not exist, and the locks that are taken
    /// in a different order from that of the page.
    static func violations(in page: String, files: [SourceText]) -> [Violation] {
        let listed = self.listed(in: page)
        let declared = self.declared(in: files)
        let places = Dictionary(zip(listed.map(\.lock.key), 0...)) { first, _ in first }
        let keys = Set(declared.map(\.key))
        var violations = declared.filter { places[$0.key] == nil }.map { lock in
            let message = "\(lock.key) is not listed; say what it guards and what is done under it"
            return Violation(path: self.page, line: 1, message: message)
        }
        for (place, row) in listed.enumerated() {
            if !keys.contains(row.lock.key) || places[row.lock.key] != place {
                let message = "\(row.lock.key) is not a lock, or is listed before"
                violations.append(Violation(path: self.page, line: row.lock.line, message: message))
            }
            for lock in row.taken where places[lock.key].map({ $0 <= place }) ?? true {
                let message = "\(lock.key) does not stand below \(row.lock.key), under which it is taken"
                violations.append(Violation(path: self.page, line: lock.line, message: message))
            }
        }
        return violations
    }
}
