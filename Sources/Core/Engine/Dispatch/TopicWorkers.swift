import Policy
import Wire

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// The streams that take pushes of any device.
    private var pushes = StreamRotation(isOfTasks: false)
    private var naming = NamingStreams()
    private var tasks = TaskClasses()
    /// How many streams offer each resource.
    private var offers: [String: Int] = [:]
    /// What waits for a slot of a stream that names no device.
    var waiting = WaitingTasks()
    /// What the streams hear of conditions.
    var conditions = ConditionsLog()
    /// Whether the topic waits for its turn to be told.
    var isToldOfConditions = false
    /// The stalled streams, by the order in which they came.
    var stalled: [UInt64: Subscription] = [:]
    var connected = 0
    var slots = 0
    var busy = 0

    /// Puts a free stream that takes wakes of any device at the end of the rotations.
    mutating func rotate(_ subscription: Subscription) {
        guard subscription.request.devices.isEmpty, subscription.isFree else { return }
        if subscription.request.takesPushes { self.pushes.append(subscription) }
        subscription.taskClass?.rotation.append(subscription)
    }

    /// The stream whose turn it is to get a push.
    mutating func nextInRotation() -> Subscription? { self.pushes.next() }

    /// A stream got a wake: if it was next, it goes to the end.
    mutating func turnEnded(_ subscription: Subscription, isPush: Bool) {
        if isPush {
            self.pushes.turnEnded(subscription)
        } else if let taskClass = subscription.taskClass {
            self.tasks.noteTurn(subscription)
            taskClass.rotation.turnEnded(subscription)
        }
    }

    /// Returns whether the stream is the next to get a push or a task.
    func isNext(_ subscription: Subscription, isPush: Bool) -> Bool {
        isPush ? self.pushes.isNext(subscription) : subscription.taskClass?.rotation.isNext(subscription) ?? false
    }

    /// A stream that was next did not get its wake after all: it is next again.
    mutating func turnTakenBack(_ subscription: Subscription, isPush: Bool) {
        if isPush {
            if subscription.request.takesPushes { self.pushes.turnTakenBack(subscription) }
        } else {
            subscription.taskClass?.rotation.turnTakenBack(subscription)
        }
    }

    /// The stream that a task of this device goes to: a free one that names it, or else the one whose turn it is.
    mutating func free(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        self.naming.first(token, target) ?? self.tasks.next(target)
    }

    /// Whether any stream, free or not, takes such a task of this device.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        self.naming.isTaken(token, target) || self.tasks.isTaken(target)
    }

    /// What the streams offer, in the order of their names.
    var resources: [String] { self.offers.keys.sorted() }

    /// Conditions of a device have changed: all streams that name it, or none, are to hear of it.
    mutating func conditionsChanged(_ device: DeviceIndex, _ token: borrowing DeviceToken) {
        self.conditions.append(device)
        var naming: [Subscription] = []
        self.naming.forEachHearing(token) { naming.append($0) }
        for stream in naming { self.conditions.append(device, for: stream) }
    }

    /// A free stream that takes pushes and names this device: the one with the fewest wakes.
    mutating func naming(_ token: borrowing DeviceToken) -> Subscription? { self.naming.first(token) }

    /// How many streams name this device, free or not.
    func countNaming(_ token: DeviceToken) -> Int { self.naming.count(token) }

    /// A stream that names devices holds more or fewer wakes, or can take one that could not, or no more.
    mutating func changed(_ subscription: Subscription) { self.naming.changed(subscription) }

    /// The number of classes that were looked at for tasks.
    var classesLookedAt: Int64 { self.tasks.classesLookedAt }

    mutating func insert(_ subscription: Subscription) {
        self.connected += 1
        self.slots += subscription.slots
        self.naming.insert(subscription)
        if subscription.request.devices.isEmpty { self.tasks.insert(subscription) }
        for resource in subscription.request.resources { self.offers[resource, default: 0] += 1 }
        if subscription.request.reportsConditions { self.conditions.insert(subscription) }
        self.rotate(subscription)
    }

    mutating func remove(_ subscription: Subscription) {
        self.connected -= 1
        self.slots -= subscription.slots
        self.naming.remove(subscription)
        self.tasks.remove(subscription)
        self.pushes.remove(subscription)
        for resource in subscription.request.resources {
            self.offers[resource] = self.offers[resource].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
        if subscription.request.reportsConditions { self.conditions.remove(subscription) }
    }
}

