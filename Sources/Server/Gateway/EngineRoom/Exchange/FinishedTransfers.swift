package import Engine
package import Policy

/// A report about finished transfers of a background session.
package struct FinishedTransfers: Hashable, Sendable {
    package let session: String
    /// The number of transfers, at least 1.
    package let count: UInt64
    /// The id of the report. Reports with the same id count once; nil if every report counts.
    package let id: String?

    package init(session: String, count: UInt64, id: String? = nil) {
        self.session = session
        self.count = count
        self.id = id
    }
}

/// The filter of a list of the tasks of all devices. A property that is nil matches every task.
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
