import APNSProtocol
import Answers
import Bytes
import DeviceEngine
import EngineRoom
import LaunchPolicy

extension TaskQuestion {
    /// The query of a question about tasks: `topic=<topic>&kind=<kind>&state=waiting|running`, each at most once.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic":
                guard parameter.value.withByteView({ PushHead.isTopic($0) }) else { throw .badTopic }
                self.topic = parameter.value
            case "kind": self.kind = try Self.word(parameter)
            case "state": self.state = try Self.word(parameter)
            default:
                let message = "\(parameter.name) is not a parameter; tasks are filtered by topic, kind and state."
                throw APIError(400, "BadQuery", message)
            }
        }
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ parameter: QueryParameter
    ) throws(APIError) -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: parameter.value) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            let message = "\(parameter.name) is one of \(words), not \"\(parameter.value)\"."
            throw APIError(400, "BadQuery", message)
        }
        return word
    }
}