/// Free streams that take turns: each gets one wake and goes to the end.
///
/// A stream that is no longer free is skipped, and is appended again once it is free.
struct StreamRotation {
    /// True if this is a rotation for tasks, where a stream stands besides the one for pushes.
    private let isOfTasks: Bool
    private var streams: [Subscription] = []
    /// The place of the stream that is next.
    private var first = 0
    /// The number of streams that stand here though they have ended.
    private var ended = 0

    /// A rotation without streams.
    init(isOfTasks: Bool) { self.isOfTasks = isOfTasks }

    /// Returns the free stream whose turn it is.
    mutating func next() -> Subscription? {
        while self.first < self.streams.count {
            let stream = self.streams[self.first]
            if stream.isFree { return stream }
            self.dropFirst()
        }
        return nil
    }

    /// Returns whether the stream is next.
    func isNext(_ stream: Subscription) -> Bool {
        self.first < self.streams.count && self.streams[self.first] === stream
    }

    /// Puts a free stream at the end, unless it stands here.
    mutating func append(_ stream: Subscription) {
        guard !self.contains(stream) else { return }
        self.setContains(stream, true)
        self.streams.append(stream)
    }

    /// The stream got a wake: if it was next, it goes to the end.
    mutating func turnEnded(_ stream: Subscription) {
        guard self.isNext(stream) else { return }
        self.dropFirst()
        if stream.isFree { self.append(stream) }
    }

    /// The stream, which was next, did not get its wake after all: it is next again.
    mutating func turnTakenBack(_ stream: Subscription) {
        if self.contains(stream), self.streams.count - self.first > 1, self.streams.last === stream {
            self.streams.removeLast()
            self.setContains(stream, false)
        }
        guard stream.isFree, !self.contains(stream) else { return }
        self.setContains(stream, true)
        if self.first > 0 {
            self.first -= 1
            self.streams[self.first] = stream
        } else {
            self.streams.insert(stream, at: 0)
        }
    }

    /// Notes that a stream has ended. Streams may come and go though no wake ever turns the rotation.
    mutating func remove(_ stream: Subscription) {
        guard self.contains(stream) else { return }
        self.ended += 1
        guard self.ended > 64, self.ended * 2 > self.streams.count else { return }
        self.streams.removeFirst(self.first)
        self.first = 0
        self.streams.removeAll { $0.hasEnded }
        self.ended = 0
    }

    private mutating func dropFirst() {
        let stream = self.streams[self.first]
        self.setContains(stream, false)
        if stream.hasEnded { self.ended -= 1 }
        self.first += 1
        if self.first > 64, self.first * 2 > self.streams.count {
            self.streams.removeFirst(self.first)
            self.first = 0
        }
    }

    private func contains(_ stream: Subscription) -> Bool {
        self.isOfTasks ? stream.isInTaskRotation : stream.isInRotation
    }

    private func setContains(_ stream: Subscription, _ isContained: Bool) {
        if self.isOfTasks { stream.isInTaskRotation = isContained } else { stream.isInRotation = isContained }
    }
}

/// The streams of a topic that name no device and take tasks, in classes that take the same.
///
/// The classes with a pattern for a name are found by a look-up for the name and for each of its beginnings. Each of
/// them is looked at, which costs the same for any number of streams: what is next in its rotation. A topic has as many
/// classes as its streams differ in their patterns and resources.
struct TaskClasses {
    /// Streams that take the same tasks and sessions.
    final class TaskClass {
        fileprivate let shape: Shape
        fileprivate var streamCount = 0
        fileprivate(set) var rotation = StreamRotation(isOfTasks: true)

        fileprivate init(_ shape: Shape) { self.shape = shape }
    }

    fileprivate struct Shape: Hashable {
        let tasks: [IdentifierPattern]
        let sessions: [IdentifierPattern]
        let resources: [String]

        var patterns: [Pattern] {
            self.tasks.map { Pattern(isSession: false, isExact: $0.isExact, stem: $0.stem) }
                + self.sessions.map { Pattern(isSession: true, isExact: $0.isExact, stem: $0.stem) }
        }
    }

