/// The kind of a launch.
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

/// The outcome of a wake of any kind.
package enum LaunchOutcome: Hashable, Sendable {
    case push(WakeOutcome)
    case task(TaskKind, TaskOutcome)

    package var kind: LaunchKind {
        switch self {
        case .push: .push
        case .task(let kind, _): LaunchKind(kind)
        }
    }

    /// The name of the outcome on the wire.
    package var name: String {
        switch self {
        case .push(let outcome): outcome.rawValue
        case .task(_, let outcome): outcome.rawValue
        }
    }
}

/// The kind of a background task or session.
package enum TaskKind: String, Sendable, CaseIterable {
    /// A short update before the device is used.
    case appRefresh
    /// Minutes of work while the device is not in use.
    case processing
    /// Work that a user started and waits for.
    case continued
    /// Transfers of a background session finished.
    case urlSession

    /// The kinds that a request can have.
    package static let requestable = [TaskKind.appRefresh, .processing, .continued]

    package var lane: Lane {
        switch self {
        case .appRefresh, .urlSession: .short
        case .processing: .processing
        case .continued: .continued
        }
    }

    /// The maximum number of pending tasks of this kind on one device. Lost tasks that are pending again may exceed it.
    package var waitingMax: Int {
        switch self {
        case .appRefresh: 1
        case .processing, .continued: 10
        case .urlSession: 8
        }
    }
}

/// A group of launches on a device that share a limit of wakes in flight. Lanes are independent and processed in this
/// order.
package enum Lane: UInt8, Sendable, CaseIterable {
    /// Pushes, refreshes and sessions: one in flight, subject to the launch interval and the daily budget.
    case short
    /// One in flight.
    case processing
    /// At most `continuedMax` in flight.
    case continued
}

extension Lane: Comparable {
    package static func < (left: Lane, right: Lane) -> Bool {
        left.rawValue < right.rawValue
    }
}
