import Wire

/// How often each thing happened in a simulation, and what is left at its end.
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

    /// How often each thing happened to a request.
    package struct Tasks: Hashable, Sendable {
        package var submitted = 0
        package var refused: [TaskRefusal: Int] = [:]
        package var replaced = 0
        /// While they waited.
        package var cancelled = 0
        package var discarded: [TaskDiscardReason: Int] = [:]
        package var results: [TaskOutcome: Int] = [:]
        package var waiting = 0
        package var inFlight = 0
    }

    /// How often each thing happened to a finished transfer, and, in `results`, to a wake.
    package struct Sessions: Hashable, Sendable {
        package var finished = 0
        package var refused = 0
        package var completed = 0
        package var discarded: [TaskDiscardReason: Int] = [:]
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

    /// The summary line, without a line end. Counters at zero are left out, except `pending` and `inFlight`.
    package var json: String {
        var counters: [(String, Int)] = [("accepted", self.accepted), ("launched", self.launched)]
        counters += WakeOutcome.allCases.map { ("results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("completed", self.completed), ("coalesced", self.coalesced)]
        counters += DiscardReason.allCases.map { ("discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
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
        counters += TaskDiscardReason.allCases.map { ("tasks.discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += TaskOutcome.allCases.map { ("tasks.results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("tasks.waiting", self.waiting), ("tasks.inFlight", self.inFlight)]
        return counters
    }
}

extension Summary.Sessions {
    fileprivate var counters: [(String, Int)] {
        var counters = [("sessions.finished", self.finished), ("sessions.refused", self.refused)]
        counters += [("sessions.completed", self.completed)]
        counters += TaskDiscardReason.allCases.map { ("sessions.discarded.\($0.rawValue)", self.discarded[$0] ?? 0) }
        counters += TaskOutcome.allCases.map { ("sessions.results.\($0.rawValue)", self.results[$0] ?? 0) }
        counters += [("sessions.waiting", self.waiting), ("sessions.inFlight", self.inFlight)]
        return counters
    }
}
