package import Policy
package import Wire

/// The answer to an accepted push or request.
package struct LaunchAnswer<Disposition: Hashable & Sendable>: Hashable, Sendable {
    package let disposition: Disposition
    /// The first moment at which interval, budget, earliest beginning and habits allow the pending launch; nil
    /// when something holds it, and when nothing waits.
    package let eligibleAt: Instant?
    /// The first hold that applies to the pending launch.
    package let held: Hold?
    /// The wake that it launched at once.
    package var wake: WakeID?
}

package typealias PushAnswer = LaunchAnswer<Disposition>
package typealias TaskAnswer = LaunchAnswer<TaskDisposition>

extension LaunchAnswer {
    /// The answer to what does not wait.
    init(_ disposition: Disposition, wake: WakeID? = nil) {
        self.init(disposition: disposition, eligibleAt: nil, held: nil, wake: wake)
    }

    /// The answer to a request that is pending.
    ///
    /// - Parameters:
    ///   - hold: the first hold by its device's conditions.
    ///   - isLaneFull: no more can be in flight in its lane.
    ///   - isPaused: its topic is.
    init(
        _ disposition: Disposition,
        heldBy hold: Hold?,
        eligibleAt: Instant,
        isLaneFull: Bool,
        isPaused: Bool,
        at now: Instant
    ) {
        let isDue = !isLaneFull && eligibleAt <= now
        let held = isPaused ? .paused : hold ?? (isDue ? .worker : nil)
        self.init(disposition: disposition, eligibleAt: held == nil ? max(eligibleAt, now) : nil, held: held, wake: nil)
    }
}

extension PushAnswer {
    /// The answer to a push that did `action`, after which its device is in `state`; it names no wake.
    init(
        _ action: PushReceivedAction,
        _ state: DeviceState,
        isLaneFull: Bool,
        isPaused: Bool,
        _ now: Instant,
        _ parameters: Parameters
    ) {
        switch action {
        case .launched: self.init(.launched)
        case .discarded: self.init(.discarded)
        case .waits(let absorbed):
            guard let pending = state.pending else { preconditionFailure("a push that waits is pending") }
            self.init(
                absorbed == nil ? .scheduled : .coalesced,
                heldBy: state.hold(pending.priority, parameters),
                eligibleAt: state.eligibleAt(pending.priority, parameters),
                isLaneFull: isLaneFull,
                isPaused: isPaused,
                at: now
            )
        }
    }
}

/// What the provider of an accepted push is told of it.
package enum Disposition: UInt8, BitwiseCopyable, Sendable, CaseIterable {
    case launched, scheduled, coalesced, discarded, noWake

    package var name: StaticString {
        switch self {
        case .launched: "launched"
        case .scheduled: "scheduled"
        case .coalesced: "coalesced"
        case .discarded: "discarded"
        case .noWake: "no-wake"
        }
    }
}

/// A request for a background task as a caller hands it over.
package struct IncomingTask: Hashable, Sendable {
    /// 1...255 characters of A-Z a-z 0-9 . - _
    package let identifier: String
    package let kind: TaskSubmission.Kind
    /// Not before; nil is the moment of submission.
    package let earliestBegin: Instant?
    package let details: TaskDetails

    package init(
        identifier: String,
        kind: TaskSubmission.Kind,
        earliestBegin: Instant? = nil,
        details: TaskDetails = TaskDetails()
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.details = details
    }
}

/// What a request carries that the policy does not ask for: what a continued task shows to the person who waits for it
/// and needs of its worker, and the trace that the request belongs to.
package struct TaskDetails: Hashable, Sendable {
    /// At most 256 bytes.
    package var title: String?
    /// At most 256 bytes.
    package var subtitle: String?
    /// What the stream must offer that takes it.
    package var resources: [String]
    /// What `PushTrace` keeps; empty when there is none.
    package var trace: [UInt8]

    package init(title: String? = nil, subtitle: String? = nil, resources: [String] = [], trace: [UInt8] = []) {
        self.title = title
        self.subtitle = subtitle
        self.resources = resources
        self.trace = trace
    }
}

/// How far a continued task is.
package struct TaskProgress: Hashable, Sendable {
    package var completed: UInt64
    package var total: UInt64
    package var title: String?
    package var subtitle: String?

    package init(completed: UInt64, total: UInt64, title: String? = nil, subtitle: String? = nil) {
        self.completed = completed
        self.total = total
        self.title = title
        self.subtitle = subtitle
    }
}

/// What a continued task that launched before goes on from.
package enum TaskResumption: Hashable, Sendable {
    /// No launch told of progress.
    case nothingTold
    /// The last that was told.
    case progress(TaskProgress)
}

/// What a submission came to.
package enum TaskDisposition: String, CaseIterable, Sendable {
    case launched, scheduled, replaced
}

/// Why a submission, or finished transfers, were not taken.
package enum TaskRejection: Error, Hashable, Sendable {
    /// By the policy.
    case policy(TaskRefusal)
    /// A ninth session.
    case tooManySessions
    /// By a bound of the gateway.
    case bound(EngineLimit)
}

/// Whether a push may be accepted for a token.
package enum Admission: Hashable, Sendable {
    case device(DeviceIndex)
    /// The token would be registered by this push, were it not a dry run; nil when its topic is new as well.
    case newcomer(TopicIndex?)
    case refused(Refusal)
}

/// Why a device does not take what was sent to it.
package enum Refusal: Error, Hashable, Sendable {
    /// The token was never registered.
    case unknown
    /// The token was removed at this moment.
    case unregistered(Instant)
    /// The token belongs to another topic.
    case otherTopic
    /// There are as many devices as there may be.
    case tooManyDevices
    /// The topic has as many devices as a topic may have.
    case tooManyDevicesOfTopic
    /// The topic is new, and there are as many as there may be.
    case tooManyTopics
    /// The pushes of all topics that wait take up as much memory as they may.
    case noMemory
    /// The topic's waiting pushes take up as much memory as a topic's may.
    case noMemoryForTopic
    /// The device has had as many pushes as it takes until this moment.
    case tooMany(until: Instant)
}
