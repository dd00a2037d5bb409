import Wire

/// The number of an identifier or a session name. The policy compares numbers and does not know the texts.
package struct TaskName: Hashable, Sendable {
    /// The number, chosen by the code that owns the policy value; equal for equal identifiers or session names.
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// The requirements of a task.
package struct TaskNeeds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let network = TaskNeeds(rawValue: 1)
    package static let externalPower = TaskNeeds(rawValue: 2)

    // A continued task has neither requirement and uses these bits for other properties. In a cluster, gateways of
    // earlier versions read the same rows and ignore these bits.
    /// The strategy of a continued task is `fail`.
    fileprivate static let start = TaskNeeds(rawValue: 1)
    /// Pressure ended a launch of the continued task, which is held while memory pressure is critical.
    fileprivate static let memory = TaskNeeds(rawValue: 2)
}

/// The properties of a submitted request.
package enum TaskSubmission {
    /// The behavior of a continued task that cannot launch immediately.
    package enum Strategy: String, Sendable, CaseIterable {
        /// The request is pending.
        case queue
        /// The request is refused.
        case fail
    }

    /// The kind of task, with the options of the kind.
    package enum Kind: Hashable, Sendable {
        case appRefresh
        case processing(TaskNeeds)
        case continued(Strategy)
    }
}

extension TaskSubmission.Kind {
    package var taskKind: TaskKind {
        switch self {
        case .appRefresh: .appRefresh
        case .processing: .processing
        case .continued: .continued
        }
    }

    var needs: TaskNeeds {
        switch self {
        case .appRefresh: .network
        case .processing(let needs): needs
        case .continued(.queue): []
        case .continued(.fail): .start
        }
    }
}

/// A request, or the finished transfers of a session, from arrival to end.
package struct BackgroundTask: Hashable, Sendable {
    /// The identifier, or the name of the session. A request and a session may have the same name.
    package var name: TaskName
    /// The time of submission, or of the first finished transfer.
    package var arrivedAt: Instant
    /// The time that determines the launch order: the arrival, or the earliest start if that is later.
    package var waitsSince: Instant
    /// The arrival number on the device, unique and constant during the task's lifetime.
    package var arrival: UInt64
    /// The number of finished transfers; 0 for a request.
    package var transfers: UInt64
    /// The number of attempts.
    package var attempts: UInt32
    package var kind: TaskKind
    package var needs: TaskNeeds

    package init(
        name: TaskName,
        kind: TaskKind,
        needs: TaskNeeds = [],
        arrivedAt: Instant,
        waitsSince: Instant,
        arrival: UInt64,
        transfers: UInt64 = 0,
        attempts: UInt32 = 0
    ) {
        self.name = name
        self.arrivedAt = arrivedAt
        self.waitsSince = waitsSince
        self.arrival = arrival
        self.transfers = transfers
        self.attempts = attempts
        self.kind = kind
        self.needs = needs
    }

    /// True for a continued task with the strategy `fail`, which does not wait.
    var failsRatherThanWaits: Bool { self.kind == .continued && self.needs.contains(.start) }

    /// True for a continued task that pressure ended, until it launches again.
    var waitsForMemory: Bool {
        get { self.kind == .continued && self.needs.contains(.memory) }
        set {
            guard self.kind == .continued else { return }
            if newValue { self.needs.insert(.memory) } else { self.needs.remove(.memory) }
        }
    }

    /// Returns true if both have the same identifier, or the same session name.
    func isNamesake(of other: BackgroundTask) -> Bool {
        self.name == other.name && (self.kind == .urlSession) == (other.kind == .urlSession)
    }

    /// Adds the transfers of an ended wake of the same session, and adopts its position in the order.
    mutating func merge(_ older: BackgroundTask) {
        self.transfers += older.transfers
        self.arrivedAt = min(self.arrivedAt, older.arrivedAt)
        self.waitsSince = min(self.waitsSince, older.waitsSince)
        self.arrival = min(self.arrival, older.arrival)
    }
}

