/// The data of a `wake` event of a background task, or of a session's finished transfers.
package struct TaskMessage: Hashable, Sendable {
    /// What the wake is for.
    package enum Work: Hashable, Sendable {
        /// A background task, by its identifier.
        case task(String, title: String?, subtitle: String?)
        /// So many transfers of a background session have finished.
        case session(String, count: Int)
    }

    /// The progress that was told last of a continued task that was launched before.
    package struct Resumption: Hashable, Sendable {
        package let completed: Int64
        package let total: Int64
        package let title: String?
        package let subtitle: String?
    }

    package let wake: String
    package let kind: WakeKind
    package let device: String
    package let topic: String
    package let work: Work
    package let attempt: Int
    /// Milliseconds since 1970, as is the next; never past `WakeMessage.instantMax`.
    package let submittedAt: Int64
    package let deadline: Int64
    /// The milliseconds that were left when the gateway wrote the event, at most `WakeMessage.timeLeftMax`.
    package let timeLeft: Int64?
    /// The trace that the request belongs to, as its sender's header said; nil when it belongs to none.
    package let traceparent: String?
    package let tracestate: String?
    /// What a continued task goes on from; nil in its first launch, and when no launch told of progress.
    package let resumedFrom: Resumption?

    /// Reads the members of the data, whatever kind it names; nil when something is missing.
    ///
    /// - `kind`: the kind that they name; only `urlSession` is a session's.
    init?(_ members: JSONMembers, _ kind: WakeKind) {
        guard let wake = members.text("wake"), let device = members.text("device"), let topic = members.text("topic"),
            let deadline = members.instant("deadline"), let work = Work(members, kind)
        else { return nil }
        self.wake = wake
        self.kind = kind
        self.device = device
        self.topic = topic
        self.work = work
        self.attempt = members.count("attempt") ?? 1
        self.submittedAt = members.instant("submittedAt") ?? 0
        self.deadline = deadline
        self.timeLeft = members.timeLeft()
        self.traceparent = members.text("traceparent")
        self.tracestate = members.text("tracestate")
        self.resumedFrom = members.value("resumedFrom").flatMap { Resumption($0) }
    }

    /// How many milliseconds are left, of an event without `timeLeft` by `wallClock`, in milliseconds since 1970.
    package func timeLeft(wallClock: Int64) -> Int64 {
        WakeTime.left(self.timeLeft, deadline: self.deadline, wallClock: wallClock)
    }
}

extension TaskMessage.Work {
    fileprivate init?(_ members: JSONMembers, _ kind: WakeKind) {
        if kind == .urlSession {
            guard let session = members.text("session") else { return nil }
            self = .session(session, count: members.count("count") ?? 1)
        } else {
            guard let task = members.text("task") else { return nil }
            self = .task(task, title: members.text("title"), subtitle: members.text("subtitle"))
        }
    }
}

extension TaskMessage.Resumption {
    fileprivate init?(_ value: JSONValue) {
        guard let completed = value["completed"]?.eventInteger, let total = value["total"]?.eventInteger,
            completed >= 0, total >= 0
        else { return nil }
        self.init(
            completed: completed,
            total: total,
            title: value["title"]?.eventText,
            subtitle: value["subtitle"]?.eventText
        )
    }
}
