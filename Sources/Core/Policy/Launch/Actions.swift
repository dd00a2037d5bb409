/// The result of a push's wake that its worker reports.
package enum FetchResult: String, Sendable, CaseIterable {
    case newData, noData, failed
}

/// The outcome of a push's wake.
package enum WakeOutcome: String, Sendable, CaseIterable {
    case newData, noData, failed, expired, lost
}

/// The effect of an arriving push.
package enum PushReceivedAction: Hashable, Sendable {
    /// The push launched immediately. The push `absorbed` was coalesced into it.
    case launched(absorbed: PushHandle?)
    /// The push is pending. The push `absorbed` was coalesced into it.
    case waits(absorbed: PushHandle?)
    /// The push expired before it could launch. An earlier pending push remains.
    case discarded

    /// The push that was coalesced into the new one; nil if there is none.
    package var absorbed: PushHandle? {
        switch self {
        case .launched(let absorbed), .waits(let absorbed): absorbed
        case .discarded: nil
        }
    }
}

/// The effect of an ended wake on its push.
package enum WakeEndedAction: Hashable, Sendable {
    /// The worker processed the push.
    case completed(PushHandle)
    /// The push is pending again.
    case retries
    /// The push was coalesced into the newer pending push.
    case absorbed(PushHandle)
    /// The push is dropped.
    case discarded(PushHandle, DiscardReason)
    /// The wake had no push.
    case nothing
}

/// The effect of a worker's request for more time, with the current deadline.
package enum ExtensionRequestedAction: Hashable, Sendable {
    /// The deadline was moved, but possibly not as far as requested.
    case extended(Instant)
    /// The deadline is already at the requested time or later.
    case unchanged(Instant)
    /// The wake has reached its maximum duration.
    case limitReached(Instant)

    /// Creates the effect of moving a deadline to `moment`, but not past `maximum`. A deadline never moves back, even
    /// if new parameters allow less time.
    init(_ moment: Instant, deadline: Instant, maximum: Instant) {
        if moment <= deadline {
            self = .unchanged(deadline)
        } else {
            self = maximum > deadline ? .extended(min(moment, maximum)) : .limitReached(deadline)
        }
    }

    /// The current deadline.
    package var deadline: Instant {
        switch self {
        case .extended(let deadline), .unchanged(let deadline), .limitReached(let deadline): deadline
        }
    }
}

/// The reason why a push, a request or the transfers of a session ended without a result.
package enum DiscardReason: String, Sendable, CaseIterable {
    case expired, exhausted, forceQuit, unregistered
    /// An operator or client cancelled the push or request.
    case cancelled
    /// A later request with the same identifier replaced the request. This reason has a separate counter.
    case replaced

    /// The possible reasons for pushes.
    package static let ofPushes: [DiscardReason] = [.expired, .exhausted, .forceQuit, .unregistered, .cancelled]
    /// The reasons for which tasks and sessions have counters.
    package static let ofTasks: [DiscardReason] = [.exhausted, .forceQuit, .cancelled, .unregistered]
}

/// The result of a task that its worker reports.
package enum TaskResult: String, Sendable, CaseIterable {
    case success, failure
}

/// The outcome of a wake of a task or a session.
package enum TaskOutcome: String, Sendable, CaseIterable {
    case success, failure, expired
    /// A condition that the task requires is no longer met.
    case interrupted
    case cancelled, lost
}

/// The reason why a request was refused.
package enum TaskRefusal: String, Error, Sendable, CaseIterable {
    case notPermitted = "NotPermitted"
    case unavailable = "Unavailable"
    case notForeground = "NotForeground"
    case tooManyPendingTaskRequests = "TooManyPendingTaskRequests"
    case immediateRunIneligible = "ImmediateRunIneligible"
}

/// The effect of a submitted request.
package enum TaskSubmittedAction: Hashable, Sendable {
    case refused(TaskRefusal)
    /// The task launched immediately. `replaced` is the earlier request that it replaced.
    case launched(TaskWake, replaced: BackgroundTask?)
    /// The task is pending. `replaced` is the earlier request that it replaced.
    case waits(BackgroundTask, replaced: BackgroundTask?)

    /// The earlier request that was replaced; nil if there is none.
    package var replaced: BackgroundTask? {
        switch self {
        case .launched(_, let replaced), .waits(_, let replaced): replaced
        case .refused: nil
        }
    }
}

/// The effect of finished transfers.
package enum TransfersFinishedAction: Hashable, Sendable {
    /// The session had no pending transfers; it now waits to launch.
    case waits
    /// The transfers were added to the pending transfers of their session.
    case merged
    /// Too many sessions are pending.
    case refused
}

/// The effect of an ended wake on its task.
package enum TaskEndedAction: Hashable, Sendable {
    /// The request is complete, or the transfers are processed.
    case ended(BackgroundTask)
    /// The task is pending again. `replaced` is an older pending request with the same name, which was dropped.
    case waits(BackgroundTask, replaced: BackgroundTask?)
    /// A newer pending request with the same identifier replaced the task.
    case replaced(BackgroundTask)
    /// The transfers were added to the pending transfers of their session.
    case merged(BackgroundTask)
    /// The task was dropped. `replaced` is an older pending request with the same name, which was dropped too.
    case discarded(BackgroundTask, DiscardReason, replaced: BackgroundTask?)
}

/// The push, requests and wakes that ended because of a cancellation, a conditions report or the removal of a device.
/// They ended in the order of the properties.
package struct Removals: Hashable, Sendable {
    /// The pending push that was discarded; nil if there was none.
    package var discardedPush: PushHandle?
    /// The pending requests that were discarded, by arrival.
    package var discarded: [BackgroundTask] = []
    /// The wakes in flight that ended.
    package var ended: [TaskWake] = []

    /// Creates an action without effects, except for a discarded push.
    package init(discardedPush: PushHandle? = nil) {
        self.discardedPush = discardedPush
    }
}

/// The effect of an operator's request to launch a task.
package enum TaskLaunchForcedAction: Hashable, Sendable {
    case launched(TaskWake)
    /// The lane has its maximum number of wakes in flight.
    case laneIsFull
    /// No request with the identifier is pending.
    case notPending
}

/// A launch that the policy allows.
package enum LaunchCandidate: Hashable, Sendable {
    /// The pending push.
    case push
    case task(BackgroundTask)
}

/// The effect of passing time.
package enum TimePassedAction: Hashable, Sendable {
    /// No deadline or expiration passed. A launch may be due.
    case nothing
    /// The deadline of the push in flight passed.
    case pushExpired(WakeEndedAction)
    /// The deadline of a task in flight passed.
    case taskExpired(TaskWake, TaskEndedAction)
    /// Memory pressure, or more tasks in flight than allowed, ended a continued task.
    case taskEndedByPressure(TaskWake, TaskOutcome, TaskEndedAction)
    /// The pending push expired.
    case pendingExpired(PushHandle)
}
