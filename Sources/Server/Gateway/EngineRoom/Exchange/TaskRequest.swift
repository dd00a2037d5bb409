package import Engine
package import Policy

/// A request for a background task as a caller sends it.
package struct TaskRequest: Hashable, Sendable {
    package let identifier: String
    package let kind: TaskSubmission.Kind
    /// Not before, in milliseconds since 1970; nil is the moment of submission.
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

    /// The request in policy time.
    ///
    /// - `offset`: wall clock minus policy time at the moment of its submission.
    func incoming(_ offset: WallOffset) -> IncomingTask {
        IncomingTask(
            identifier: self.identifier,
            kind: self.kind,
            earliestBegin: self.earliestBegin.map { Instant(milliseconds: $0) - offset.milliseconds },
            details: self.details
        )
    }
}

/// Transfers of a background session that finished, as a caller tells of them.
package struct FinishedTransfers: Hashable, Sendable {
    package let session: String
    /// How many, at least 1.
    package let count: UInt64
    /// The same again counts once; nil counts always.
    package let id: String?

    package init(session: String, count: UInt64, id: String? = nil) {
        self.session = session
        self.count = count
        self.id = id
    }
}

/// Which requests of all devices somebody asks for; nil is any.
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
