/// Resources as sets of names are compared: in their order, each once.
enum ResourceNames {
    static func sorted(_ names: [String]) -> [String] {
        guard names.count > 1 else { return names }
        return Set(names).sorted()
    }

    /// Whether all that is needed is offered.
    static func isSatisfied(_ needed: [String], by offered: [String]) -> Bool {
        needed.allSatisfy { offered.contains($0) }
    }
}
