import Platform
import Wire

/// The state of a webhook, which decides whether it gets wakes.
package enum WebhookState: Hashable, Sendable {
    /// The webhook gets wakes. Can move to: resting.
    case active
    /// The webhook gets no wake until this moment. Can move to: probing, and to a later moment.
    case resting(until: Int64)
    /// The webhook gets one wake. Can move to: active, resting.
    case probing

    /// The name of each state.
    static let names = ["active", "resting", "probing"]

    /// The name for operators; one of `names`.
    var name: String {
        switch self {
        case .active: "active"
        case .resting: "resting"
        case .probing: "probing"
        }
    }
}

/// The status of a webhook, for operators.
package struct WebhookStatus: Hashable, Sendable {
    /// The URL without the parts that may contain a secret.
    package let url: String
    package let slots: Int
    package var state = WebhookState.active
    /// The end of its pause, in milliseconds since 1970; nil if it is not paused.
    package var restingUntil: Int64?
    /// The number of consecutive failures.
    package var failures = 0
    /// A description of the last error.
    package var lastError: String?

    /// Creates the status of a webhook that has not been called yet.
    package init(url: String, slots: Int) {
        self.url = url
        self.slots = slots
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("url", self.url)
        writer.member("slots", self.slots)
        writer.member("state", self.state.name)
        writer.member("restingUntil", self.restingUntil)
        writer.member("failures", self.failures)
        writer.member("lastError", self.lastError)
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
