/// Names an identifier or a session; the policy compares names and never looks behind them.
package struct TaskName: Hashable, Sendable {
    /// Chosen by the policy's user, the same for the same identifier or session.
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// What a task cannot do without.
package struct TaskNeeds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let network = TaskNeeds(rawValue: 1)
    package static let externalPower = TaskNeeds(rawValue: 2)

    // A continued task has neither need. It keeps two other facts in these bits: gateways of earlier versions, which
    // may share the rows, read them and take no notice.
    /// The strategy of a continued task is `fail`.
    fileprivate static let start = TaskNeeds(rawValue: 1)
    /// Pressure ended a launch of a continued task, which waits until memory is not critical any more.
    fileprivate static let memory = TaskNeeds(rawValue: 2)
}

/// A request as it is submitted.
package struct TaskSubmission: Hashable, Sendable {
    /// What a request that cannot launch at once does.
    package enum Strategy: String, Sendable, CaseIterable {
        /// The request waits.
        case queue
        /// The request is refused.
        case fail
    }

    /// What it is for, with the options that this kind has.
    package enum Kind: Hashable, Sendable {
        case appRefresh
        case processing(TaskNeeds)
        case continued(Strategy)
    }

    package var name: TaskName
    package var kind: Kind
    /// Not before; nil is the moment of submission. A continued task ignores it.
    package var earliestBegin: Instant?

    package init(name: TaskName, kind: Kind, earliestBegin: Instant? = nil) {
        self.name = name
        self.kind = kind
        self.earliestBegin = earliestBegin
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

/// A request, or the finished transfers of a session, from its arrival to its end.
package struct BackgroundTask: Hashable, Sendable {
    /// The identifier, or the session's name; of these two kinds of name the same are not the same.
    package var name: TaskName
    /// When it was submitted, or the first of the transfers finished.
    package var arrivedAt: Instant
    /// What waits longest goes first: the moment of arrival, or that of its earliest beginning when that is later.
    package var waitsSince: Instant
    /// The number among what arrived on the device, kept until the task's end: no two at a time have the same.
    package var arrival: UInt64
    /// How many finished transfers it stands for; 0 for a request.
    package var transfers: UInt64
    /// How often it was launched.
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

    /// True for a continued task that does not wait: its strategy is `fail`.
    var failsRatherThanWaits: Bool { self.kind == .continued && self.needs.contains(.start) }

    /// True for a continued task that pressure ended, until it launches again.
    var waitsForMemory: Bool {
        get { self.kind == .continued && self.needs.contains(.memory) }
        set {
            guard self.kind == .continued else { return }
            if newValue { self.needs.insert(.memory) } else { self.needs.remove(.memory) }
        }
    }

    /// Whether the two carry the same identifier, or the same session's name.
    func isNamesake(of other: BackgroundTask) -> Bool {
        self.name == other.name && (self.kind == .urlSession) == (other.kind == .urlSession)
    }

    /// Takes up the transfers of a wake of the same session that is to be retried, and its place.
    mutating func takeUp(_ older: BackgroundTask) {
        self.transfers += older.transfers
        self.arrivedAt = min(self.arrivedAt, older.arrivedAt)
        self.waitsSince = min(self.waitsSince, older.waitsSince)
        self.arrival = min(self.arrival, older.arrival)
    }
}

/// A task that was launched and whose outcome is awaited.
package struct TaskWake: Hashable, Sendable {
    /// What a launch cost, as it was before: what a lost wake puts back.
    package enum Charge: Hashable, Sendable {
        case nothing
        case short(before: Spacing)
        case processing(lastBefore: Instant)
    }

    /// The task, its `attempts` counting this launch; its `arrival` names the wake.
    package var task: BackgroundTask
    package var launchedAt: Instant
    /// When it expires: the outcome must come before.
    package var deadline: Instant
    package var charge: Charge
    /// The most progress that a continued task reported in this launch.
    package var progress: UInt64
    /// The total of the last report of progress; 0 for none.
    package var total: UInt64 = 0
    /// What held it when an operator launched it, and does not interrupt it.
    package var tolerated: Holds
    /// Whether it was cancelled: when it is lost it does not wait again.
    package var isCancelled: Bool
    /// The device was removed after the launch: what would wait again is discarded.
    package var isOfRemovedDevice: Bool

    package init(
        task: BackgroundTask,
        launchedAt: Instant,
        deadline: Instant,
        charge: Charge,
        progress: UInt64 = 0,
        tolerated: Holds = [],
        isCancelled: Bool = false,
        isOfRemovedDevice: Bool = false
    ) {
        self.task = task
        self.launchedAt = launchedAt
        self.deadline = deadline
        self.charge = charge
        self.progress = progress
        self.tolerated = tolerated
        self.isCancelled = isCancelled
        self.isOfRemovedDevice = isOfRemovedDevice
    }
}

/// What the policy keeps of a device for its requests, sessions and habits, beside its `DeviceState`.
///
/// A device that has no request or session, launched no processing task and reported no use has a blank one, which
/// need not be kept. Its size is bounded: `TaskKind.waitingMax` of each kind wait, besides what was lost.
package struct BackgroundTasks: Hashable, Sendable {
    /// What waits, in the order of arrival.
    package internal(set) var waiting: [BackgroundTask]
    /// What was launched, lane by lane, each in the order of launches.
    package internal(set) var inFlight: [TaskWake]
    /// Minus infinity before the first processing task.
    package internal(set) var lastProcessing: Instant
    package internal(set) var usage: Usage
    /// The millisecond behind the moment at which pressure ends the next continued task in flight, without the bits
    /// above 32; 0 if it ends none. It lies where alignment leaves room behind `usage`: every used device has one.
    package private(set) var pressure: UInt32
    package internal(set) var arrivals: Arrivals

    /// What a store kept of a device; without arguments a blank one.
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

    /// Whether there is nothing to keep.
    package var isBlank: Bool { self == BackgroundTasks() }
}

/// The order in which requests, sessions and pushes arrived on a device that has some of the former.
///
/// While a device has neither request nor session in hand, all is 0: whatever comes then comes after its push.
package struct Arrivals: Hashable, Sendable {
    /// The number of the latest arrival.
    package var latest: UInt64 = 0
    /// The number of the first push that the pending one stands for.
    package var pendingPush: UInt64 = 0
    /// The number of the first push that the one in flight stands for.
    package var pushInFlight: UInt64 = 0

    package init() {}
}

extension BackgroundTasks {
    /// True if one of them is in flight in the lane of pushes.
    var fillShortLane: Bool { self.inFlight.contains { $0.task.kind.lane == .short } }

    private var isIdle: Bool { self.waiting.isEmpty && self.inFlight.isEmpty }

    /// Numbers a request or a session that arrived.
    mutating func arrived() -> UInt64 {
        self.arrivals.latest += 1
        return self.arrivals.latest
    }

    /// Numbers a push that arrived when none was pending.
    mutating func pushArrived() {
        self.arrivals.pendingPush = self.isIdle ? 0 : self.arrived()
    }

    /// Something may have been the last: forgets the order when nothing needs it.
    mutating func left() {
        if self.isIdle { self.arrivals = Arrivals() }
        if self.pressure != 0, self.continuedInFlight.isEmpty { self.pressure = 0 }
    }

    /// When pressure ends the next continued task in flight, or nil if it ends none. The moment is within 24 days.
    package func pressureAt(_ now: Instant) -> Instant? {
        guard self.pressure != 0 else { return nil }
        return now + Int64(Int32(truncatingIfNeeded: Int64(self.pressure) &- 1 &- now.milliseconds))
    }

    /// Sets when pressure ends the next continued task in flight; nil for never.
    mutating func setPressure(_ moment: Instant?) {
        self.pressure = moment.map { max(1, UInt32(truncatingIfNeeded: $0.milliseconds &+ 1)) } ?? 0
    }

    /// The continued tasks in flight, in the order of launches.
    var continuedInFlight: ArraySlice<TaskWake> {
        self.inFlight[(self.inFlight.firstIndex { $0.task.kind == .continued } ?? self.inFlight.endIndex)...]
    }

    /// Returns true if more continued tasks are in flight than allowed, after `continuedMax` became less.
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

    /// Takes what waits under the name of `task` away, if anything does.
    mutating func takeNamesake(of task: BackgroundTask) -> BackgroundTask? {
        guard let index = self.waiting.firstIndex(where: { $0.isNamesake(of: task) }) else { return nil }
        return self.waiting.remove(at: index)
    }
}

/// An identifier or a session's name that a configuration permits or a worker takes, or all with the same beginning.
package struct IdentifierPattern: Hashable, Sendable {
    /// The identifier, or, with `.*` at its end, the beginning and `.*` for one or more further characters.
    package let text: String
    /// The identifier, or what all begin with that the pattern stands for, up to the dot.
    package let stem: String
    /// True if it stands for one identifier alone.
    package let isExact: Bool

    /// The longest identifier and the longest pattern, in bytes.
    package static let bytesMax = 255

    package init(_ text: String) {
        self.text = text
        self.isExact = !text.utf8.suffix(2).elementsEqual(".*".utf8)
        self.stem = self.isExact ? text : String(text.dropLast())
    }

    /// Whether `identifier` is one of those that the pattern stands for.
    package func matches(_ identifier: String) -> Bool {
        // Equal strings may be of other characters, which are more bytes.
        guard !self.isExact else { return identifier.utf8.count == self.stem.utf8.count && identifier == self.stem }
        return identifier.utf8.count > self.stem.utf8.count && identifier.utf8.starts(with: self.stem.utf8)
    }

    /// Whether it is an identifier, or one and `.*`.
    package var isWellFormed: Bool {
        guard self.text.utf8.count <= Self.bytesMax else { return false }
        return Self.isIdentifier(self.text.utf8.dropLast(self.isExact ? 0 : 2))
    }

    /// Whether `text` can name a task or a session: 1 to 255 characters of A-Z a-z 0-9 . - _.
    package static func isIdentifier(_ text: some Collection<UInt8>) -> Bool {
        guard !text.isEmpty, text.count <= Self.bytesMax else { return false }
        return text.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
