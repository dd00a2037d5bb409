/// How the worker's part of a wake ended, as the worker says it.
package enum FetchResult: String, Sendable, CaseIterable {
    case newData, noData, failed
}

/// How a wake ended.
package enum WakeOutcome: String, Sendable, CaseIterable {
    case newData, noData, failed, expired, lost
}

/// What became of an arriving push.
package enum PushReceivedAction: Hashable, Sendable {
    /// The push launched at once; `absorbed` was coalesced into it.
    case launched(absorbed: PushHandle?)
    /// The push waits; `absorbed` was coalesced into it.
    case waits(absorbed: PushHandle?)
    /// The push expired before it could launch; what was pending stays.
    case discarded

    /// The push that was coalesced into it.
    package var absorbed: PushHandle? {
        switch self {
        case .launched(let absorbed), .waits(let absorbed): absorbed
        case .discarded: nil
        }
    }
}

/// What becomes of the push of a wake that ended.
package enum WakeEndedAction: Hashable, Sendable {
    /// The worker handled it.
    case completed(PushHandle)
    /// The push is pending again.
    case retries
    /// The push was coalesced into the newer one that is pending.
    case absorbed(PushHandle)
    /// The push is dropped.
    case discarded(PushHandle, DiscardReason)
    /// The wake was empty: there is no push.
    case nothing
}

/// What a worker's wish for more time came to; with the deadline that holds now.
package enum ExtensionRequestedAction: Hashable, Sendable {
    /// The deadline moved; perhaps not as far as was asked.
    case extended(Instant)
    /// There is as much time already.
    case unchanged(Instant)
    /// The wake has all the time that it can have.
    case limitReached(Instant)

    /// What becomes of a deadline that is to move to `moment`, and to `most` at the most. It never moves back, not even
    /// when the parameters have become tighter since the launch.
    init(_ moment: Instant, deadline: Instant, most: Instant) {
        if moment <= deadline {
            self = .unchanged(deadline)
        } else {
            self = most > deadline ? .extended(min(moment, most)) : .limitReached(deadline)
        }
    }

    /// The deadline that holds now.
    package var deadline: Instant {
        switch self {
        case .extended(let deadline), .unchanged(let deadline), .limitReached(let deadline): deadline
        }
    }
}

/// Why a push, a request or the transfers of a session went without a result.
package enum DiscardReason: String, Sendable, CaseIterable {
    case expired, exhausted, forceQuit, unregistered
    /// A person dropped it.
    case cancelled
    /// A later request of the same identifier took its place. It is counted apart.
    case replaced

    /// The reasons that a push can have.
    package static let ofPushes: [DiscardReason] = [.expired, .exhausted, .forceQuit, .unregistered, .cancelled]
    /// The reasons by which tasks and sessions are counted.
    package static let ofTasks: [DiscardReason] = [.exhausted, .forceQuit, .cancelled, .unregistered]
}

/// How the worker's part of a task ended, as the worker says it.
package enum TaskResult: String, Sendable, CaseIterable {
    case success, failure
}

/// How a wake of a task or a session ended.
package enum TaskOutcome: String, Sendable, CaseIterable {
    case success, failure, expired
    /// What it needs ceased to be.
    case interrupted
    case cancelled, lost
}

/// Why a request was not taken.
package enum TaskRefusal: String, Error, Sendable, CaseIterable {
    case notPermitted = "NotPermitted"
    case unavailable = "Unavailable"
    case notForeground = "NotForeground"
    case tooManyPendingTaskRequests = "TooManyPendingTaskRequests"
    case immediateRunIneligible = "ImmediateRunIneligible"
}

/// What became of a request that was submitted.
package enum TaskSubmittedAction: Hashable, Sendable {
    case refused(TaskRefusal)
    /// The task launched at once, `replaced` gave way to it.
    case launched(TaskWake, replaced: BackgroundTask?)
    /// The task waits, `replaced` gave way to it.
    case waits(BackgroundTask, replaced: BackgroundTask?)

    /// What gave way to it.
    package var replaced: BackgroundTask? {
        switch self {
        case .launched(_, let replaced), .waits(_, let replaced): replaced
        case .refused: nil
        }
    }
}

/// What became of transfers that finished.
package enum TransfersFinishedAction: Hashable, Sendable {
    /// The transfers wait, as the first of their session.
    case waits
    /// The transfers that waited took them up.
    case takenUp
    /// Too many sessions wait.
    case refused
}

/// What becomes of the task of a wake that ended.
package enum TaskEndedAction: Hashable, Sendable {
    /// The request is gone; the transfers are handled.
    case ended(BackgroundTask)
    /// The task waits again; `replaced`, which waited for the same and is older, gave way to it.
    case waits(BackgroundTask, replaced: BackgroundTask?)
    /// A newer request of its identifier waits, and it gave way.
    case replaced(BackgroundTask)
    /// What waits for the session took its transfers up.
    case takenUp(BackgroundTask)
    /// The task is dropped; `replaced`, which waited for the same and is older, gave way to it.
    case discarded(BackgroundTask, DiscardReason, replaced: BackgroundTask?)
}

/// The results of a cancellation, a report of conditions or the removal of a device, in the order of the changes.
package struct DroppedAction: Hashable, Sendable {
    /// The pending push.
    package var discardedPush: PushHandle?
    /// The requests that waited, by arrival.
    package var discarded: [BackgroundTask] = []
    /// What was in flight and ended.
    package var ended: [TaskWake] = []

    /// Nothing but, perhaps, that a push was discarded.
    package init(discardedPush: PushHandle? = nil) {
        self.discardedPush = discardedPush
    }
}

/// What an operator's wish to launch a request came to.
package enum TaskLaunchForcedAction: Hashable, Sendable {
    case launched(TaskWake)
    /// There is no room in its lane.
    case laneIsFull
    /// No request of the identifier waits.
    case notWaiting
}

/// What may launch.
package enum LaunchCandidate: Hashable, Sendable {
    /// The pending push.
    case push
    case task(BackgroundTask)
}

/// What the passing of time did.
package enum TimePassedAction: Hashable, Sendable {
    /// Nothing more is due but, perhaps, a launch.
    case nothing
    /// The deadline of the push in flight passed.
    case pushExpired(WakeEndedAction)
    /// The deadline of a task in flight passed.
    case taskExpired(TaskWake, TaskEndedAction)
    /// Pressure ended a continued task in flight.
    case taskPressed(TaskWake, TaskOutcome, TaskEndedAction)
    /// The pending push expired.
    case pendingExpired(PushHandle)
}
