import Engine
import Policy
package import Wire

extension Operation {
    /// The operations that stream and chart the gateway's activity for the dashboard.
    package static let watching: [Operation] = [
        ofOperators("live", .get, "/v1/live", reaching: .everyTopic, isStream: true) { _ in
            .watching
        },
        // The stream of new events that match the query's filter.
        ofOperators("events", .get, "/v1/events", reaching: .everyTopic, isStream: true) { call throws(APIError) in
            .following(try EventFilter(query: call.query))
        },
        // The past samples, at the interval in the query: one sample per second by default.
        ofOperators("samples", .get, "/v1/samples", reaching: .everyTopic) { call throws(APIError) in
            let text = call.query.isEmpty ? "every=1" : call.query.string
            guard text.hasPrefix("every="), let seconds = Int(text.dropFirst("every=".count)),
                let samples = call.services.live.samples(seconds: seconds)
            else {
                let known = SampleHistory.spans.map { "\($0.seconds)" }.joined(separator: ", ")
                throw .badQuery("Samples take the parameter every=<seconds> alone, one of \(known).")
            }
            return .answered(OperationAnswer(samples))
        },
    ]
}

extension EventFilter {
    private static let parameters = ["topic", "device", "outcome"]

    /// The valid values of the `outcome` filter: every name of an event, a disposition, a result or a reason.
    package static let outcomes: [String] = {
        let first = LiveEvent.Kind.allCases.map(\.rawValue) + Disposition.allCases.map { "\($0.name)" }
        let results = WakeOutcome.allCases.map(\.rawValue) + TaskOutcome.allCases.map(\.rawValue)
        let reasons = DiscardReason.allCases.map(\.rawValue) + APNSReason.allCases.map(\.rawValue)
        return first + results + reasons + TaskRefusal.allCases.map(\.rawValue) + [APIError.tooManySessions.reason]
    }()

    /// Parses the query of `GET /v1/events`: `topic=com.example.app&device=<token>&outcome=refused,lost`.
    ///
    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query, repeatable: ["outcome"]) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "device":
                guard parameter.value.withByteView({ DeviceToken(hex: $0) }) != nil else { throw .badDeviceToken }
                self.device = parameter.value.lowercased()
            case "outcome": for word in parameter.words { self.outcomes.insert(try Self.outcome(word.value)) }
            default: throw parameter.unknown(among: Self.parameters, "events take topic, device and outcome")
            }
        }
    }

    private static func outcome(_ text: String) throws(APIError) -> String {
        guard !self.outcomes.contains(text) else { return text }
        let nearest = NearestMatch.find(text, in: self.outcomes).map { " (\($0)?)." }
        throw .badQuery(
            "outcome is an event, a disposition, how a wake ended, or a reason, not \"\(text)\""
                + (nearest ?? ". The words are \(self.outcomes.joined(separator: ", ")).")
        )
    }
}
