import Engine
import Policy
import Wire

extension TaskQuestion {
    /// The query of a question about tasks: `topic=<topic>&kind=<kind>&state=waiting|running`, each at most once.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "kind": self.kind = try parameter.word(of: TaskKind.allCases) { $0.rawValue }
            case "state": self.state = try parameter.word(of: TaskFilter.State.allCases) { $0.rawValue }
            default:
                let message = "\(parameter.name) is not a parameter; tasks are filtered by topic, kind and state."
                throw APIError(400, "BadQuery", message)
            }
        }
    }
}
