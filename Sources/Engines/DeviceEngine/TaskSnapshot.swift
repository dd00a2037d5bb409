package import Bytes
package import LaunchPolicy

/// A request, or the finished transfers of a session, that waits or runs, at one moment.
package struct TaskSnapshot: Sendable {
    package enum State: Sendable {
        /// - `eligibleAt`: the first moment at which interval, budget, earliest beginning and habits allow its launch; nil
        ///   when they do now.
        /// - `held`: every hold that applies, the deciding one first; `worker` when it waits for nothing else.
        /// - `laneIsFull`: it waits for what runs in its lane.
        case waiting(eligibleAt: Instant?, held: [TaskHoldCode], laneIsFull: Bool)
        /// - `progress`: of a continued task, the last that was reported.
        case running(wake: WakeID, launchedAt: Instant, deadline: Instant, progress: TaskProgress?)
    }

    package let device: DeviceToken
    package let topic: String
    /// The identifier, or the session's name.
    package let name: String
    package let task: BackgroundTask
    package let details: TaskDetails
    package let state: State

    package init(
        device: DeviceToken,
        topic: String,
        name: String,
        task: BackgroundTask,
        details: TaskDetails,
        state: State
    ) {
        self.device = device
        self.topic = topic
        self.name = name
        self.task = task
        self.details = details
        self.state = state
    }
}

/// Which requests of all devices are asked for; nil is any.
package struct TaskFilter: Sendable {
    package enum State: String, CaseIterable, Sendable {
        case waiting, running
    }

    package var topic: TopicIndex?
    package var kind: TaskKind?
    package var state: State?

    package init(topic: TopicIndex? = nil, kind: TaskKind? = nil, state: State? = nil) {
        self.topic = topic
        self.kind = kind
        self.state = state
    }
}
