/// Tasks that wait for a slot, by name: which of those whose names begin alike came first costs a descent.
///
/// Several balanced trees in one memory. In each the tasks are in the order of their names, those of one name in the
/// order in which they came; every node knows the first comer below it.
struct TaskTree {
    /// A task in a tree, or the tree that begins with it.
    typealias Node = Int32

    /// No task, and an empty tree.
    static let none: Node = -1

    private struct Place {
        let task: ReadyTask
        /// The order in which tasks came.
        let order: UInt64
        var left = TaskTree.none
        var right = TaskTree.none
        /// The first comer of this tree.
        var earliest: Node
        var height: Int8 = 1
        var isUsed = true
    }

    private var places: [Place] = []
    private var unused: [Node] = []
    private var lastOrder: UInt64 = 0

    /// How many places there are, used or not.
    var capacity: Int { self.places.count }

    /// The task in a place.
    func task(_ node: Node) -> ReadyTask { self.places[Int(node)].task }

    /// The task in one of the `capacity` places; nil when it is not used.
    func task(at place: Int) -> ReadyTask? { self.places[place].isUsed ? self.places[place].task : nil }

    /// Whether `node` came before `other`.
    func isBefore(_ node: Node, _ other: Node) -> Bool {
        self.places[Int(node)].order < self.places[Int(other)].order
    }

    /// Puts a task behind all that have come.
    mutating func append(_ task: ReadyTask, to root: inout Node) -> Node {
        self.lastOrder += 1
        let node = self.unused.popLast() ?? Node(self.places.count)
        let place = Place(task: task, order: self.lastOrder, earliest: node)
        if Int(node) == self.places.count { self.places.append(place) } else { self.places[Int(node)] = place }
        root = self.insert(node, under: root)
        return node
    }

    /// Takes a task out of its tree.
    mutating func remove(_ node: Node, from root: inout Node) {
        root = self.take(node, from: root)
        self.places[Int(node)].isUsed = false
        self.unused.append(node)
        guard self.unused.count == self.places.count else { return }
        // Nothing waits in any tree: the memory of a crowd is given back.
        self.places = []
        self.unused = []
    }
}

// MARK: - Ranges

extension TaskTree {
    /// Where a name is, as some neighbouring names are meant.
    enum Side {
        case before, within, after
    }

    /// The first comer of those whose names are `within`; nil when there are none.
    func earliest(in root: Node, _ side: (String) -> Side) -> Node? {
        var top = root
        while top != Self.none {
            let side = side(self.task(top).target.name)
            if side == .within { break }
            top = side == .before ? self.places[Int(top)].right : self.places[Int(top)].left
        }
        guard top != Self.none else { return nil }
        var best = top
        func consider(_ node: Node) { if node != Self.none, self.isBefore(node, best) { best = node } }
        /// - `inner`: the side towards the top.
        func look(_ start: Node, inner: (Place) -> Node, outer: (Place) -> Node) {
            var node = start
            while node != Self.none {
                let place = self.places[Int(node)]
                guard side(place.task.target.name) == .within else {
                    node = inner(place)
                    continue
                }
                consider(node)
                consider(self.earliest(inner(place)))
                node = outer(place)
            }
        }
        // To the left of the top nothing is after, to its right nothing is before.
        look(self.places[Int(top)].left, inner: { $0.right }, outer: { $0.left })
        look(self.places[Int(top)].right, inner: { $0.left }, outer: { $0.right })
        return best
    }

    private func earliest(_ root: Node) -> Node { root == Self.none ? Self.none : self.places[Int(root)].earliest }
}

// MARK: - Balance

extension TaskTree {
    private func standsBefore(_ node: Node, _ other: Node) -> Bool {
        let (one, two) = (self.places[Int(node)].task.target.name, self.places[Int(other)].task.target.name)
        return one == two ? self.isBefore(node, other) : one < two
    }

    private mutating func insert(_ node: Node, under root: Node) -> Node {
        guard root != Self.none else { return node }
        if self.standsBefore(node, root) {
            let left = self.insert(node, under: self.places[Int(root)].left)
            self.places[Int(root)].left = left
        } else {
            let right = self.insert(node, under: self.places[Int(root)].right)
            self.places[Int(root)].right = right
        }
        return self.balanced(root)
    }

    private mutating func take(_ node: Node, from root: Node) -> Node {
        precondition(root != Self.none, "the task is in this tree")
        let (left, right) = (self.places[Int(root)].left, self.places[Int(root)].right)
        if node == root {
            guard left != Self.none else { return right }
            guard right != Self.none else { return left }
            let (first, rest) = self.takeFirst(of: right)
            self.places[Int(first)].left = left
            self.places[Int(first)].right = rest
            return self.balanced(first)
        }
        if self.standsBefore(node, root) {
            let rest = self.take(node, from: left)
            self.places[Int(root)].left = rest
        } else {
            let rest = self.take(node, from: right)
            self.places[Int(root)].right = rest
        }
        return self.balanced(root)
    }

    private mutating func takeFirst(of root: Node) -> (first: Node, rest: Node) {
        let left = self.places[Int(root)].left
        guard left != Self.none else { return (root, self.places[Int(root)].right) }
        let (first, rest) = self.takeFirst(of: left)
        self.places[Int(root)].left = rest
        return (first, self.balanced(root))
    }

    private func height(_ root: Node) -> Int8 { root == Self.none ? 0 : self.places[Int(root)].height }

    /// How much higher the left side is than the right one.
    private func slant(_ root: Node) -> Int8 {
        self.height(self.places[Int(root)].left) - self.height(self.places[Int(root)].right)
    }

    /// Makes a tree whose sides were changed by one task an even one.
    private mutating func balanced(_ root: Node) -> Node {
        switch self.slant(root) {
        case 2...:
            let left = self.places[Int(root)].left
            if self.slant(left) < 0 { self.places[Int(root)].left = self.turnedLeft(left) }
            return self.turnedRight(root)
        case ...(-2):
            let right = self.places[Int(root)].right
            if self.slant(right) > 0 { self.places[Int(root)].right = self.turnedRight(right) }
            return self.turnedLeft(root)
        default:
            self.update(root)
            return root
        }
    }

    private mutating func turnedRight(_ root: Node) -> Node {
        let top = self.places[Int(root)].left
        self.places[Int(root)].left = self.places[Int(top)].right
        self.places[Int(top)].right = root
        self.update(root)
        self.update(top)
        return top
    }

    private mutating func turnedLeft(_ root: Node) -> Node {
        let top = self.places[Int(root)].right
        self.places[Int(root)].right = self.places[Int(top)].left
        self.places[Int(top)].left = root
        self.update(root)
        self.update(top)
        return top
    }

    private mutating func update(_ root: Node) {
        let (left, right) = (self.places[Int(root)].left, self.places[Int(root)].right)
        var earliest = root
        for side in [self.earliest(left), self.earliest(right)] where side != Self.none {
            if self.isBefore(side, earliest) { earliest = side }
        }
        self.places[Int(root)].earliest = earliest
        self.places[Int(root)].height = max(self.height(left), self.height(right)) + 1
    }
}
