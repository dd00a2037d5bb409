import Wire

extension Operation {
    /// What the dashboard shows as it happens, and as it was.
    package static let watching = [live, events, samples]

    package static let live = Operation(
        "live",
        .get,
        "/v1/live",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200],
        isStream: true,
        afterFailedStore: .answered
    ) { _ in
        .watching
    }

    /// What happens from now on, as far as the query asks for it.
    package static let events = Operation(
        "events",
        .get,
        "/v1/events",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400],
        isStream: true,
        afterFailedStore: .answered
    ) { call throws(APIError) in
        .following(try EventFilter(query: call.query))
    }

    /// The samples of the past that lie as far apart as the query says.
    package static let samples = Operation(
        "samples",
        .get,
        "/v1/samples",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        let text = call.query.isEmpty ? "every=1" : call.query.string
        guard text.hasPrefix("every="), let seconds = Int(text.dropFirst("every=".count)),
            let samples = call.services.live.samples(seconds: seconds)
        else {
            let known = SampleHistory.spans.map { "\($0.seconds)" }.joined(separator: ", ")
            throw APIError(400, "BadQuery", "Samples take the parameter every=<seconds> alone, one of \(known).")
        }
        return .answered(OperationAnswer(samples))
    }
}
