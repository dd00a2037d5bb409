import Policy
import Wire

/// The tasks and sessions of one topic that wait for a slot, in the order of `ReadyOrder`.
///
/// To find the first task for a stream, the search descends one tree for each pattern and each set of resources. A
/// stream offers at most eight resources, so it can satisfy at most 256 sets. Sets that no waiting task needs have no
/// tree. A descent costs O(log n) for n waiting tasks.
///
/// An obsolete task is dropped when a stream finds it, or by a scan that advances as tasks are added.
struct WaitingTasks {
    private struct Key: Hashable {
        let device: DeviceIndex
        let isSession: Bool
        let name: String

        init(_ device: DeviceIndex, _ target: LaunchTarget) {
            self.device = device
            self.isSession = target.kind == .urlSession
            self.name = target.name
        }
    }

    /// Sessions, or the tasks that need the same resources.
    private struct Group: Hashable {
        static let sessions = Group(isSession: true, needs: [])

        let isSession: Bool
        /// The distinct needed resources, sorted.
        let needs: [String]
    }

    /// The number of array elements that the scan checks for each added task. Two checks per task keep obsolete tasks
    /// in the minority.
    private static let checksPerAppend = 2

    private var tree = TaskTree()
    /// The tree of each group that has tasks.
    private var roots: [Group: TaskTree.Node] = [:]
    private var nodes: [Key: TaskTree.Node] = [:]
    /// The index of the element that the scan checks next.
    private var sweepIndex = 0

    /// The number of tasks, including obsolete tasks that were not dropped yet.
    var count: Int { self.nodes.count }

    /// Adds a task.
    ///
    /// - `key`: the secret that determines the shape of the trees.
    /// - `isReady`: returns true if a task still waits.
    mutating func append(_ task: ReadyTask, key: HashKey, isReady: (ReadyTask) -> Bool) {
        self.remove(task.device, task.target)
        let group = self.group(of: task.target)
        self.nodes[Key(task.device, task.target)] = self.tree.append(
            task,
            key: key,
            to: &self.roots[group, default: TaskTree.none]
        )
        for _ in 0..<Self.checksPerAppend { self.sweep(isReady) }
    }

    /// Removes a task that was launched or no longer waits.
    mutating func remove(_ device: DeviceIndex, _ target: LaunchTarget) {
        guard !self.nodes.isEmpty, let node = self.nodes.removeValue(forKey: Key(device, target)) else { return }
        let group = self.group(of: self.tree.task(node).target)
        self.tree.remove(node, from: &self.roots[group, default: TaskTree.none])
        if self.roots[group] == TaskTree.none { self.roots[group] = nil }
        if self.nodes.isEmpty { self.nodes = [:] }
    }

    /// Returns the first task that a stream accepts.
    func first(for request: SubscriptionRequest) -> ReadyTask? {
        guard !self.nodes.isEmpty else { return nil }
        var best = TaskTree.none
        func consider(_ group: Group, _ patterns: [IdentifierPattern]) {
            guard let root = self.roots[group] else { return }
            for pattern in patterns { best = self.tree.earlier(best, self.tree.earliest(in: root, pattern)) }
        }
        consider(.sessions, request.sessions)
        let offered = request.resources
        if self.roots.count <= 1 << offered.count {
            for group in self.roots.keys where !group.isSession && ResourceNames.isSatisfied(group.needs, by: offered) {
                consider(group, request.tasks)
            }
        } else {
            for subset in 0..<(1 << offered.count) {
                let needs = offered.indices.filter { subset >> $0 & 1 == 1 }.map { offered[$0] }
                consider(Group(isSession: false, needs: needs), request.tasks)
            }
        }
        return best == TaskTree.none ? nil : self.tree.task(best)
    }

    private func group(of target: LaunchTarget) -> Group {
        target.kind == .urlSession
            ? .sessions : Group(isSession: false, needs: ResourceNames.sorted(target.resources))
    }

    /// Drops the task at the scan's index if it no longer waits.
    private mutating func sweep(_ isReady: (ReadyTask) -> Bool) {
        if self.sweepIndex >= self.tree.capacity { self.sweepIndex = 0 }
        guard self.sweepIndex < self.tree.capacity else { return }
        if let task = self.tree.task(at: self.sweepIndex), !isReady(task) {
            self.remove(task.device, task.target)
        }
        self.sweepIndex += 1
    }
}

/// Waiting tasks by name. The search for the first task with a name prefix is one descent.
///
/// Several trees share one array. Each orders its tasks by name, then by `ReadyOrder` and arrival. Each node stores the
/// first task of its subtree in launch order. The trees are treaps: a parent has a greater priority than its children,
/// and priorities are random. A tree of n tasks is therefore about 3 log n deep for any names.
struct TaskTree {
    /// A task, or the root of a tree.
    typealias Node = Int32

    /// No task, or the empty tree.
    static let none: Node = -1

    private struct Entry {
        let task: ReadyTask
        /// The sequence number of the task.
        let number: UInt64
        let priority: UInt64
        var left = TaskTree.none
        var right = TaskTree.none
        /// The first task of this tree in launch order.
        var earliest: Node
        var isUsed = true

        /// Returns true if this task launches before the other task.
        func launchesBefore(_ other: Entry) -> Bool {
            self.task.order == other.task.order ? self.number < other.number : self.task.order < other.task.order
        }
    }

    private var entries: [Entry] = []
    private var unused: [Node] = []
    private var lastNumber: UInt64 = 0

    /// The number of array elements, used or not.
    var capacity: Int { self.entries.count }

    /// Returns the task of a node.
    func task(_ node: Node) -> ReadyTask { self.entries[Int(node)].task }

