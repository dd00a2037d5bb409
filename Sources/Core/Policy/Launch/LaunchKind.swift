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

/// What a background wake that is no push is for.
package enum TaskKind: String, Sendable, CaseIterable {
    /// A short look for news, before the device is used.
    case appRefresh
    /// Minutes of work, while nobody uses the device.
    case processing
    /// What a person started, and waits for.
    case continued
    /// Transfers of a background session finished.
    case urlSession

    /// The kinds that a request can have; `urlSession` has none.
    package static let requestable = [TaskKind.appRefresh, .processing, .continued]

    package var lane: Lane {
        switch self {
        case .appRefresh, .urlSession: .short
        case .processing: .processing
        case .continued: .continued
        }
    }

    /// The most of the kind that wait on one device; what is lost and waits again may exceed it.
    package var waitingMax: Int {
        switch self {
        case .appRefresh: 1
        case .processing, .continued: 10
        case .urlSession: 8
        }
    }
}

/// Wakes of a device that wait for each other; the lanes do not. In the order in which they end and launch.
package enum Lane: UInt8, Sendable, CaseIterable {
    /// Pushes, refreshes, sessions: one in flight, all under the launch interval and the daily budget.
    case short
    /// One in flight.
    case processing
    /// As many in flight as `continuedMax`.
    case continued
}

extension Lane: Comparable {
    package static func < (left: Lane, right: Lane) -> Bool {
        left.rawValue < right.rawValue
    }
}
