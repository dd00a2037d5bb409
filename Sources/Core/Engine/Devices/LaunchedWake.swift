package import Policy
package import Wire

/// A launched wake, with the data for its worker.
package struct LaunchedWake {
    /// The reason for a wake.
    package enum Cause {
        /// - `content`: valid until the next call of the engine; nil for a wake without a push.
        case push(PendingPush, content: PushContent?)
        case task(LaunchedTask)
    }

    package let id: WakeID
    package let token: DeviceToken
    package let topic: String
    package let deadline: Instant
    /// The time until the deadline, in milliseconds.
    package let timeLeft: Int64
    package let cause: Cause

    /// The launched push; nil for a task.
    package var push: PendingPush? {
        if case .push(let push, _) = self.cause { push } else { nil }
    }

    /// The content of the push, valid until the next call of the engine; nil for a wake without a push and for a task.
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

/// A launched task or session.
package struct LaunchedTask: Hashable, Sendable {
    /// The identifier, or the name of the session.
    package let name: String
    /// The task. Its `attempts` include this launch.
    package let task: BackgroundTask
    package let details: TaskDetails
    /// The state from which a relaunched continued task resumes; nil for the first launch, and for other kinds.
    package let resumedFrom: TaskResumption?
}

/// A worker's report of the end of its wake.
package enum WakeReport: Hashable, Sendable {
    case push(FetchResult)
    /// The result of a task or a session.
    case task(TaskResult)
}

/// The effect of a reported result.
package enum ReportOutcome: Hashable, Sendable {
    /// The report ended the wake.
    case ended
    /// The wake had already ended with the same result.
    case repeated
    /// The wake had already ended with another outcome.
    case endedOtherwise(LaunchOutcome)
    /// The report is for a task and the wake for a push, or vice versa. Nothing has changed.
    case otherKind
    /// No such wake is remembered.
    case unknown
}

/// The effect of a progress report.
package enum ProgressOutcome: Hashable, Sendable {
    /// The wake's deadline is now this time.
    case lasts(Instant)
    /// The wake belongs to no continued task.
    case notContinued
    /// The wake has ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// The effect of a worker's request for more time.
package enum ExtensionOutcome: Hashable, Sendable {
    /// The wake's deadline is now this time.
    case lasts(Instant)
    /// The wake has reached the maximum that its topic's policy allows, and ends at this time.
    case limitReached(Instant)
    /// The wake has ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// The effect of a worker's request to give a wake back.
package enum ReleaseOutcome: Hashable, Sendable {
    /// The wake is lost, and its launch is pending again.
    case released
    /// The wake had already ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}
