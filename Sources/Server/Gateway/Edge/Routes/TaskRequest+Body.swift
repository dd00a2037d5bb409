package import Wire

extension TaskRequest {
    /// Reads the body of a submission.
    ///
    /// - Throws: `APIError` with reason `BadTaskRequest`.
    package init(_ object: JSONValue) throws(APIError) {
        self = try TaskRequestReader(object).request()
    }
}

extension FinishedTransfers {
    /// The most transfers that are told of at once.
    private static let countMax = 100_000
    /// The most characters of an id.
    private static let idCharactersMax = 64

    /// Reads the body of a session's report.
    ///
    /// - Throws: `APIError` with reason `BadSession`.
    package init(_ object: JSONValue, session: String) throws(APIError) {
        let fields = ["finished", "id"]
        if let other = object.members.map(\.name).first(where: { !fields.contains($0) }) {
            throw APIError(400, "BadSession", "\(other) is not a field of a session; it takes finished and id.")
        }
        guard case .number(let number)? = object["finished"], let count = Int(exactly: number.double),
            (1...Self.countMax).contains(count)
        else {
            let found = object["finished"]?.described ?? "missing"
            let message = "finished is \(found); it takes a whole number from 1 to \(Self.countMax)."
            throw APIError(400, "BadSession", message)
        }
        var id: String?
        if let value = object["id"] {
            guard case .string(let text) = value, (1...Self.idCharactersMax).contains(text.unicodeScalars.count) else {
                let message = "id is \(value.described); it takes a text of 1 to \(Self.idCharactersMax) characters."
                throw APIError(400, "BadSession", message)
            }
            id = text
        }
        self.init(session: session, count: UInt64(count), id: id)
    }
}
