package import Wire

/// The query of a question about what happened to a device: `kind=task&limit=100&before=<place>`.
package struct EventQuery {
    /// The newest of all, unless the query says otherwise.
    package private(set) var selection = EventSelection()

    private static let parameters = ["kind", "limit", "before"]

    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(_ query: ByteView) throws(APIError) {
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "kind": self.selection.kind = try Self.kind(parameter.value)
            case "limit": self.selection.limit = try parameter.integer(1...EventSelection.limitMax)
            case "before":
                guard let place = EventPlace(parameter.value) else {
                    throw APIError(400, "BadQuery", "before is the next of the answer that is gone on with.")
                }
                self.selection.before = place
            default: throw parameter.unknown(among: Self.parameters, "events take kind, limit and before")
            }
        }
    }

    private static func kind(_ text: String) throws(APIError) -> EventSelection.Kind {
        guard let kind = EventSelection.Kind(rawValue: text) else {
            throw APIError(400, "BadQuery", "kind is push, task or conditions, not \"\(text)\".")
        }
        return kind
    }
}
