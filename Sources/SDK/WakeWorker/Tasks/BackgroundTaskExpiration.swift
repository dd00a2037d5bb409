import Wire

/// Why the handler of a background task was cancelled. More cases may come; give a `switch` a `default`.
public enum BackgroundTaskExpiration: String, Hashable, Sendable, CaseIterable {
    /// The deadline has passed.
    case deadline
    /// A continued task made no progress for too long.
    case progress
    /// The device's conditions no longer allow it: somebody uses it, it lost its power, or it is too hot.
    case conditions
    /// Whoever submitted it has cancelled it.
    case cancelled
    /// An operator has ended it.
    case `operator`
    /// The connection that brought it broke, or the gateway gave it up: it launches again.
    case lost

    init(_ reason: ExpirationReason) {
        self =
            switch reason {
            case .deadline: .deadline
            case .progress: .progress
            case .conditions: .conditions
            case .cancelled: .cancelled
            case .operator: .operator
            case .lost: .lost
            }
    }
}
