import Wire

/// One line of a simulation's output: an event of a push, with its time and device.
package struct OutcomeLine: Hashable, Sendable {
    package enum Event: Hashable, Sendable {
        case push(Disposition)
        case launch(coalesced: UInt32, attempt: UInt32)
        case result(WakeOutcome)
        case discard(DiscardReason)

        fileprivate var name: StaticString {
            switch self {
            case .push: "push"
            case .launch: "launch"
            case .result: "result"
            case .discard: "discard"
            }
        }
    }

    /// The answer to the provider of a push.
    package enum Disposition: String, Sendable, CaseIterable {
        case launched, coalesced, scheduled, discarded
    }

    package var moment: Instant
    package var device: String
    package var apnsID: String
    package var event: Event

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.line(at: self.moment, device: self.device, self.event.name) { writer in
            writer.member("apnsID", self.apnsID)
            switch self.event {
            case .push(let disposition): writer.member("disposition", disposition.rawValue)
            case .launch(let coalesced, let attempt):
                writer.member("coalesced", UInt64(coalesced))
                writer.member("attempt", UInt64(attempt))
            case .result(let outcome): writer.member("result", outcome.rawValue)
            case .discard(let reason): writer.member("reason", reason.rawValue)
            }
        }
    }
}

/// One line of a simulation's output: an event of a request or a session, with its time and device.
package struct TaskLine: Hashable, Sendable {
    /// The task or session of an event.
    package enum Subject: Hashable, Sendable {
        /// A request, by its identifier.
        case task(String)
        /// Finished transfers, by the name of their session.
        case session(String)
    }

    package enum Event: Hashable, Sendable {
        case submit(Disposition)
        /// - `transfers`: the number of transfers of a session's wake.
        case launch(TaskKind, transfers: UInt64, attempt: UInt32)
        case result(TaskOutcome)
        case discard(DiscardReason)

        fileprivate var name: StaticString {
            switch self {
            case .submit: "submit"
            case .launch: "launch"
            case .result: "result"
            case .discard: "discard"
            }
        }
    }

    /// The answer to the submitter of a request.
    package enum Disposition: Hashable, Sendable {
        case launched, scheduled, replaced
        case refused(TaskRefusal)

        package var name: String {
            switch self {
            case .launched: "launched"
            case .scheduled: "scheduled"
            case .replaced: "replaced"
            case .refused(let refusal): refusal.rawValue
            }
        }
    }

    package var moment: Instant
    package var device: String
    package var subject: Subject
    package var event: Event

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.line(at: self.moment, device: self.device, self.event.name) { writer in
            if case .launch(let kind, _, _) = self.event { writer.member("kind", kind.rawValue) }
            switch self.subject {
            case .task(let identifier): writer.member("task", identifier)
            case .session(let name): writer.member("session", name)
            }
            switch self.event {
            case .submit(let disposition): writer.member("disposition", disposition.name)
            case .launch(_, let transfers, let attempt):
                if case .session = self.subject { writer.member("count", transfers) }
                writer.member("attempt", UInt64(attempt))
            case .result(let outcome): writer.member("result", outcome.rawValue)
            case .discard(let reason): writer.member("reason", reason.rawValue)
            }
        }
    }
}

/// The content of a trace line.
enum TraceLine {
    /// The line contains white space only.
    case blank
    case header(TraceHeader)
    case event(TraceEvent)
}

/// The settings in a header line.
struct TraceHeader {
    var parameters: [(parameter: PolicyParameter, value: Double)] = []
    var worker: WorkerScript?
    /// The scripted outcomes of wakes, by identifier or session name.
    var tasks: [String: TaskScript] = [:]
    var permitted: [IdentifierPattern]?
    var until: Instant?
}

/// An outside event of a device.
struct TraceEvent {
    enum Kind {
        case push(TracePush)
        case conditions(ConditionsReport)
        case submit(TraceRequest)
        case finished(session: String, count: UInt64)
        case cancel(String)
    }

    var moment: Instant
    var device: String
    var kind: Kind
}

/// A push of a trace.
struct TracePush {
    var apnsID: String
    var priority: Priority
    var expiration: Expiration
}

/// A request of a trace.
struct TraceRequest {
    var identifier: String
    var kind: TaskSubmission.Kind
    var earliestBegin: Instant?
}

