import Bytes
import DeviceEngine
import LaunchPolicy

extension HistoryEvent {
    /// Appends the event as explanations show it.
    ///
    /// - Parameter policies: a launch says under which of them it was decided, as long as that is remembered.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.beginObject()
        writer.key("at")
        writer.moment(self.at, offset)
        writer.key("event")
        let (name, detail) = self.text
        writer.string(name)
        writer.key("apnsID")
        writer.optional(self.apnsID) { writer, apnsID in writer.hex { apnsID.write(to: &$0) } }
        writer.key("detail")
        writer.optional(detail) { writer, detail in writer.string(detail) }
        if self.isLaunch, let number = policies.number(at: self.at) {
            writer.key("policyVersion")
            writer.integer(number)
        }
        writer.endObject()
    }

    private var isLaunch: Bool {
        switch self.kind {
        case .launch, .taskLaunch: true
        case .registered, .removed, .push, .result, .discard, .conditions, .extended: false
        case .taskResult, .taskSubmitted, .taskDropped, .taskExtended, .transfersFinished, .namePart: false
        }
    }

    private var text: (name: StaticString, detail: String?) {
        switch self.kind {
        case .registered: ("registered", nil)
        case .removed: ("removed", nil)
        case .push(let disposition): ("push", "\(disposition.name)")
        case .launch(let attempt, let coalesced): ("launch", "attempt \(attempt), coalesced \(coalesced)")
        case .result(let outcome): ("result", outcome.rawValue)
        case .discard(let reason): ("discard", reason.rawValue)
        case .conditions: ("conditions", nil)
        case .extended(let seconds): ("extended", "\(seconds) s left")
        case .taskSubmitted(let kind, let disposition): ("submit", "\(kind.rawValue), \(disposition.rawValue)")
        case .transfersFinished(let count): ("finished", "\(count) \(count == 1 ? "transfer" : "transfers")")
        case .taskLaunch(let kind, let attempt): ("launch", "\(kind.rawValue), attempt \(attempt)")
        case .taskResult(let kind, let outcome): ("result", "\(kind.rawValue), \(outcome.rawValue)")
        case .taskExtended(let kind, let seconds): ("extended", "\(kind.rawValue), \(seconds) s left")
        case .taskDropped(let kind, let drop): ("discard", "\(kind.rawValue), \(drop.rawValue)")
        case .namePart: ("name", nil)
        }
    }
}
