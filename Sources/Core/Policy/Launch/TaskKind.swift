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
