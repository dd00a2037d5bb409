/// The data of a push's `wake` event.
package struct WakeMessage: Hashable, Sendable {
    package let wake: String
    package let device: String
    package let topic: String
    package let apnsID: String?
    package let collapseID: String?
    package let priority: Int
    package let attempt: Int
    package let coalesced: Int
    /// Milliseconds since 1970, as are the next two, by the gateway's clock; never past `instantMax`.
    package let receivedAt: Int64
    package let firstReceivedAt: Int64
    package let deadline: Int64
    /// The milliseconds that were left when the gateway wrote the event, at most `timeLeftMax`; a clock that is wrong
    /// does not touch it.
    package let timeLeft: Int64?
    /// The trace of the push; nil when its provider named none.
    package let traceparent: String?
    package let tracestate: String?
    /// The traces of pushes that it stands for, the newest first.
    package let traceLinks: [String]
    /// The JSON text that the push carried; empty for a wake without a push.
    package let payload: [UInt8]

    /// The most time that is believed to be left, in milliseconds: more than two centuries, which is past what any
    /// policy gives, and little enough to be added to any clock.
    package static let timeLeftMax: Int64 = 10_000_000_000_000
    /// The last moment that is believed: the end of the year 9999.
    package static let instantMax: Int64 = 253_402_300_799_999
    /// The most pushes in one, and the most launches of one, that are believed.
    package static let countMax = 1_000_000_000

    /// Reads the data; nil when something is missing, or the wake is no push's.
    package init?(_ data: [UInt8]) {
        guard case .push(let message)? = WakeEvent(data) else { return nil }
        self = message
    }

    /// Reads the members of the data, whatever kind it names; nil when something is missing.
    init?(_ members: JSONMembers) {
        guard let wake = members.text("wake"), let device = members.text("device"), let topic = members.text("topic"),
            let deadline = members.instant("deadline")
        else { return nil }
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = deadline
        self.apnsID = members.text("apnsID")
        self.collapseID = members.text("collapseID")
        self.priority = members.count("priority") ?? 5
        self.attempt = members.count("attempt") ?? 1
        self.coalesced = members.count("coalesced") ?? 0
        self.receivedAt = members.instant("receivedAt") ?? 0
        self.firstReceivedAt = members.instant("firstReceivedAt") ?? 0
        self.timeLeft = members.timeLeft()
        self.traceparent = members.text("traceparent")
        self.tracestate = members.text("tracestate")
        self.traceLinks = members.texts("traceLinks")
        let payload = members.raw("payload") ?? []
        self.payload = payload == Array("null".utf8) ? [] : payload
    }

    /// How many milliseconds are left, of an event without `timeLeft` by `wallClock`, in milliseconds since 1970.
    package func timeLeft(wallClock: Int64) -> Int64 {
        WakeTime.left(self.timeLeft, deadline: self.deadline, wallClock: wallClock)
    }

    /// The milliseconds that are left, in the answer to a wish for more time; nil when it does not say so.
    package static func timeLeft(_ answer: [UInt8]) -> Int64? {
        let answer = JSONValue(answer)
        return answer?["timeLeft"]?.integer.map { max(0, WakeTime.believed($0)) }
    }
}

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
        guard let completed = value["completed"]?.integer, let total = value["total"]?.integer,
            completed >= 0, total >= 0
        else { return nil }
        self.init(
            completed: completed,
            total: total,
            title: value["title"]?.text,
            subtitle: value["subtitle"]?.text
        )
    }
}

/// What is believed of the members of an event's data: texts, and numbers that can be reckoned with.
extension JSONMembers {
    func value(_ name: String) -> JSONValue? {
        self.raw(name).flatMap { JSONValue($0) }
    }

    func text(_ name: String) -> String? { self.value(name)?.text }

    /// The texts of an array; none when it is none.
    func texts(_ name: String) -> [String] {
        self.value(name)?.elements.compactMap(\.text) ?? []
    }

    func integer(_ name: String) -> Int64? { self.value(name)?.integer }

    func instant(_ name: String) -> Int64? {
        self.integer(name).map { max(0, min($0, WakeMessage.instantMax)) }
    }

    func count(_ name: String) -> Int? {
        self.integer(name).map { max(0, min(Int(clamping: $0), WakeMessage.countMax)) }
    }

    func timeLeft() -> Int64? { self.integer("timeLeft").map { WakeTime.believed($0) } }
}

/// How much time a wake has, by what its event says.
enum WakeTime {
    static func believed(_ timeLeft: Int64) -> Int64 {
        max(-WakeMessage.timeLeftMax, min(timeLeft, WakeMessage.timeLeftMax))
    }

    /// - `timeLeft`: what the event says is left; nil when it does not say so.
    static func left(_ timeLeft: Int64?, deadline: Int64, wallClock: Int64) -> Int64 {
        if let timeLeft { return timeLeft }
        let (left, isTooMuch) = deadline.subtractingReportingOverflow(wallClock)
        return isTooMuch ? WakeMessage.timeLeftMax : self.believed(left)
    }
}
