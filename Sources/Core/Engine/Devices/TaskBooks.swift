package import Policy

/// What was counted of requests; their wakes are counted by `TaskWakeBooks`.
///
/// `submitted` = `replaced` + `cancelled` + all of `discarded` + every result but `lost` + `waiting` + `inFlight`,
/// after every step.
package struct TaskBooks: Hashable, Sendable {
    /// Requests that were taken, by kind.
    package var submitted = PerCase<TaskKind>()
    /// By reason; what was refused was not submitted.
    package var refused = PerCase<TaskRefusal>()
    package var replaced: Int64 = 0
    /// Requests that were cancelled while they waited.
    package var cancelled: Int64 = 0
    /// By reason.
    package var discarded = PerCase<TaskDiscardReason>()
    /// Requests that wait, by kind.
    package var waiting = PerCase<TaskKind>()
    /// Requests whose wake is in flight, by kind.
    package var inFlight = PerCase<TaskKind>()
    /// Requests that wait and are held, by the first hold that applies.
    package var held = PerCase<TaskHoldCode>()

    package init() {}

    package static func += (left: inout Self, right: Self) {
        left.submitted += right.submitted
        left.refused += right.refused
        left.replaced &+= right.replaced
        left.cancelled &+= right.cancelled
        left.discarded += right.discarded
        left.waiting += right.waiting
        left.inFlight += right.inFlight
        left.held += right.held
    }

    package static func -= (left: inout Self, right: Self) {
        left.submitted -= right.submitted
        left.refused -= right.refused
        left.replaced &-= right.replaced
        left.cancelled &-= right.cancelled
        left.discarded -= right.discarded
        left.waiting -= right.waiting
        left.inFlight -= right.inFlight
        left.held -= right.held
    }
}

/// What was counted of finished transfers, a wake standing for as many as it was launched for.
///
/// `finished` = `completed` + all of `discarded` + `waiting` + `inFlight`, after every step.
package struct SessionBooks: Hashable, Sendable {
    package var finished: Int64 = 0
    /// Transfers of a session beyond those that may wait.
    package var refused: Int64 = 0
    package var completed: Int64 = 0
    /// By reason.
    package var discarded = PerCase<TaskDiscardReason>()
    package var waiting: Int64 = 0
    package var inFlight: Int64 = 0
    /// Wakes that wait or are in flight.
    package var wakes: Int64 = 0

    package init() {}

    /// What `finished` must be equal to.
    package var accountedFor: Int64 { self.completed + self.discarded.sum + self.waiting + self.inFlight }

    package static func += (left: inout Self, right: Self) {
        left.finished &+= right.finished
        left.refused &+= right.refused
        left.completed &+= right.completed
        left.discarded += right.discarded
        left.waiting &+= right.waiting
        left.inFlight &+= right.inFlight
        left.wakes &+= right.wakes
    }

    package static func -= (left: inout Self, right: Self) {
        left.finished &-= right.finished
        left.refused &-= right.refused
        left.completed &-= right.completed
        left.discarded -= right.discarded
        left.waiting &-= right.waiting
        left.inFlight &-= right.inFlight
        left.wakes &-= right.wakes
    }
}

extension Books {
    /// What the requests submitted must be equal to.
    package var requestsAccountedFor: Int64 {
        let requests = self.requests
        let ended = TaskKind.requestable.reduce(0) { $0 + self.tasks[$1].sum - self.tasks[$1][.lost] }
        return requests.replaced + requests.cancelled + requests.discarded.sum + ended + requests.waiting.sum
            + requests.inFlight.sum
    }

    /// Requests and sessions that wait or are in flight.
    var requestCount: Int64 { self.requests.waiting.sum + self.requests.inFlight.sum + self.sessions.wakes }

    /// Wakes of requests that ended, by outcome.
    package func requestResults(_ outcome: TaskOutcome) -> Int64 {
        TaskKind.requestable.reduce(0) { $0 + self.tasks[$1][outcome] }
    }
}

extension TaskRefusal: CountedCase {
    package var place: Int {
        switch self {
        case .notPermitted: 0
        case .unavailable: 1
        case .notForeground: 2
        case .tooManyPendingTaskRequests: 3
        case .immediateRunIneligible: 4
        }
    }
}

extension TaskDiscardReason: CountedCase {
    package var place: Int {
        switch self {
        case .exhausted: 0
        case .forceQuit: 1
        case .cancelled: 2
        case .unregistered: 3
        }
    }
}

extension TaskHoldCode: CountedCase {
    package typealias Counts = SIMD16<Int64>

    package var place: Int { Int(self.rawValue) }
}
