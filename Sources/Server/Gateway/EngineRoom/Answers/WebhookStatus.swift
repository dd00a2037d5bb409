import Platform
import Wire

/// Whether a webhook gets wakes.
package enum WebhookState: Hashable, Sendable {
    /// The webhook gets wakes. Can move to: resting.
    case active
    /// The webhook gets no wake until this moment. Can move to: probing, and to a later moment.
    case resting(until: Int64)
    /// The webhook gets one wake. Can move to: active, resting.
    case probing

    /// The name of each state.
    static let names = ["active", "resting", "probing"]

    /// What operators are told; one of `names`.
    var name: String {
        switch self {
        case .active: "active"
        case .resting: "resting"
        case .probing: "probing"
        }
    }
}

/// How a webhook is, for operators.
package struct WebhookStatus: Hashable, Sendable {
    /// Without what may hold a secret.
    package let url: String
    package let slots: Int
    package var state = WebhookState.active
    /// When its rest ends, in milliseconds since 1970; nil when it does not rest.
    package var restingUntil: Int64?
    /// Failures in a row.
    package var failures = 0
    /// What went wrong last, in words.
    package var lastError: String?

    /// A webhook that nothing has been sent to.
    package init(url: String, slots: Int) {
        self.url = url
        self.slots = slots
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("url")
        writer.string(self.url)
        writer.key("slots")
        writer.integer(self.slots)
        writer.key("state")
        writer.string(self.state.name)
        writer.key("restingUntil")
        writer.optional(self.restingUntil) { writer, moment in writer.integer(moment) }
        writer.key("failures")
        writer.integer(self.failures)
        writer.key("lastError")
        writer.optional(self.lastError) { writer, cause in writer.string(cause) }
        writer.endObject()
    }

    /// Why a push of the topic that is due is not launched: a main clause without its full stop.
    func reason(topic: String) -> String {
        let cause = self.lastError.map { ": \($0)" } ?? ""
        let count = self.failures == 1 ? "a failure" : "\(self.failures) failures"
        switch self.state {
        case .active:
            let slots = self.slots == 1 ? "the one slot" : "all \(self.slots) slots"
            return "\(slots) of the webhook of \(topic) (\(self.url)) "
                + "\(self.slots == 1 ? "is" : "are") taken: give it more slots, or answer sooner"
        case .resting:
            let until = self.restingUntil.map { WallTime.textRoundedUp($0) } ?? "soon"
            return "the webhook of \(topic) (\(self.url)) is resting until \(until), after "
                + "\(count)\(cause)"
        case .probing:
            return "the webhook of \(topic) (\(self.url)) is being tried with one wake after "
                + "\(count)\(cause)"
        }
    }
}
