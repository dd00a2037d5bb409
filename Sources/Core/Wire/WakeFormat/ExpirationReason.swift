/// Why the time of a wake is over before its worker has answered, as an `expired` event names it.
package enum ExpirationReason: String, BitwiseCopyable, CaseIterable, Sendable {
    /// The deadline has passed.
    case deadline
    /// A continued task has not advanced for too long.
    case progress
    /// The device's conditions no longer allow it.
    case conditions
    /// Whoever submitted the task has cancelled it.
    case cancelled
    /// An operator has ended it.
    case `operator`
    /// The gateway has given it up, and launches it again.
    case lost
}
