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
