import LaunchPolicy

/// What a stream takes: a name, or all that begin alike.
package struct NamePattern: Hashable, Sendable {
    /// As it was given: the name, or, with `.*` at its end, the beginning and `.*` for one or more further characters.
    package let text: String
    /// The name, or the beginning with its dot.
    let stem: String
    let isExact: Bool

    package init(_ text: String) {
        self.text = text
        self.isExact = !text.hasSuffix(".*")
        self.stem = self.isExact ? text : String(text.dropLast())
    }

    /// Whether `name` is one of those that the pattern stands for.
    package func matches(_ name: String) -> Bool {
        guard !self.isExact else { return name == self.stem }
        return name.utf8.count > self.stem.utf8.count && name.utf8.starts(with: self.stem.utf8)
    }

    /// Where a name is, seen from those that the pattern stands for: they are neighbours in the order of names.
    func side(_ name: String) -> TaskTree.Side {
        if self.matches(name) { return .within }
        // A beginning alone stands before all that it begins.
        return name == self.stem || name < self.stem ? .before : .after
    }
}

/// Resources as sets of names are compared: in their order, each once.
enum ResourceNames {
    static func sorted(_ names: [String]) -> [String] {
        guard names.count > 1 else { return names }
        return Set(names).sorted()
    }

    /// Whether all that is needed is offered; both in their order.
    static func isSatisfied(_ needed: [String], by offered: [String]) -> Bool {
        needed.allSatisfy { offered.contains($0) }
    }
}