/// A launched task whose outcome is pending.
package struct TaskWake: Hashable, Sendable {
    /// The charge of a launch, with the state before the launch, which is restored if the wake is lost.
    package enum Charge: Hashable, Sendable {
        case nothing
        case short(before: Spacing)
        case processing(lastBefore: Instant)
    }

    /// The task. Its `attempts` include this launch, and its `arrival` identifies the wake.
    package var task: BackgroundTask
    package var launchedAt: Instant
    /// The time at which the wake expires unless its outcome arrives earlier.
    package var deadline: Instant
    package var charge: Charge
    /// The maximum progress reported in this launch of a continued task.
    package var progress: UInt64 = 0
    /// The total in the last progress report; 0 if there was none.
    package var total: UInt64 = 0
    /// The holds that applied when an operator launched the task. They do not interrupt the task.
    package var tolerated: Holds
    /// True if the task was cancelled. It does not become pending again when its wake is lost.
    package var isCancelled = false
    /// True if the device was removed after the launch. The task does not become pending again.
    package var isOfRemovedDevice = false

    package init(
        task: BackgroundTask,
        launchedAt: Instant,
        deadline: Instant,
        charge: Charge,
        tolerated: Holds = []
    ) {
        self.task = task
        self.launchedAt = launchedAt
        self.deadline = deadline
        self.charge = charge
        self.tolerated = tolerated
    }
}

/// The policy state of a device's requests, sessions and habits.
///
/// The state is blank, and need not be stored, if the device has no tasks, has never launched a processing task, and
/// has reported no use.
///
/// At most `TaskKind.waitingMax` tasks of each kind are pending, not counting lost tasks.
package struct BackgroundTasks: Hashable, Sendable {
    /// Pending tasks, in order of arrival.
    package internal(set) var waiting: [BackgroundTask]
    /// Launched tasks, by lane, and in each lane in order of launch.
    package internal(set) var inFlight: [TaskWake]
    /// The last launch of a processing task; `distantPast` before the first.
    package internal(set) var lastProcessing: Instant
    package internal(set) var usage: Usage
    /// The time at which memory pressure ends the next continued task in flight, as the lower 32 bits of its
    /// milliseconds plus 1; 0 for never. `pressureAt` restores the rest. At this position, the field takes no
    /// additional memory.
    package private(set) var pressure: UInt32
    package internal(set) var arrivals: Arrivals

    /// Creates a state from stored parts; without arguments, a blank state.
    package init(
        waiting: [BackgroundTask] = [],
        inFlight: [TaskWake] = [],
        lastProcessing: Instant = .distantPast,
        usage: Usage = Usage(),
        arrivals: Arrivals = Arrivals(),
        pressure: UInt32 = 0
    ) {
        self.waiting = waiting
        self.inFlight = inFlight
        self.lastProcessing = lastProcessing
        self.usage = usage
        self.arrivals = arrivals
        self.pressure = pressure
    }

    /// True if there is nothing to store.
    package var isBlank: Bool { self == BackgroundTasks() }
}

/// The order of arrival of requests, sessions and pushes on a device that has requests or sessions.
///
/// Without requests and sessions, all numbers are 0, so that later arrivals follow the pending push.
package struct Arrivals: Hashable, Sendable {
    /// The number of the latest arrival.
    package var latest: UInt64 = 0
    /// The number of the first push that was coalesced into the pending push.
    package var pendingPush: UInt64 = 0
    /// The number of the first push that was coalesced into the push in flight.
    package var pushInFlight: UInt64 = 0

    package init() {}
}

extension BackgroundTasks {
    /// True if a task is in flight in the lane of pushes.
    var fillShortLane: Bool { self.inFlight.contains { $0.task.kind.lane == .short } }

    private var isIdle: Bool { self.waiting.isEmpty && self.inFlight.isEmpty }

    /// Returns the number for a request or a session that arrived.
    mutating func arrived() -> UInt64 {
        self.arrivals.latest += 1
        return self.arrivals.latest
    }

    /// Assigns the number of a push that arrived while no push was pending.
    mutating func pushArrived() {
        self.arrivals.pendingPush = self.isIdle ? 0 : self.arrived()
    }

