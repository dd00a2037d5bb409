package import Policy
package import Wire

/// A wake that was launched, as its worker is told of it.
package struct LaunchedWake {
    /// What a wake was launched for.
    package enum Cause {
        /// - `content`: nil for an empty wake; valid during the call.
        case push(PendingPush, content: PushContent?)
        case task(LaunchedTask)
    }

    package let id: WakeID
    package let token: DeviceToken
    package let topic: String
    package let deadline: Instant
    /// How long until the deadline, in milliseconds.
    package let timeLeft: Int64
    package let cause: Cause

    /// The push that it was launched for; nil for a task.
    package var push: PendingPush? {
        if case .push(let push, _) = self.cause { push } else { nil }
    }

    /// What that push carries; nil for an empty wake and for a task, valid during the call.
    package var content: PushContent? {
        if case .push(_, let content) = self.cause { content } else { nil }
    }

    package var kind: LaunchKind {
        switch self.cause {
        case .push: .push
        case .task(let launched): LaunchKind(launched.task.kind)
        }
    }
}

/// A task or a session that was launched.
package struct LaunchedTask: Hashable, Sendable {
    /// The identifier, or the session's name.
    package let name: String
    /// The task, its `attempts` counting this launch.
    package let task: BackgroundTask
    package let details: TaskDetails
    /// What a continued task goes on from that launched before; nil in the first launch, and for other kinds.
    package let resumedFrom: TaskResumption?
}

/// How the worker's part of a wake ended, as the worker says it.
package enum WakeReport: Hashable, Sendable {
    case push(FetchResult)
    /// Of a task or a session.
    case task(TaskResult)
}

/// What a reported result did.
package enum ReportOutcome: Hashable, Sendable {
    /// The report ended the wake.
    case ended
    /// The wake ended before, with this very result.
    case repeated
    /// The wake ended before, in another way.
    case endedOtherwise(LaunchOutcome)
    /// The wake is a push's and the report a task's, or the other way round; nothing has changed.
    case otherKind
    /// No such wake is remembered.
    case unknown
}

/// What a report of progress came to.
package enum ProgressOutcome: Hashable, Sendable {
    /// The wake lasts until then.
    case lasts(Instant)
    /// The wake is of another kind than continued.
    case notContinued
    /// The wake has ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What a worker's wish for more time came to.
package enum ExtensionOutcome: Hashable, Sendable {
    /// The wake lasts until then.
    case lasts(Instant)
    /// The wake has all the time that its topic's policy gives; it ends then.
    case limitReached(Instant)
    /// The wake has ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// The outcome of a worker's request to give a wake back.
package enum ReleaseOutcome: Hashable, Sendable {
    /// The wake is lost, and its launch waits again.
    case released
    /// The wake had ended before.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What an operator's forced launch did.
package enum ForcedLaunch: Hashable, Sendable {
    case launched(WakeID)
    /// The lane is full.
    case laneIsFull
    /// No request of the identifier waits.
    case notWaiting
}
