/// The data of a push's `wake` event.
package struct WakeMessage: Hashable, Sendable {
    package let wake: String
    package let device: String
    package let topic: String
    package private(set) var apnsID: String?
    package private(set) var collapseID: String?
    package private(set) var priority = 5
    package private(set) var attempt = 1
    package private(set) var coalesced = 0
    /// The times of arrival, first arrival and deadline, in milliseconds since 1970 by the gateway's clock. The maximum
    /// is `instantMax`.
    package private(set) var receivedAt: Int64 = 0
    package private(set) var firstReceivedAt: Int64 = 0
    package let deadline: Int64
    /// The milliseconds from the event to the deadline, computed by the gateway; at most `timeLeftMax`. They do not
    /// depend on the worker's clock.
    package private(set) var timeLeft: Int64?
    /// The trace of the push; nil if its provider sent none.
    package private(set) var traceparent: String?
    package private(set) var tracestate: String?
    /// The traces of coalesced pushes, newest first.
    package private(set) var traceLinks: [String] = []
    /// The JSON text of the push; empty for a wake without a push.
    package let payload: [UInt8]

    /// The maximum accepted time left, in milliseconds: more than 300 years. No policy allows as much, and adding it to
    /// a clock does not overflow.
    package static let timeLeftMax: Int64 = 10_000_000_000_000
    /// The maximum accepted time: the end of the year 9999.
    package static let instantMax: Int64 = 253_402_300_799_999
    /// The maximum accepted number of coalesced pushes or of launches.
    package static let countMax = 1_000_000_000

    /// Creates the message of the first launch of a push, for the test of a handler.
    package init(wake: String, device: String, topic: String, payload: [UInt8]) {
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = 0
        self.payload = payload
    }

    /// Parses the data; nil if a required member is missing or the wake is for a task.
    package init?(_ data: [UInt8]) {
        guard case .push(let message)? = WakeEvent(data) else { return nil }
        self = message
    }

    /// Reads the members of the data and ignores its kind; nil if a required member is missing.
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

    /// Returns the milliseconds left. Without `timeLeft` in the event, computes them from `wallClock`, in milliseconds
    /// since 1970.
    package func timeLeft(wallClock: Int64) -> Int64 {
        WakeTime.left(self.timeLeft, deadline: self.deadline, wallClock: wallClock)
    }

    /// Returns the milliseconds left according to the answer to a request for more time; nil if the answer does not
    /// contain them.
    package static func timeLeft(_ answer: [UInt8]) -> Int64? {
        let answer = JSONValue(answer)
        return answer?["timeLeft"]?.integer.map { max(0, WakeTime.believed($0)) }
    }
}

/// The data of a `wake` event of a background task, or of a session's finished transfers.
package struct TaskMessage: Hashable, Sendable {
    /// The task or session that the wake is for.
    package enum Work: Hashable, Sendable {
        /// A background task: its identifier, title and subtitle.
        case task(String, title: String?, subtitle: String?)
        /// A background session: its name, and the number of finished transfers.
        case session(String, count: Int)
    }

    /// The last reported progress of a relaunched continued task.
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
    /// The times of submission and deadline, in milliseconds since 1970. The maximum is `WakeMessage.instantMax`.
    package let submittedAt: Int64
    package let deadline: Int64
    /// The milliseconds from the event to the deadline, computed by the gateway; at most `WakeMessage.timeLeftMax`.
    package let timeLeft: Int64?
    /// The trace of the request; nil if its sender sent none.
    package let traceparent: String?
    package let tracestate: String?
    /// The progress from which a continued task resumes. It is nil for the first launch, or if no launch reported
    /// progress.
    package let resumedFrom: Resumption?

    /// Reads the members of the data; nil if a required member is missing.
    ///
    /// - `kind`: the kind in the data. A wake of kind `urlSession` is for a session, any other wake for a task.
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

    /// Returns the milliseconds left. Without `timeLeft` in the event, computes them from `wallClock`, in milliseconds
    /// since 1970.
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

/// The members of a JSON object in their original text, which delivers a payload to its worker byte for byte.
///
/// Clients read the gateway's events with it. The places of commas and colons in values are not checked, because the
/// gateway sends only valid JSON.
package struct JSONMembers: Sendable {
    private let text: [UInt8]
    private let ranges: [String: Range<Int>]

    /// Finds the members of the object in `text`; nil if `text` is not an object or is truncated.
    package init?(_ text: [UInt8]) {
        let ranges = text.withByteView { view in
            var scanner = JSONScanner(view)
            return scanner.members()
        }
        guard let ranges else { return nil }
        self.text = text
        self.ranges = ranges
    }

    /// Returns the original text of the member's value; nil if there is no such member.
    package func raw(_ name: String) -> [UInt8]? {
        self.ranges[name].map { Array(self.text[$0]) }
    }
}

extension JSONScanner {
    /// Reads an object, and returns the places of its values by name; nil if it is malformed.
    fileprivate mutating func members() -> [String: Range<Int>]? {
        var ranges: [String: Range<Int>] = [:]
        guard self.skipToken(UInt8(ascii: "{")) else { return nil }
        if self.skipToken(UInt8(ascii: "}")) { return ranges }
        repeat {
            self.skipSpace()
            guard self.current == UInt8(ascii: "\""), let name = self.string(), self.skipToken(UInt8(ascii: ":")) else {
                return nil
            }
            self.skipSpace()
            let start = self.position
            guard self.skipValue() else { return nil }
            ranges[name.text.string] = start..<self.position
        } while self.skipToken(UInt8(ascii: ","))
        return self.skipToken(UInt8(ascii: "}")) ? ranges : nil
    }

    /// Skips white space, and a byte if it comes next. Returns true if it does.
    private mutating func skipToken(_ byte: UInt8) -> Bool {
        self.skipSpace()
        guard self.current == byte else { return false }
        self.advance()
        return true
    }

    /// Skips a value. Returns false if a part is malformed or the text ends first.
    private mutating func skipValue() -> Bool {
        var depth = 0
        repeat {
            self.skipSpace()
            switch self.current {
            case UInt8(ascii: "\""): guard self.string() != nil else { return false }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                self.advance()
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                self.advance()
            case UInt8(ascii: ","), UInt8(ascii: ":"): self.advance()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                guard self.number() != nil else { return false }
            default: guard self.skip("true") || self.skip("false") || self.skip("null") else { return false }
            }
        } while depth > 0
        return depth == 0
    }
}

/// Access to the members of an event's data. Numbers are clamped to the accepted ranges.
extension JSONMembers {
    func value(_ name: String) -> JSONValue? {
        self.raw(name).flatMap { JSONValue($0) }
    }

    func text(_ name: String) -> String? { self.value(name)?.text }

    /// Returns the texts in an array; empty for other values.
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

/// The computation of the time that a wake has left.
enum WakeTime {
    static func believed(_ timeLeft: Int64) -> Int64 {
        max(-WakeMessage.timeLeftMax, min(timeLeft, WakeMessage.timeLeftMax))
    }

    /// - `timeLeft`: the time left in the event; nil if the event has none.
    static func left(_ timeLeft: Int64?, deadline: Int64, wallClock: Int64) -> Int64 {
        if let timeLeft { return timeLeft }
        let (left, isTooMuch) = deadline.subtractingReportingOverflow(wallClock)
        return isTooMuch ? WakeMessage.timeLeftMax : self.believed(left)
    }
}
