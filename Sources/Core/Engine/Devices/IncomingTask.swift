package import Policy
package import Wire

/// A request for a background task as a caller hands it over.
package struct IncomingTask: Hashable, Sendable {
    /// 1...255 characters of A-Z a-z 0-9 . - _
    package let identifier: String
    package let kind: TaskSubmission.Kind
    /// Not before; nil is the moment of submission.
    package let earliestBegin: Instant?
    package let details: TaskDetails

    package init(
        identifier: String,
        kind: TaskSubmission.Kind,
        earliestBegin: Instant? = nil,
        details: TaskDetails = TaskDetails()
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.details = details
    }
}

/// What a request carries that the policy does not ask for: what a continued task shows to the person who waits for it
/// and needs of its worker, and the trace that the request belongs to.
package struct TaskDetails: Hashable, Sendable {
    /// At most 256 bytes.
    package var title: String?
    /// At most 256 bytes.
    package var subtitle: String?
    /// What the stream must offer that takes it.
    package var resources: [String]
    /// What `PushTrace` keeps; empty when there is none.
    package var trace: [UInt8]

    package init(title: String? = nil, subtitle: String? = nil, resources: [String] = [], trace: [UInt8] = []) {
        self.title = title
        self.subtitle = subtitle
        self.resources = resources
        self.trace = trace
    }
}

/// How far a continued task is.
package struct TaskProgress: Hashable, Sendable {
    package var completed: UInt64
    package var total: UInt64
    package var title: String?
    package var subtitle: String?

    package init(completed: UInt64, total: UInt64, title: String? = nil, subtitle: String? = nil) {
        self.completed = completed
        self.total = total
        self.title = title
        self.subtitle = subtitle
    }
}

/// What a continued task that launched before goes on from.
package enum TaskResumption: Hashable, Sendable {
    /// No launch told of progress.
    case nothingTold
    /// The last that was told.
    case progress(TaskProgress)
}

/// What a submission came to.
package enum TaskDisposition: String, CaseIterable, Sendable {
    case launched, scheduled, replaced
}

/// What a submission is answered.
package struct TaskAnswer: Hashable, Sendable {
    package let disposition: TaskDisposition
    /// The first moment at which interval, budget, earliest beginning and habits allow its launch; nil when it
    /// launched, and when something holds it.
    package let eligibleAt: Instant?
    /// What keeps it back, the deciding one; nil when nothing does.
    package let held: TaskHoldCode?
    /// The wake that it launched at once.
    package let wake: WakeID?

    package init(disposition: TaskDisposition, eligibleAt: Instant?, held: TaskHoldCode?, wake: WakeID?) {
        self.disposition = disposition
        self.eligibleAt = eligibleAt
        self.held = held
        self.wake = wake
    }
}

/// Why a submission, or finished transfers, were not taken.
package enum TaskRejection: Error, Hashable, Sendable {
    /// By the policy.
    case policy(TaskRefusal)
    /// A ninth session.
    case tooManySessions
    /// By a bound of the gateway.
    case bound(TaskLimit)
}
