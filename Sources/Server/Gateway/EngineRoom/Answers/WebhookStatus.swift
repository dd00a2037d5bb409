import Platform
import Wire

/// The state of a webhook, which determines how many wakes it receives.
package enum WebhookState: Hashable, Sendable {
    /// The webhook receives wakes in all its slots. The next state is `resting`.
    case active
    /// The webhook receives no wakes until this time, in milliseconds since the start of the machine. The next state is
    /// `probing`, or `resting` until a later time.
    case resting(until: Int64)
    /// The webhook receives one wake as a test. The next state is `active` or `resting`.
    case probing

    /// The names of all states.
    static let names = ["active", "resting", "probing"]

    /// The name of this state for operators, one of `names`.
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
    /// The URL, without the parts that may contain secrets.
    package let url: String
    package let slots: Int
    package var state = WebhookState.active
    /// The end of the state `resting`, in milliseconds since 1970; nil in other states.
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

    /// Returns the reason why a due push of the topic is not launched, as a main clause without a period.
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
