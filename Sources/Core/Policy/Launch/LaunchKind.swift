/// What a wake is launched for.
///
/// The raw value is its name on the wire.
package enum LaunchKind: String, BitwiseCopyable, Sendable, CaseIterable {
    case push, appRefresh, processing, continued, urlSession

    package init(_ task: TaskKind) {
        self =
            switch task {
            case .appRefresh: .appRefresh
            case .processing: .processing
            case .continued: .continued
            case .urlSession: .urlSession
            }
    }

    /// The kind of background task; nil for a push.
    package var task: TaskKind? {
        switch self {
        case .push: nil
        case .appRefresh: .appRefresh
        case .processing: .processing
        case .continued: .continued
        case .urlSession: .urlSession
        }
    }

    package var lane: Lane { self.task?.lane ?? .short }
}

/// How a wake ended, by what it was launched for.
package enum LaunchOutcome: Hashable, Sendable {
    case push(WakeOutcome)
    case task(TaskKind, TaskOutcome)

    package var kind: LaunchKind {
        switch self {
        case .push: .push
        case .task(let kind, _): LaunchKind(kind)
        }
    }

    /// The kind's name on the wire.
    package var name: String {
        switch self {
        case .push(let outcome): outcome.rawValue
        case .task(_, let outcome): outcome.rawValue
        }
    }
}
