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
        var seen: Set<String> = []
        for part in query.string.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard seen.insert(pair[0]).inserted else {
                throw APIError(400, "BadQuery", "\(pair[0]) may come only once.")
            }
            try self.take(pair[0], pair.count == 2 ? pair[1] : "")
        }
    }

    private mutating func take(_ parameter: String, _ value: String) throws(APIError) {
        switch parameter {
        case "topic":
            guard value.withByteView({ PushHead.isTopic($0) }) else { throw .badTopic }
            self.topic = value
        case "kind": self.kind = try Self.word(parameter, value)
        case "state": self.state = try Self.word(parameter, value)
        default:
            let message = "\(parameter) is not a parameter; tasks are filtered by topic, kind and state."
            throw APIError(400, "BadQuery", message)
        }
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ parameter: String,
        _ value: String
    ) throws(APIError) -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: value) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(400, "BadQuery", "\(parameter) is one of \(words), not \"\(value)\".")
        }
        return word
    }
}
