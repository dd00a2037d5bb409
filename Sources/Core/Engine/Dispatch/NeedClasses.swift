/// The sets of resources that waiting tasks need, each with the tree of its tasks.
///
/// The classes that a stream can satisfy are found without looking at any other: a trie of the sets' sorted names.
struct NeedClasses {
    private struct Class {
        let parent: Int
        /// The resource that it needs besides those that its parent needs.
        let resource: String
        var children: [String: Int] = [:]
        var root = TaskTree.none
    }

    /// The number of the class that needs nothing.
    static let nothing = 0

    private var classes = [Class(parent: -1, resource: "")]
    private var unused: [Int] = []

    /// Classes without tasks.
    init() {}

    /// The tree of a class's tasks.
    subscript(number: Int) -> TaskTree.Node {
        get { self.classes[number].root }
        set { self.classes[number].root = newValue }
    }

    /// The number of the class that needs just these resources, made when it is new; it lasts until it is dropped.
    ///
    /// - `resources`: sorted, each once.
    mutating func number(_ resources: [String]) -> Int {
        var number = Self.nothing
        for resource in resources {
            if let child = self.classes[number].children[resource] {
                number = child
                continue
            }
            let child = self.unused.popLast() ?? self.classes.count
            let new = Class(parent: number, resource: resource)
            if child == self.classes.count { self.classes.append(new) } else { self.classes[child] = new }
            self.classes[number].children[resource] = child
            number = child
        }
        return number
    }

    /// Forgets a class that has no tasks any more.
    mutating func dropIfEmpty(_ number: Int) {
        var number = number
        while number != Self.nothing, self.classes[number].root == TaskTree.none,
            self.classes[number].children.isEmpty
        {
            let parent = self.classes[number].parent
            self.classes[parent].children[self.classes[number].resource] = nil
            self.unused.append(number)
            number = parent
        }
    }

    /// Calls `body` with the tree of every class that needs nothing but what is offered.
    ///
    /// - `offered`: sorted, each once.
    func forEach(offered: [String], _ body: (TaskTree.Node) -> Void) {
        self.visit(Self.nothing, offered[...], body)
    }

    private func visit(_ number: Int, _ offered: ArraySlice<String>, _ body: (TaskTree.Node) -> Void) {
        if self.classes[number].root != TaskTree.none { body(self.classes[number].root) }
        guard !self.classes[number].children.isEmpty else { return }
        for index in offered.indices {
            guard let child = self.classes[number].children[offered[index]] else { continue }
            self.visit(child, offered[(index + 1)...], body)
        }
    }
}