extension JSONWriter {
    /// One line of a simulation's output, without a line end: a JSON object that starts with time, device and event.
    fileprivate static func line(
        at moment: Instant,
        device: String,
        _ event: StaticString,
        _ writeMembers: (inout JSONWriter) -> Void
    ) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("t")
        moment.seconds.withByteView { writer.raw($0) }
        writer.member("device", device)
        writer.key("event")
        writer.string(event)
        writeMembers(&writer)
        writer.endObject()
        return writer.buffer.view.string
    }

    fileprivate mutating func member(_ name: StaticString, _ value: String) {
        self.key(name)
        self.string(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ value: UInt64) {
        self.key(name)
        self.integer(value)
    }
}

extension Instant {
    /// A time in a trace, which is never negative, in seconds with as many decimals as needed.
    var seconds: String {
        let (whole, rest) = self.milliseconds.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return String(whole) }
        var decimals = Array(String(1000 + rest).utf8.dropFirst())
        while decimals.last == UInt8(ascii: "0") { decimals.removeLast() }
        return "\(whole)." + String(decoding: decimals, as: UTF8.self)
    }
}

/// The counters of a simulation, with the state at its end.
package struct Summary: Hashable, Sendable {
    package var accepted = 0
    package var launched = 0
    package var results: [WakeOutcome: Int] = [:]
    package var completed = 0
    package var coalesced = 0
    package var discarded: [DiscardReason: Int] = [:]
    package var pending = 0
    package var inFlight = 0
    package var tasks = Tasks()
    package var sessions = Sessions()

    /// The counters of requests.
    package struct Tasks: Hashable, Sendable {
        package var submitted = 0
        package var refused: [TaskRefusal: Int] = [:]
        package var replaced = 0
        /// Requests cancelled while pending.
        package var cancelled = 0
        package var discarded: [DiscardReason: Int] = [:]
        package var results: [TaskOutcome: Int] = [:]
        package var waiting = 0
        package var inFlight = 0
    }

    /// The counters of finished transfers; `results` counts wakes.
    package struct Sessions: Hashable, Sendable {
        package var finished = 0
        package var refused = 0
        package var completed = 0
        package var discarded: [DiscardReason: Int] = [:]
        package var results: [TaskOutcome: Int] = [:]
        package var waiting = 0
        package var inFlight = 0
    }

    package init() {}

    mutating func count(_ event: OutcomeLine.Event) {
        switch event {
        case .push: self.accepted += 1
        case .launch: self.launched += 1
        case .result(let outcome): self.results[outcome, default: 0] += 1
        case .discard(let reason): self.discarded[reason, default: 0] += 1
        }
    }

    /// The summary line, without a line end. Counters of zero are left out, except `pending` and `inFlight`.
    package var json: String {
        var counters: [(String, Int)] = [("accepted", self.accepted), ("launched", self.launched)]
        counters += WakeOutcome.allCases.map { ("results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("completed", self.completed), ("coalesced", self.coalesced)]
        counters += DiscardReason.ofPushes.map { ("discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += self.tasks.counters + self.sessions.counters
        counters.removeAll { $0.1 == 0 }
        counters += [("pending", self.pending), ("inFlight", self.inFlight)]
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("summary")
        writer.beginObject()
        for (name, count) in counters {
            writer.key(name)
            writer.integer(count)
        }
        writer.endObject()
        writer.endObject()
        return writer.buffer.view.string
    }
}

extension Summary.Tasks {
    fileprivate var counters: [(String, Int)] {
        var counters = [("tasks.submitted", self.submitted)]
        counters += TaskRefusal.allCases.map { ("tasks.refused.\($0.rawValue)", self.refused[$0] ?? 0) }
        counters += [("tasks.replaced", self.replaced), ("tasks.cancelled", self.cancelled)]
        counters += DiscardReason.ofTasks.map { ("tasks.discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += TaskOutcome.allCases.map { ("tasks.results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("tasks.waiting", self.waiting), ("tasks.inFlight", self.inFlight)]
        return counters
    }
}

extension Summary.Sessions {
    fileprivate var counters: [(String, Int)] {
        var counters = [("sessions.finished", self.finished), ("sessions.refused", self.refused)]
        counters += [("sessions.completed", self.completed)]
        counters += DiscardReason.ofTasks.map { ("sessions.discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += TaskOutcome.allCases.map { ("sessions.results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("sessions.waiting", self.waiting), ("sessions.inFlight", self.inFlight)]
        return counters
    }
}