    fileprivate struct Pattern: Hashable {
        let isSession: Bool
        let isExact: Bool
        let stem: String
    }

    private var classes: [Shape: TaskClass] = [:]
    /// The classes with each pattern.
    private var takers: [Pattern: [TaskClass]] = [:]
    /// The number of patterns of `takers` that stand for beginnings, by the length of the beginning in bytes.
    private var stemLengths: [Int: Int] = [:]
    private var lastTurn: UInt64 = 0
    /// The number of classes that were looked at.
    private(set) var classesLookedAt: Int64 = 0

    /// No streams.
    init() {}

    /// Adds a stream that names no device.
    mutating func insert(_ stream: Subscription) {
        guard stream.request.takesTasks else { return }
        self.noteTurn(stream)
        let shape = Shape(
            tasks: stream.request.tasks,
            sessions: stream.request.sessions,
            resources: stream.request.resources
        )
        let taskClass = self.classes[shape] ?? self.makeClass(shape)
        taskClass.streamCount += 1
        stream.taskClass = taskClass
    }

    /// Removes a stream that has ended.
    mutating func remove(_ stream: Subscription) {
        guard let taskClass = stream.taskClass else { return }
        taskClass.rotation.remove(stream)
        stream.taskClass = nil
        taskClass.streamCount -= 1
        guard taskClass.streamCount == 0 else { return }
        self.classes[taskClass.shape] = nil
        for pattern in Set(taskClass.shape.patterns) {
            self.takers[pattern]?.removeAll { $0 === taskClass }
            guard self.takers[pattern]?.isEmpty == true else { continue }
            self.takers[pattern] = nil
            if !pattern.isExact { self.countStem(pattern.stem.utf8.count, -1) }
        }
    }

    /// Notes that a stream got a task.
    mutating func noteTurn(_ stream: Subscription) {
        self.lastTurn += 1
        stream.lastTurn = self.lastTurn
    }

    /// Returns the free stream that takes such a task: of those that are next in their class, the one whose last task
    /// is the longest ago.
    mutating func next(_ target: LaunchTarget) -> Subscription? {
        guard !self.classes.isEmpty else { return nil }
        var best: Subscription?
        for pattern in self.patterns(for: target) {
            for taskClass in self.takers[pattern] ?? [] {
                self.classesLookedAt += 1
                guard ResourceNames.isSatisfied(target.resources, by: taskClass.shape.resources),
                    let stream = taskClass.rotation.next()
                else { continue }
                if best.map({ stream.lastTurn < $0.lastTurn }) ?? true { best = stream }
            }
        }
        return best
    }

    /// Returns whether any stream, free or not, takes such a task.
    func isTaken(_ target: LaunchTarget) -> Bool {
        guard !self.classes.isEmpty else { return false }
        return self.patterns(for: target).contains { pattern in
            self.takers[pattern]?.contains { ResourceNames.isSatisfied(target.resources, by: $0.shape.resources) }
                == true
        }
    }

    /// The patterns for a task's name, of those that some stream may have.
    private func patterns(for target: LaunchTarget) -> [Pattern] {
        let isSession = target.kind == .urlSession
        var patterns = [Pattern(isSession: isSession, isExact: true, stem: target.name)]
        let name = target.name.utf8
        for (place, byte) in name.enumerated() where byte == UInt8(ascii: ".") && place + 1 < name.count {
            guard self.stemLengths[place + 1] != nil else { continue }
            let stem = String(name.prefix(place + 1)) ?? ""
            patterns.append(Pattern(isSession: isSession, isExact: false, stem: stem))
        }
        return patterns
    }

    private mutating func makeClass(_ shape: Shape) -> TaskClass {
        let taskClass = TaskClass(shape)
        self.classes[shape] = taskClass
        for pattern in Set(shape.patterns) {
            if self.takers[pattern] == nil, !pattern.isExact { self.countStem(pattern.stem.utf8.count, 1) }
            self.takers[pattern, default: []].append(taskClass)
        }
        return taskClass
    }

    private mutating func countStem(_ length: Int, _ change: Int) {
        let count = self.stemLengths[length, default: 0] + change
        self.stemLengths[length] = count > 0 ? count : nil
    }
}
