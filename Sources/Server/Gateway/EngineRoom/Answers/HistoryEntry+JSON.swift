import Engine
import Policy
import Wire

extension HistoryEntry {
    /// Appends what happened as explanations and the log of a device's events show it.
    ///
    /// - Parameter policies: a launch says under which of them it was decided, as long as that is remembered.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.beginObject()
        writer.key("at")
        writer.moment(self.event.at, offset)
        writer.key("event")
        let (name, detail) = self.text
        writer.string(name)
        writer.key("apnsID")
        writer.optional(self.event.apnsID) { writer, apnsID in writer.hex { apnsID.write(to: &$0) } }
        if let kind = self.event.kind.task {
            writer.key("kind")
            writer.string(kind.rawValue)
            writer.key(kind == .urlSession ? "session" : "task")
            writer.optional(self.name) { writer, name in writer.string(name) }
        }
        writer.key("detail")
        writer.optional(detail) { writer, detail in writer.string(detail) }
        if case .launch = self.event.kind, let number = policies.number(at: self.event.at) {
            writer.key("policyVersion")
            writer.integer(number)
        }
        writer.endObject()
    }

    private var text: (name: StaticString, detail: String?) {
        switch self.event.kind {
        case .registered: ("registered", nil)
        case .removed: ("removed", nil)
        case .push(let disposition): ("push", "\(disposition.name)")
        case .launch(.push, let attempt, let coalesced): ("launch", "attempt \(attempt), coalesced \(coalesced)")
        case .launch(_, let attempt, _): ("launch", "attempt \(attempt)")
        case .result(let outcome): ("result", outcome.name)
        case .discard(_, let reason): ("discard", reason.rawValue)
        case .conditions: ("conditions", nil)
        case .extended(_, let seconds): ("extended", "\(seconds) s left")
        case .taskSubmitted(_, let disposition): ("submit", disposition.rawValue)
        case .transfersFinished(let count): ("finished", "\(count) \(count == 1 ? "transfer" : "transfers")")
        // Entries are made of whole names.
        case .namePart: ("name", nil)
        }
    }
}
