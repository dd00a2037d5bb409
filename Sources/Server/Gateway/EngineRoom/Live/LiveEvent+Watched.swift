package import Engine
import Policy
package import Wire

extension LiveEvent {
    /// Creates the event that followers receive; returns nil for the extension of a wake, which followers do not
    /// receive.
    package init?(_ watched: WatchedEvent) {
        switch watched.kind {
        case .kept(let kind):
            guard let kept = Self.kept(kind) else { return nil }
            self.init(watched, kept)
            self.tell(kind, watched)
        case .refused(let reason):
            self.init(watched, .refused)
            self.reason = APNSReason.allCases.first { $0.index == reason }?.rawValue
        case .paused: self.init(watched, .paused)
        case .resumed: self.init(watched, .resumed)
        case .subscribed:
            self.init(watched, .subscribed)
            self.detail = watched.name
        }
    }

    private init(_ watched: WatchedEvent, _ kind: Kind) {
        self.init(at: watched.at, kind, topic: watched.topic)
        self.device = watched.device.map { token in Self.text { token.writeHex(to: &$0) } }
        self.apnsID = watched.apnsID.map(Self.text)
        self.wake = watched.wake.map { wake in Self.text { wake.write(to: &$0) } }
    }

    private static func kept(_ kind: HistoryEvent.Kind) -> Kind? {
        switch kind {
        case .registered: .registered
        case .removed: .removed
        case .push: .push
        case .launch: .launched
        case .result: .result
        case .discard: .discarded
        case .conditions: .conditions
        case .taskSubmitted: .submitted
        case .taskRefused: .taskRefused
        case .transfersFinished: .finished
        case .extended, .worker, .subscribed, .namePart: nil
        }
    }

    /// Sets the fields that depend on the kind of event.
    private mutating func tell(_ kind: HistoryEvent.Kind, _ watched: WatchedEvent) {
        self.detail = kind.task.map { Self.name($0, watched.name) }
        // For a launch or a discard, `related` is the stored form of the wait.
        let waited = watched.related.map { Waited(stored: $0).detail } ?? ""
        switch kind {
        case .push(let disposition):
            self.disposition = "\(disposition.name)"
            self.detail = watched.related.map { "in place of \(Self.text($0))" }
        case .launch(.push, let attempt, let coalesced):
            self.detail = "attempt \(attempt), coalesced \(coalesced)\(waited)"
        case .launch(_, let attempt, _): self.detail = self.detail.map { "\($0), attempt \(attempt)\(waited)" }
        case .result(let outcome):
            self.outcome = outcome.name
            if let into = watched.related { self.detail = "coalesced into \(Self.text(into))" }
        case .discard(_, let reason):
            self.reason = reason.rawValue
            let detail = (self.detail ?? "") + waited
            self.detail = detail.isEmpty ? nil : detail.hasPrefix(", ") ? String(detail.dropFirst(2)) : detail
        case .conditions: self.detail = watched.changed?.text
        case .taskSubmitted(_, let disposition): self.disposition = disposition.rawValue
        case .transfersFinished(let count):
            self.detail = self.detail.map { "\($0), \(count) \(count == 1 ? "transfer" : "transfers")" }
        case .taskRefused(_, let rejection): self.reason = rejection.reason
        case .registered, .removed, .extended, .worker, .subscribed, .namePart: break
        }
    }

    /// Returns the kind, followed by the name of the task or session if it is known.
    private static func name(_ kind: TaskKind, _ name: String?) -> String {
        name.map { "\(kind.rawValue) \($0)" } ?? kind.rawValue
    }

    private static func text(_ apnsID: APNsID) -> String { self.text { apnsID.write(to: &$0) } }

    private static func text(_ write: (inout ByteBuffer) -> Void) -> String {
        var buffer = ByteBuffer()
        write(&buffer)
        return buffer.view.string
    }
}
