package import Wire

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

    /// The answer that the provider of a push gets.
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
package struct TraceHeader {
    package var parameters: [(parameter: PolicyParameter, value: Double)] = []
    package var worker: WorkerScript?
    /// The scripted outcomes of wakes, by identifier or session name.
    package var tasks: [String: TaskScript] = [:]
    var permitted: [IdentifierPattern]?
    package var until: Instant?

    package init() {}

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.object { writer in
            writer.beginObject("policy")
            for (parameter, value) in self.parameters {
                writer.key(parameter.rawValue)
                writer.number(value)
            }
            writer.endObject()
            if let worker {
                writer.key("worker")
                worker.write(to: &writer)
            }
            if !self.tasks.isEmpty {
                writer.beginObject("tasks")
                for (name, script) in self.tasks.sorted(by: { $0.key < $1.key }) {
                    writer.key(name)
                    script.write(to: &writer)
                }
                writer.endObject()
            }
            if let until { writer.member("until", until) }
        }
    }
}

/// An outside event of a device.
package struct TraceEvent {
    package enum Kind {
        case push(TracePush)
        case conditions(ConditionsReport)
        case submit(TraceRequest)
        case finished(session: String, count: UInt64)
        case cancel(String)
    }

    package var moment: Instant
    package var device: String
    package var kind: Kind

    package init(moment: Instant, device: String, kind: Kind) {
        self.moment = moment
        self.device = device
        self.kind = kind
    }

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.object { writer in
            writer.member("t", self.moment)
            writer.member("device", self.device)
            switch self.kind {
            case .push(let push):
                writer.beginObject("push")
                push.write(to: &writer)
            case .conditions(let report):
                writer.beginObject("conditions")
                report.writeMembers(to: &writer)
            case .submit(let request):
                writer.beginObject("submit")
                request.write(to: &writer)
            case .finished(let session, let count):
                writer.beginObject("finished")
                writer.member("session", session)
                writer.member("count", count)
            case .cancel(let identifier): return writer.member("cancel", identifier)
            }
            writer.endObject()
        }
    }
}

/// A push of a trace.
package struct TracePush {
    package var apnsID: String
    package var priority: Priority
    package var expiration: Expiration

    package init(apnsID: String, priority: Priority, expiration: Expiration) {
        self.apnsID = apnsID
        self.priority = priority
        self.expiration = expiration
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("apnsID", self.apnsID)
        writer.member("priority", UInt64(self.priority.rawValue))
        switch self.expiration {
        case .absent: break
        case .nowOrNever: writer.member("expiration", UInt64(0))
        case .at(let moment): writer.member("expiration", moment)
        }
    }
}

/// A request of a trace.
package struct TraceRequest {
    package var identifier: String
    package var kind: TaskSubmission.Kind
    package var earliestBegin: Instant?

    package init(identifier: String, kind: TaskSubmission.Kind, earliestBegin: Instant? = nil) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("identifier", self.identifier)
        writer.member("kind", self.kind.taskKind.rawValue)
        if let earliestBegin { writer.member("earliestBegin", earliestBegin) }
        switch self.kind {
        case .appRefresh: break
        case .processing(let needs):
            if needs.contains(.network) { writer.member("requiresNetworkConnectivity", true) }
            if needs.contains(.externalPower) { writer.member("requiresExternalPower", true) }
        case .continued(let strategy): writer.member("strategy", strategy.rawValue)
        }
    }
}

extension ConditionsReport {
    /// Appends the reported fields as members.
    package func writeMembers(to writer: inout JSONWriter) {
        if let appState { writer.member("appState", appState.rawValue) }
        if let backgroundRefresh { writer.member("backgroundRefresh", backgroundRefresh.rawValue) }
        if let batteryLevel { writer.member("batteryLevel", batteryLevel) }
        if let charging { writer.member("charging", charging) }
        if let lowPowerMode { writer.member("lowPowerMode", lowPowerMode) }
        if let thermalState { writer.member("thermalState", thermalState.rawValue) }
        if let memoryPressure { writer.member("memoryPressure", memoryPressure.rawValue) }
        if let network { writer.member("network", network) }
    }
}

extension WakeScript {
    /// Appends the steps as an array.
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginArray()
        for step in self.steps {
            writer.beginArray()
            writer.string(step.answer.rawValue)
            Instant(milliseconds: step.delay).seconds.withByteView { writer.raw($0) }
            if let advance = step.advance { Instant(milliseconds: advance).seconds.withByteView { writer.raw($0) } }
            writer.endArray()
        }
        writer.endArray()
    }
}

extension JSONWriter {
    /// Returns a line of a simulation's output, without a line end: a JSON object that starts with time, device and
    /// event.
    fileprivate static func line(
        at moment: Instant,
        device: String,
        _ event: StaticString,
        _ writeMembers: (inout JSONWriter) -> Void
    ) -> String {
        self.object { writer in
            writer.member("t", moment)
            writer.member("device", device)
            writer.member("event", event)
            writeMembers(&writer)
        }
    }

    /// Returns a line of a trace or of a simulation's output, without a line end: a JSON object.
    fileprivate static func object(_ writeMembers: (inout JSONWriter) -> Void) -> String {
        String(decoding: self.object(writeMembers) as [UInt8], as: UTF8.self)
    }

    fileprivate mutating func member(_ name: StaticString, _ moment: Instant) {
        self.key(name)
        moment.seconds.withByteView { self.raw($0) }
    }
}

extension Instant {
    /// The time in seconds, with as many decimals as needed. Times in a trace are never negative.
    var seconds: String {
        let (whole, rest) = self.milliseconds.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return String(whole) }
        var decimals = Array(String(1000 + rest).utf8.dropFirst())
        while decimals.last == UInt8(ascii: "0") { decimals.removeLast() }
        return "\(whole)." + String(decoding: decimals, as: UTF8.self)
    }
}

/// The counters of a simulation, and the state at its end.
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

    /// The counters of finished transfers. Only `results` counts wakes.
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

    /// The summary line, without a line end. It has only `pending`, `inFlight` and the counters that are not zero.
    package var json: String {
        var counters: [(String, Int)] = [("accepted", self.accepted), ("launched", self.launched)]
        counters += WakeOutcome.allCases.map { ("results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("completed", self.completed), ("coalesced", self.coalesced)]
        counters += DiscardReason.ofPushes.map { ("discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += self.tasks.counters + self.sessions.counters
        counters.removeAll { $0.1 == 0 }
        counters += [("pending", self.pending), ("inFlight", self.inFlight)]
        return JSONWriter.object { writer in
            writer.beginObject("summary")
            for (name, count) in counters {
                writer.key(name)
                writer.integer(count)
            }
            writer.endObject()
        }
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