    /// Returns the task at an index below `capacity`, or nil if the element is not used.
    func task(at index: Int) -> ReadyTask? { self.entries[index].isUsed ? self.entries[index].task : nil }

    /// Returns the node whose task launches first. If one of the nodes is `none`, returns the other node.
    func earlier(_ one: Node, _ other: Node) -> Node {
        guard one != Self.none, other != Self.none else { return max(one, other) }
        return self.entries[Int(one)].launchesBefore(self.entries[Int(other)]) ? one : other
    }

    /// Adds a task.
    mutating func append(_ task: ReadyTask, key: HashKey, to root: inout Node) -> Node {
        self.lastNumber += 1
        let node = self.unused.popLast() ?? Node(self.entries.count)
        // Clients do not know the key, so they cannot choose the shape of a tree.
        let priority = key.hash(self.lastNumber, 0)
        let entry = Entry(task: task, number: self.lastNumber, priority: priority, earliest: node)
        if Int(node) == self.entries.count { self.entries.append(entry) } else { self.entries[Int(node)] = entry }
        root = self.insert(node, under: root)
        return node
    }

    /// Removes a task from its tree.
    mutating func remove(_ node: Node, from root: inout Node) {
        root = self.removeNode(node, from: root)
        self.entries[Int(node)].isUsed = false
        self.unused.append(node)
        guard self.unused.count == self.entries.count else { return }
        // All trees are empty. Releases the memory, which may be from a peak.
        self.entries = []
        self.unused = []
    }

    /// Returns the node of the first task in launch order whose name matches the pattern; `none` if there is none.
    ///
    /// - `reachesStart`: true if no name in the tree sorts before the matching names.
    /// - `reachesEnd`: true if no name in the tree sorts after the matching names.
    func earliest(
        in root: Node,
        _ pattern: IdentifierPattern,
        reachesStart: Bool = false,
        reachesEnd: Bool = false
    ) -> Node {
        guard root != Self.none else { return Self.none }
        if reachesStart, reachesEnd { return self.entries[Int(root)].earliest }
        let (left, right) = (self.entries[Int(root)].left, self.entries[Int(root)].right)
        let name = self.entries[Int(root)].task.target.name
        guard pattern.matches(name) else {
            // Matching names are adjacent, and a name equal to the stem sorts before them.
            let isBefore = name <= pattern.stem
            return self.earliest(
                in: isBefore ? right : left,
                pattern,
                reachesStart: reachesStart,
                reachesEnd: reachesEnd
            )
        }
        let first = self.earliest(in: left, pattern, reachesStart: reachesStart, reachesEnd: true)
        let last = self.earliest(in: right, pattern, reachesStart: true, reachesEnd: reachesEnd)
        return self.earlier(root, self.earlier(first, last))
    }
}

// MARK: - Treaps

extension TaskTree {
    private func sortsByNameBefore(_ node: Node, _ other: Node) -> Bool {
        let (one, two) = (self.entries[Int(node)].task.target.name, self.entries[Int(other)].task.target.name)
        return one == two ? self.entries[Int(node)].launchesBefore(self.entries[Int(other)]) : one < two
    }

    private mutating func insert(_ node: Node, under root: Node) -> Node {
        guard root != Self.none else { return node }
        guard self.entries[Int(node)].priority <= self.entries[Int(root)].priority else {
            let (left, right) = self.split(root, at: node)
            return self.join(node, left, right)
        }
        let (left, right) = (self.entries[Int(root)].left, self.entries[Int(root)].right)
        return self.sortsByNameBefore(node, root)
            ? self.join(root, self.insert(node, under: left), right)
            : self.join(root, left, self.insert(node, under: right))
    }

    private mutating func removeNode(_ node: Node, from root: Node) -> Node {
        precondition(root != Self.none, "the task is in this tree")
        let (left, right) = (self.entries[Int(root)].left, self.entries[Int(root)].right)
        if node == root { return self.merge(left, right) }
        return self.sortsByNameBefore(node, root)
            ? self.join(root, self.removeNode(node, from: left), right)
            : self.join(root, left, self.removeNode(node, from: right))
    }

    /// Divides a tree into the tasks before `node` and the tasks after it.
    private mutating func split(_ root: Node, at node: Node) -> (before: Node, after: Node) {
        guard root != Self.none else { return (Self.none, Self.none) }
        let (left, right) = (self.entries[Int(root)].left, self.entries[Int(root)].right)
        if self.sortsByNameBefore(root, node) {
            let (before, after) = self.split(right, at: node)
            return (self.join(root, left, before), after)
        }
        let (before, after) = self.split(left, at: node)
        return (before, self.join(root, after, right))
    }

    /// Merges two trees; all tasks of the first tree sort before those of the second tree.
    private mutating func merge(_ one: Node, _ two: Node) -> Node {
        guard one != Self.none, two != Self.none else { return max(one, two) }
        if self.entries[Int(one)].priority > self.entries[Int(two)].priority {
            return self.join(one, self.entries[Int(one)].left, self.merge(self.entries[Int(one)].right, two))
        }
        return self.join(two, self.merge(one, self.entries[Int(two)].left), self.entries[Int(two)].right)
    }

    /// Joins two trees under `root`.
    private mutating func join(_ root: Node, _ left: Node, _ right: Node) -> Node {
        func earliest(_ node: Node) -> Node { node == Self.none ? Self.none : self.entries[Int(node)].earliest }
        let first = self.earlier(root, self.earlier(earliest(left), earliest(right)))
        self.entries[Int(root)].left = left
        self.entries[Int(root)].right = right
        self.entries[Int(root)].earliest = first
        return root
    }
}
