import Policy

/// The tasks and sessions of one topic that wait for a slot, in the order in which they came to wait.
///
/// A stream finds the first comer that it takes by a descent for each of its patterns, whoever else waits: a pattern
/// that is new has nothing to catch up with. Each is kept once, whatever comes and goes; what no longer waits is
/// dropped when a stream comes upon it, and by a hand that goes round as others come.
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

    private struct Place {
        let node: TaskTree.Node
        let needs: Int
    }

    /// How many places the hand looks at for each task that comes: more than one, so that what has gone is never more
    /// than what waits.
    private static let looksPerTask = 2

    private var tree = TaskTree()
    private var sessions = TaskTree.none
    private var requests = NeedClasses()
    private var places: [Key: Place] = [:]
    /// The place that the hand looks at next.
    private var hand = 0

    /// Nothing waits.
    init() {}

    /// How many there are, those included that wait no longer and were not dropped yet.
    var count: Int { self.places.count }

    /// Something came to wait: it goes behind all that wait.
    ///
    /// - `isReady`: whether a task waits still.
    mutating func append(_ task: ReadyTask, isReady: (ReadyTask) -> Bool) {
        self.remove(task.device, task.target)
        let key = Key(task.device, task.target)
        if key.isSession {
            let node = self.tree.append(task, to: &self.sessions)
            self.places[key] = Place(node: node, needs: NeedClasses.nothing)
        } else {
            let needs = self.requests.number(ResourceNames.sorted(task.target.resources))
            let node = self.tree.append(task, to: &self.requests[needs])
            self.places[key] = Place(node: node, needs: needs)
        }
        for _ in 0..<Self.looksPerTask { self.sweep(isReady) }
    }

    /// What waited was launched, or waits no longer.
    mutating func remove(_ device: DeviceIndex, _ target: LaunchTarget) {
        guard !self.places.isEmpty else { return }
        let key = Key(device, target)
        guard let place = self.places.removeValue(forKey: key) else { return }
        if key.isSession {
            self.tree.remove(place.node, from: &self.sessions)
        } else {
            self.tree.remove(place.node, from: &self.requests[place.needs])
            self.requests.dropIfEmpty(place.needs)
        }
        if self.places.isEmpty { self.places = [:] }
    }

    /// The first comer of those that a stream asked for.
    func first(for request: SubscriptionRequest) -> ReadyTask? {
        guard !self.places.isEmpty else { return nil }
        var best: TaskTree.Node?
        func consider(_ root: TaskTree.Node, _ patterns: [IdentifierPattern]) {
            for pattern in patterns {
                guard let node = self.tree.earliest(in: root, { pattern.side($0) }) else { continue }
                if best.map({ self.tree.isBefore(node, $0) }) ?? true { best = node }
            }
        }
        if !request.tasks.isEmpty {
            self.requests.forEach(offered: request.resources) { consider($0, request.tasks) }
        }
        if self.sessions != TaskTree.none { consider(self.sessions, request.sessions) }
        return best.map { self.tree.task($0) }
    }

    /// Drops the task that the hand points at if it waits no longer.
    private mutating func sweep(_ isReady: (ReadyTask) -> Bool) {
        if self.hand >= self.tree.capacity { self.hand = 0 }
        guard self.hand < self.tree.capacity else { return }
        if let task = self.tree.task(at: self.hand), !isReady(task) {
            self.remove(task.device, task.target)
        }
        self.hand += 1
    }
}
