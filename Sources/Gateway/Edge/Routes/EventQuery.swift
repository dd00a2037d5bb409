package import Answers
package import Bytes
package import EngineRoom
import Text

/// The query of a question about what happened to a device: `kind=task&limit=100&before=<place>`.
package struct EventQuery {
    /// The newest of all, unless the query says otherwise.
    package private(set) var selection = EventSelection()

    private static let parameters = ["kind", "limit", "before"]

    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(_ query: ByteView) throws(APIError) {
        var names: Set<String> = []
        for part in query.string.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let value = pair.count == 2 ? pair[1] : ""
            guard names.insert(pair[0]).inserted else {
                throw APIError(400, "BadQuery", "\(pair[0]) may come only once.")
            }
            switch pair[0] {
            case "kind": self.selection.kind = try Self.kind(value)
            case "limit": self.selection.limit = try Self.limit(value)
            case "before":
                guard let place = EventPlace(value) else {
                    throw APIError(400, "BadQuery", "before is the next of the answer that is gone on with.")
                }
                self.selection.before = place
            default:
                let nearest = NearestMatch.find(pair[0], in: Self.parameters).map { " (\($0)?)" } ?? ""
                throw APIError(
                    400,
                    "BadQuery",
                    "\(pair[0]) is not a parameter\(nearest); events take kind, limit and before."
                )
            }
        }
    }

    private static func kind(_ text: String) throws(APIError) -> EventSelection.Kind {
        guard let kind = EventSelection.Kind(rawValue: text) else {
            throw APIError(400, "BadQuery", "kind is push, task or conditions, not \"\(text)\".")
        }
        return kind
    }

    private static func limit(_ text: String) throws(APIError) -> Int {
        guard let limit = text.withByteView({ $0.decimal }), limit >= 1, limit <= UInt64(EventSelection.limitMax) else {
            throw APIError(
                400,
                "BadQuery",
                "limit is a whole number from 1 to \(EventSelection.limitMax), not \"\(text)\"."
            )
        }
        return Int(limit)
    }
}