    /// Resets the arrivals and the time of pressure if no task needs them.
    mutating func left() {
        if self.isIdle { self.arrivals = Arrivals() }
        if self.pressure != 0, self.continuedInFlight.isEmpty { self.pressure = 0 }
    }

    /// Returns the time at which memory pressure ends the next continued task in flight; nil for never. It is at most
    /// 24 days from `now`.
    package func pressureAt(_ now: Instant) -> Instant? {
        guard self.pressure != 0 else { return nil }
        return now + Int64(Int32(truncatingIfNeeded: Int64(self.pressure) &- 1 &- now.milliseconds))
    }

    /// Sets the time at which memory pressure ends the next continued task in flight; nil for never.
    mutating func setPressure(_ moment: Instant?) {
        self.pressure = moment.map { max(1, UInt32(truncatingIfNeeded: $0.milliseconds &+ 1)) } ?? 0
    }

    /// The continued tasks in flight, in order of launch.
    var continuedInFlight: ArraySlice<TaskWake> {
        self.inFlight[(self.inFlight.firstIndex { $0.task.kind == .continued } ?? self.inFlight.endIndex)...]
    }

    /// Returns true if more continued tasks are in flight than allowed, after `continuedMax` was lowered.
    package func hasExcess(_ parameters: Parameters) -> Bool {
        let continuedMax = Int(parameters.continuedMax)
        return self.inFlight.count > continuedMax && self.continuedInFlight.count > continuedMax
    }

    mutating func wait(_ task: BackgroundTask) {
        let index = self.waiting.firstIndex { $0.arrival > task.arrival } ?? self.waiting.endIndex
        self.waiting.insert(task, at: index)
    }

    mutating func fly(_ wake: TaskWake) {
        let lane = wake.task.kind.lane
        let index = self.inFlight.firstIndex { $0.task.kind.lane > lane } ?? self.inFlight.endIndex
        self.inFlight.insert(wake, at: index)
    }

    /// Removes and returns the pending task with the name of `task`; nil if there is none.
    mutating func takeNamesake(of task: BackgroundTask) -> BackgroundTask? {
        guard let index = self.waiting.firstIndex(where: { $0.isNamesake(of: task) }) else { return nil }
        return self.waiting.remove(at: index)
    }
}

/// A pattern for identifiers or session names: a full name, or a prefix.
package struct IdentifierPattern: Hashable, Sendable {
    /// The identifier, or a prefix and `.*`, which stands for one or more characters.
    package let text: String
    /// The identifier, or the prefix up to and including its last dot.
    package let stem: String
    /// True if the pattern matches one identifier only.
    package let isExact: Bool

    /// The maximum length of an identifier and of a pattern, in bytes.
    package static let bytesMax = 255

    package init(_ text: String) {
        self.text = text
        self.isExact = !text.utf8.suffix(2).elementsEqual(".*".utf8)
        self.stem = self.isExact ? text : String(text.dropLast())
    }

    /// Returns true if the pattern matches `identifier`.
    package func matches(_ identifier: String) -> Bool {
        guard !self.isExact else { return identifier.utf8.elementsEqual(self.stem.utf8) }
        return identifier.utf8.count > self.stem.utf8.count && identifier.utf8.starts(with: self.stem.utf8)
    }

    /// Returns true if an identifier matches both patterns.
    package func overlaps(_ other: IdentifierPattern) -> Bool {
        if self.isExact { return other.matches(self.text) }
        if other.isExact { return self.matches(other.text) }
        return self.stem.utf8.starts(with: other.stem.utf8) || other.stem.utf8.starts(with: self.stem.utf8)
    }

    /// True if the pattern is an identifier, or an identifier followed by `.*`.
    package var isWellFormed: Bool {
        guard self.text.utf8.count <= Self.bytesMax else { return false }
        return Self.isIdentifier(self.text.utf8.dropLast(self.isExact ? 0 : 2))
    }

    /// Returns true if `text` can name a task or a session: 1 to 255 characters of A-Z a-z 0-9 . - _.
    package static func isIdentifier(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.count <= Self.bytesMax && text.allSatisfy { $0.isLetterOrDigit(or: ".-_") }
    }
}
