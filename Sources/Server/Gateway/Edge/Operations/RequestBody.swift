package import Wire

/// The small JSON bodies of the worker and admin API.
package enum RequestBody {
    /// The most bytes such a body may have.
    static let bytesMax = 4096

    /// The most bytes of a test push: a payload may be written with spaces and escapes.
    static let testPushBytesMax = 32_768

    /// Returns the members of a body, which must be a JSON object. No name may appear twice in an object of it: readers
    /// of JSON differ in which of the two they believe.
    ///
    /// - Parameter reason: the code of the error if it is no such object.
    /// - Throws: `APIError` with that reason.
    package static func object(_ body: ByteView, reason: String) throws(APIError) -> JSONValue {
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject:
            throw APIError(400, reason, "The body is not a JSON object (RFC 8259); send one, as {\"key\": \"value\"}.")
        case .wakes, .wrongContentAvailable, .doesNotWake: break
        }
        do throws(JSONFault) {
            return try JSONReader.read(body.string, refusingRepeatedNames: true)
        } catch {
            let subject = error.member ?? "The body"
            guard error.kind == .unreadable else {
                throw APIError(400, reason, "\(subject) cannot be read: \(error.what); send it once.")
            }
            throw APIError(400, reason, "\(subject) cannot be read: \(error.what); send a simpler value.")
        }
    }

    /// The text of a task's field; nil when there is none.
    ///
    /// - Parameter reason: the code to answer with when it is no text, or too long.
    static func text(_ field: String, of object: JSONValue, reason: String) throws(APIError) -> String? {
        guard let value = object[field] else { return nil }
        guard case .string(let text) = value, text.utf8.count <= Self.textBytesMax else {
            let message = "\(field) is \(value.described); it takes a text of at most \(Self.textBytesMax) bytes."
            throw APIError(400, reason, message)
        }
        return text
    }

    /// The most bytes of a title, a subtitle, or the reason of a release.
    static let textBytesMax = 256
}

/// One parameter of a query.
struct QueryParameter {
    let name: String
    /// Empty when there is none.
    let value: String

    /// Hands over the parameters of a query, in their order.
    ///
    /// - `repeatable`: the names that may come several times.
    /// - Throws: `APIError` that names another one that does, and what `take` throws.
    static func forEach(
        of query: ByteView,
        repeatable: Set<String> = [],
        _ take: (QueryParameter) throws(APIError) -> Void
    ) throws(APIError) {
        var names: Set<String> = []
        for part in query.string.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard names.insert(pair[0]).inserted || repeatable.contains(pair[0]) else {
                throw APIError(400, "BadQuery", "\(pair[0]) may come only once.")
            }
            try take(QueryParameter(name: pair[0], value: pair.count == 2 ? pair[1] : ""))
        }
    }

    /// The value as a whole number.
    func integer(_ range: ClosedRange<Int>) throws(APIError) -> Int {
        guard let number = self.value.withByteView({ $0.decimal }).flatMap({ Int(exactly: $0) }),
            range.contains(number)
        else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw APIError(400, "BadQuery", "\(self.name) is a whole number from \(bounds), not \"\(self.value)\".")
        }
        return number
    }

    /// The value as yes or no.
    func flag() throws(APIError) -> Bool {
        switch self.value {
        case "0": return false
        case "1": return true
        default: throw APIError(400, "BadQuery", "\(self.name) is 0 or 1, not \"\(self.value)\".")
        }
    }

    /// The value as a topic.
    func topic() throws(APIError) -> String {
        guard self.value.withByteView({ Push.isTopic($0) }) else { throw .badTopic }
        return self.value
    }

    /// The value as one of some words.
    func word<Word>(of words: [Word], _ name: (Word) -> String) throws(APIError) -> Word {
        if let word = words.first(where: { name($0) == self.value }) { return word }
        let all = words.map(name).joined(separator: ", ")
        throw APIError(400, "BadQuery", "\(self.name) is one of \(all), not \"\(self.value)\".")
    }

    /// What is answered when the parameter is none of those that there are.
    ///
    /// - `takes`: says which there are, as a clause.
    func unknown(among names: [String], _ takes: String) -> APIError {
        let nearest = NearestMatch.find(self.name, in: names).map { " (\($0)?)" } ?? ""
        return APIError(400, "BadQuery", "\(self.name) is not a parameter\(nearest); \(takes).")
    }
}
