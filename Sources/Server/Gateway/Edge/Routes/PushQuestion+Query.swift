import Wire

extension PushQuestion {
    private static let names = ["topic", "outcome", "since", "limit", "after"]

    /// The query of a list of pushes: `topic=<topic>&outcome=<word>&since=<ms>&limit=<count>&after=<next>`, each
    /// at most once.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "outcome": self.outcome = try parameter.word(of: Self.outcomes) { $0 }
            case "since": self.since = Int64(try parameter.integer(0...9_999_999_999_999))
            case "limit": self.limit = try parameter.integer(Self.limits)
            case "after":
                guard let place = PushPlace(parameter.value) else {
                    throw APIError(400, "BadQuery", "after is the next of an answer, not \"\(parameter.value)\".")
                }
                self.after = place
            default:
                throw parameter.unknown(among: Self.names, "pushes take topic, outcome, since, limit and after")
            }
        }
    }
}
