import Wire

/// One line of a simulation's output: what happened to a push, where and when.
package struct OutcomeLine: Hashable, Sendable {
    package enum Event: Hashable, Sendable {
        case push(Disposition)
        case launch(coalesced: UInt32, attempt: UInt32)
        case result(WakeOutcome)
        case discard(DiscardReason)
    }

    /// What the provider is told of its push.
    package enum Disposition: String, Sendable, CaseIterable {
        case launched, coalesced, scheduled, discarded
    }

    package var moment: Instant
    package var device: String
    package var apnsID: String
    package var event: Event

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.line(at: self.moment, device: self.device) { self.writeEvent(&$0) }
    }

    private func writeEvent(_ writer: inout JSONWriter) {
        switch self.event {
        case .push(let disposition):
            writer.string("push")
            self.writeName(&writer)
            writer.key("disposition")
            writer.string(disposition.rawValue)
        case .launch(let coalesced, let attempt):
            writer.string("launch")
            self.writeName(&writer)
            writer.key("coalesced")
            writer.integer(coalesced)
            writer.key("attempt")
            writer.integer(attempt)
        case .result(let outcome):
            writer.string("result")
            self.writeName(&writer)
            writer.key("result")
            writer.string(outcome.rawValue)
        case .discard(let reason):
            writer.string("discard")
            self.writeName(&writer)
            writer.key("reason")
            writer.string(reason.rawValue)
        }
    }

    private func writeName(_ writer: inout JSONWriter) {
        writer.key("apnsID")
        writer.string(self.apnsID)
    }
}
