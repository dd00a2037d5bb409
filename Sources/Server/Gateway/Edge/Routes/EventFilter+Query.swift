import Engine
import Policy
package import Wire

extension EventFilter {
    private static let parameters = ["topic", "device", "outcome"]

    /// What an event may say of how something went.
    package static let outcomes: [String] = {
        let first = LiveEvent.Kind.allCases.map(\.rawValue) + Disposition.allCases.map { "\($0.name)" }
        let results = WakeOutcome.allCases.map(\.rawValue) + TaskOutcome.allCases.map(\.rawValue)
        return first + results + DiscardReason.allCases.map(\.rawValue) + APNSReason.allCases.map(\.rawValue)
    }()

    /// The query of `GET /v1/events`: `topic=com.example.app&device=<token>&outcome=refused`.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic":
                guard parameter.value.withByteView({ PushHead.isTopic($0) }) else { throw .badTopic }
                self.topic = parameter.value
            case "device":
                guard parameter.value.withByteView({ DeviceToken(hex: $0) }) != nil else { throw .badDeviceToken }
                self.device = parameter.value.lowercased()
            case "outcome": self.outcome = try Self.outcome(parameter.value)
            default: throw parameter.unknown(among: Self.parameters, "events take topic, device and outcome")
            }
        }
    }

    private static func outcome(_ text: String) throws(APIError) -> String {
        guard !self.outcomes.contains(text) else { return text }
        let nearest = NearestMatch.find(text, in: self.outcomes).map { " (\($0)?)" } ?? ""
        throw APIError(
            400,
            "BadQuery",
            "outcome is an event, a disposition, how a wake ended, or a reason, not \"\(text)\"\(nearest)."
        )
    }
}
