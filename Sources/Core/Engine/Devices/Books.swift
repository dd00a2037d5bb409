package import Policy

/// What was counted for one topic, or for all.
///
/// `accepted` = `completed` + `coalesced` + all of `discarded` + `pending` + `inFlight`, after every step.
package struct Books: Hashable, Sendable {
    /// Pushes that entered the policy.
    package var accepted: Int64 = 0
    /// Pushes answered 200 that wake nobody.
    package var noWake: Int64 = 0
    package var completed: Int64 = 0
    package var coalesced: Int64 = 0
    /// By reason.
    package var discarded = PerCase<DiscardReason>()
    /// Devices with a push that waits.
    package var pending: Int64 = 0
    /// Pushes whose wake is in flight.
    package var inFlight: Int64 = 0
    /// Wakes of pushes launched, empty ones included.
    package var launched: Int64 = 0
    /// Wakes of pushes that ended, by outcome.
    package var results = PerCase<WakeOutcome>()
    /// Wakes of everything else.
    package var tasks = TaskWakeBooks()
    package var requests = TaskBooks()
    package var sessions = SessionBooks()
    /// Registered devices.
    package var registered: Int64 = 0
    /// Devices with a pending push that is held, by the first hold that applies.
    package var held = PerCase<HoldCode>()
    /// What gateways that share a store count besides.
    package var stock = StockBooks()

    package init() {}

    /// What `accepted` must be equal to.
    package var accountedFor: Int64 {
        self.completed + self.coalesced + self.discarded.sum + self.pending + self.inFlight
    }

    /// What is shown of a topic that is paused: whatever waits is held by the pause, which goes before other holds.
    package var paused: Books {
        var books = self
        books.held = PerCase()
        books.held[.paused] = self.pending
        books.requests.held = PerCase()
        books.requests.held[.paused] = self.requests.waiting.sum
        return books
    }

    /// A wake was launched.
    mutating func noteLaunch(_ kind: LaunchKind) {
        if let task = kind.task { self.tasks.launched[task] += 1 } else { self.launched += 1 }
    }

    /// A wake ended.
    mutating func noteEnd(_ outcome: LaunchOutcome) {
        switch outcome {
        case .push(let outcome): self.results[outcome] += 1
        case .task(let kind, let outcome): self.tasks[kind][outcome] += 1
        }
    }

    package static func += (left: inout Books, right: Books) {
        left.accepted &+= right.accepted
        left.noWake &+= right.noWake
        left.completed &+= right.completed
        left.coalesced &+= right.coalesced
        left.discarded += right.discarded
        left.pending &+= right.pending
        left.inFlight &+= right.inFlight
        left.launched &+= right.launched
        left.results += right.results
        left.tasks += right.tasks
        left.requests += right.requests
        left.sessions += right.sessions
        left.registered &+= right.registered
        left.held += right.held
        left.stock += right.stock
    }

    package static func -= (left: inout Books, right: Books) {
        left.accepted &-= right.accepted
        left.noWake &-= right.noWake
        left.completed &-= right.completed
        left.coalesced &-= right.coalesced
        left.discarded -= right.discarded
        left.pending &-= right.pending
        left.inFlight &-= right.inFlight
        left.launched &-= right.launched
        left.results -= right.results
        left.tasks -= right.tasks
        left.requests -= right.requests
        left.sessions -= right.sessions
        left.registered &-= right.registered
        left.held -= right.held
        left.stock -= right.stock
    }

    /// What `left` has more than `right`.
    package static func - (left: Books, right: Books) -> Books {
        var difference = left
        difference -= right
        return difference
    }
}

/// Wakes of tasks and sessions, counted by kind.
package struct TaskWakeBooks: Hashable, Sendable {
    package var launched = PerCase<TaskKind>()
    private var appRefresh = PerCase<TaskOutcome>()
    private var processing = PerCase<TaskOutcome>()
    private var continued = PerCase<TaskOutcome>()
    private var urlSession = PerCase<TaskOutcome>()

    package init() {}

    /// Wakes of one kind that ended, by outcome.
    package subscript(kind: TaskKind) -> PerCase<TaskOutcome> {
        get {
            switch kind {
            case .appRefresh: self.appRefresh
            case .processing: self.processing
            case .continued: self.continued
            case .urlSession: self.urlSession
            }
        }
        set {
            switch kind {
            case .appRefresh: self.appRefresh = newValue
            case .processing: self.processing = newValue
            case .continued: self.continued = newValue
            case .urlSession: self.urlSession = newValue
            }
        }
    }

    package static func += (left: inout Self, right: Self) {
        left.launched += right.launched
        for kind in TaskKind.allCases { left[kind] += right[kind] }
    }

    package static func -= (left: inout Self, right: Self) {
        left.launched -= right.launched
        for kind in TaskKind.allCases { left[kind] -= right[kind] }
    }
}

/// A case that `PerCase` counts.
package protocol CountedCase: CaseIterable, Hashable, Sendable where AllCases == [Self] {
    /// The counts of all cases, whose number it bounds.
    associatedtype Counts: SIMD, Sendable = SIMD8<Int64> where Counts.Scalar == Int64

    /// The case's place among all cases.
    var place: Int { get }
}

/// One count for each case of an enumeration.
package struct PerCase<Case: CountedCase>: Hashable, Sendable {
    private var counts = Case.Counts(repeating: 0)

    package init() {}

    package subscript(_ key: Case) -> Int64 {
        get { self.counts[key.place] }
        set { self.counts[key.place] = newValue }
    }

    package var sum: Int64 { self.counts.wrappedSum() }

    package static func += (left: inout Self, right: Self) {
        left.counts &+= right.counts
    }

    package static func -= (left: inout Self, right: Self) {
        left.counts &-= right.counts
    }
}

extension HoldCode: CountedCase {
    package var place: Int { Int(self.rawValue) }
}

extension DiscardReason: CountedCase {
    package var place: Int {
        switch self {
        case .expired: 0
        case .exhausted: 1
        case .forceQuit: 2
        case .unregistered: 3
        case .cancelled: 4
        }
    }
}

extension WakeOutcome: CountedCase {
    package var place: Int {
        switch self {
        case .newData: 0
        case .noData: 1
        case .failed: 2
        case .expired: 3
        case .lost: 4
        }
    }
}

extension TaskKind: CountedCase {
    package var place: Int {
        switch self {
        case .appRefresh: 0
        case .processing: 1
        case .continued: 2
        case .urlSession: 3
        }
    }
}

extension TaskOutcome: CountedCase {
    package var place: Int {
        switch self {
        case .success: 0
        case .failure: 1
        case .expired: 2
        case .interrupted: 3
        case .cancelled: 4
        case .lost: 5
        }
    }
}
