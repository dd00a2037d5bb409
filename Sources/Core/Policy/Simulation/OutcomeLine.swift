package import Wire

/// One line of a simulation's output: an event of a push, a request or a session, with its time and device.
package struct OutcomeLine: Hashable, Sendable {
    /// The push, request or session of an event.
    package enum Subject: Hashable, Sendable {
        /// A push, by its apns-id.
        case push(String)
        /// A request, by its identifier.
        case task(String)
        /// Finished transfers, by the name of their session.
        case session(String)

        package var name: String {
            switch self {
            case .push(let name), .task(let name), .session(let name): name
            }
        }

        fileprivate var member: StaticString {
            switch self {
            case .push: "apnsID"
            case .task: "task"
            case .session: "session"
            }
        }
    }

    package enum Event: Hashable, Sendable {
        /// A push or a request was accepted, or a push was discarded on arrival.
        case arrival(Disposition)
        /// A request was refused.
        case refusal(TaskRefusal)
        /// - `count`: the number of coalesced pushes of a push, or of transfers of a session; 0 for a request.
        case launch(LaunchKind, count: UInt64, attempt: UInt32)
        case result(LaunchOutcome)
        case discard(DiscardReason)
    }

    /// The answer to the provider of a push, or to the submitter of a request.
    package enum Disposition: String, Sendable {
        case launched, coalesced, scheduled, replaced, discarded
    }

    package var moment: Instant
    package var device: String
    package var subject: Subject
    package var event: Event

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.object { writer in
            writer.member("t", self.moment)
            writer.member("device", self.device)
            writer.member("event", self.eventName)
            if case .launch(let kind, _, _) = self.event, kind != .push { writer.member("kind", kind.rawValue) }
            writer.member(self.subject.member, self.subject.name)
            switch self.event {
            case .arrival(let disposition): writer.member("disposition", disposition.rawValue)
            case .refusal(let refusal): writer.member("disposition", refusal.rawValue)
            case .launch(let kind, let count, let attempt):
                if kind == .push { writer.member("coalesced", count) }
                if kind == .urlSession { writer.member("count", count) }
                writer.member("attempt", UInt64(attempt))
            case .result(let outcome): writer.member("result", outcome.name)
            case .discard(let reason): writer.member("reason", reason.rawValue)
            }
        }
    }

    private var eventName: StaticString {
        switch (self.event, self.subject) {
        case (.arrival, .push): "push"
        case (.arrival, _), (.refusal, _): "submit"
        case (.launch, _): "launch"
        case (.result, _): "result"
        case (.discard, _): "discard"
        }
    }
}

/// The content of a trace line.
package enum TraceLine {
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
    package var permitted: [IdentifierPattern]?
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

/// The counters of a simulation, and the state at its end, by their names in the summary line.
package struct Summary: Sendable {
    /// The names of all counters, in the order of the summary line.
    package static let names: [String] = {
        func named(_ name: String, _ cases: [some RawRepresentable<String>]) -> [String] {
            cases.map { "\(name).\($0.rawValue)" }
        }
        return ["accepted", "launched"] + named("results", WakeOutcome.allCases) + ["completed", "coalesced"]
            + named("discarded", DiscardReason.ofPushes) + ["tasks.submitted"]
            + named("tasks.refused", TaskRefusal.allCases) + ["tasks.replaced", "tasks.cancelled"]
            + named("tasks.discarded", DiscardReason.ofTasks) + named("tasks.results", TaskOutcome.allCases)
            + ["tasks.waiting", "tasks.inFlight", "sessions.finished", "sessions.refused", "sessions.completed"]
            + named("sessions.discarded", DiscardReason.ofTasks) + named("sessions.results", TaskOutcome.allCases)
            + ["sessions.waiting", "sessions.inFlight", "pending", "inFlight"]
    }()

    private var counts: [String: Int] = [:]

    package init() {}

    package subscript(name: String) -> Int {
        get { self.counts[name, default: 0] }
        set { self.counts[name] = newValue }
    }

    /// Adds a request, or the transfers of a session, to the counter `name` of its kind.
    mutating func count(_ name: String, _ task: BackgroundTask) {
        let isSession = task.kind == .urlSession
        self[isSession ? "sessions.\(name)" : "tasks.\(name)"] += isSession ? Int(task.transfers) : 1
    }

    /// The summary line, without a line end. It has only `pending`, `inFlight` and the counters that are not zero.
    package var json: String {
        JSONWriter.object { writer in
            writer.beginObject("summary")
            for name in Self.names where self[name] != 0 || name == "pending" || name == "inFlight" {
                writer.key(name)
                writer.integer(self[name])
            }
            writer.endObject()
        }
    }
}
