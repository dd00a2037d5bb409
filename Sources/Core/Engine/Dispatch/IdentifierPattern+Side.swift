import Policy

extension IdentifierPattern {
    /// Where a name is, seen from those that the pattern stands for: they are neighbours in the order of names.
    func side(_ name: String) -> TaskTree.Side {
        if self.matches(name) { return .within }
        // A beginning alone stands before all that it begins.
        return name == self.stem || name < self.stem ? .before : .after
    }
}
