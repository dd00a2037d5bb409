import Engine
import Policy
import Wire

extension DeviceQuestion {
    private static let names = ["topic", "state", "hold", "limit", "after"]

    /// The query of a list of devices: `topic=<topic>&state=<state>&hold=<code>&limit=<count>&after=<next>`, each at
    /// most once.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "state": self.state = try parameter.word(of: DeviceFilter.State.allCases) { $0.rawValue }
            case "hold": self.hold = try parameter.word(of: Hold.ofPushes) { $0.name.description }
            case "limit": self.limit = try parameter.integer(Self.limits)
            case "after":
                guard let token = parameter.value.withByteView({ DeviceToken(hex: $0) }) else {
                    throw APIError(400, "BadQuery", "after is the next of an answer, not \"\(parameter.value)\".")
                }
                self.after = token
            default: throw parameter.unknown(among: Self.names, "devices are listed by topic, state and hold")
            }
        }
    }
}
