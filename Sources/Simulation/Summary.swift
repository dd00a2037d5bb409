import Bytes
package import LaunchPolicy

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
