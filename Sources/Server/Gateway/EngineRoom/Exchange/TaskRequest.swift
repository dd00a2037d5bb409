package import Engine
package import Policy

/// A request for a background task, as sent by a caller.
package struct TaskRequest: Hashable, Sendable {
    package let identifier: String
    package let kind: TaskSubmission.Kind
    /// The earliest begin date, in milliseconds since 1970; nil for the time of submission.
    package let earliestBegin: Int64?
    package var details: TaskDetails

    package init(
        identifier: String,
        kind: TaskSubmission.Kind,
        earliestBegin: Int64? = nil,
        details: TaskDetails = TaskDetails()
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.details = details
    }

    /// Returns the request in policy time.
    ///
    /// - `offset`: the difference between wall clock and policy time at the submission.
    func incoming(_ offset: WallOffset) -> IncomingTask {
        IncomingTask(
            identifier: self.identifier,
            kind: self.kind,
            earliestBegin: self.earliestBegin.map { Instant(milliseconds: $0) - offset.milliseconds },
            details: self.details
        )
    }
}

/// A report about finished transfers of a background session.
package struct FinishedTransfers: Hashable, Sendable {
    package let session: String
    /// The number of transfers, at least 1.
    package let count: UInt64
    /// An id under which repeated reports count once; nil if every report counts.
    package let id: String?

    package init(session: String, count: UInt64, id: String? = nil) {
        self.session = session
        self.count = count
        self.id = id
    }
}

/// A request for a list of tasks of all devices. A filter that is nil matches every task.
package struct TaskQuestion: Hashable, Sendable {
    package var topic: String?
    package var kind: TaskKind?
    package var state: TaskFilter.State?

    package init(topic: String? = nil, kind: TaskKind? = nil, state: TaskFilter.State? = nil) {
        self.topic = topic
        self.kind = kind
        self.state = state
    }
}
