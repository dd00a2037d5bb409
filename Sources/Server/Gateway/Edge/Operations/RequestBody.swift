package import Wire

/// Functions that parse the small JSON bodies of the worker and admin APIs.
package enum RequestBody {
    /// The maximum size of a body in bytes.
    static let bytesMax = 4096

    /// The maximum size of a test push's body in bytes. It exceeds the payload limit, because spaces and escapes in the
    /// body do not count as payload.
    static let testPushBytesMax = 32_768

    /// Parses a body, which must be a JSON object. Repeated names in an object are refused, because JSON parsers differ
    /// in which of the values they use.
    ///
    /// - `reason`: the reason of the error if the body is invalid.
    /// - Throws: `APIError` with that reason.
    package static func object(_ body: ByteView, reason: String) throws(APIError) -> JSONValue {
        switch PayloadClassifier.classify(body) {
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

    /// Returns the string in a field; nil if the field is missing.
    ///
    /// - `reason`: the reason of the error if the value is not a string or is too long.
    static func text(_ field: String, of object: JSONValue, reason: String) throws(APIError) -> String? {
        guard let value = object[field] else { return nil }
        guard case .string(let text) = value, text.utf8.count <= Self.textBytesMax else {
            let message = "\(field) is \(value.described); it takes a text of at most \(Self.textBytesMax) bytes."
            throw APIError(400, reason, message)
        }
        return text
    }

    /// The maximum size of a title, a subtitle or the reason of a release, in bytes.
    private static let textBytesMax = 256
}

/// A parameter of a query.
struct QueryParameter {
    let name: String
    /// The value, without decoding; empty if there is none.
    let value: String

    /// Calls `take` for each parameter of a query, in order.
    ///
    /// - `repeatable`: the names that may occur several times.
    /// - Throws: `APIError` if any other name occurs twice, or the error of `take`.
    static func forEach(
        of query: ByteView,
        repeatable: Set<String> = [],
        _ take: (QueryParameter) throws(APIError) -> Void
    ) throws(APIError) {
        var names: Set<String> = []
        // The query is split by bytes: splitting a string of 16 KB by characters would take milliseconds.
        var rest = query
        while rest.count > 0 {
            let part = rest.slice(0, count: rest.firstIndex(of: UInt8(ascii: "&")) ?? rest.count)
            rest = rest.dropFirst(min(rest.count, part.count + 1))
            guard part.count > 0 else { continue }
            let nameCount = part.firstIndex(of: UInt8(ascii: "=")) ?? part.count
            let name = part.slice(0, count: nameCount).string
            guard names.insert(name).inserted || repeatable.contains(name) else {
                throw .badQuery("\(name) may come only once.")
            }
            try take(QueryParameter(name: name, value: part.dropFirst(min(part.count, nameCount + 1)).string))
        }
    }

    /// Returns the value as an integer within a range.
    func integer(_ range: ClosedRange<Int>) throws(APIError) -> Int {
        guard let number = self.value.withByteView({ $0.decimal }).flatMap({ Int(exactly: $0) }),
            range.contains(number)
        else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw .badQuery("\(self.name) is a whole number from \(bounds), not \"\(self.value)\".")
        }
        return number
    }

    /// Returns the value as a time in milliseconds since 1970.
    func moment() throws(APIError) -> Int64 { Int64(try self.integer(0...9_999_999_999_999)) }

    /// Returns the period between two times.
    ///
    /// - `until`: the end of the period; nil for no end.
    static func period(since: Int64, until: Int64?) throws(APIError) -> Range<Int64> {
        guard since < until ?? .max else {
            throw .badQuery("until must be later than since, not \(until ?? since).")
        }
        return since..<(until ?? .max)
    }

    /// Returns the value, 0 or 1, as a Boolean.
    func flag() throws(APIError) -> Bool {
        switch self.value {
        case "0": return false
        case "1": return true
        default: throw .badQuery("\(self.name) is 0 or 1, not \"\(self.value)\".")
        }
    }

    /// Returns the value as a topic.
    func topic() throws(APIError) -> String {
        guard self.value.withByteView({ Push.isTopic($0) }) else { throw .badTopic }
        return self.value
    }

    /// One parameter for each word of the value, with the same name. Commas separate the words, and may be
    /// percent-encoded.
    var words: [QueryParameter] {
        let value = self.value.replacing("%2C", with: ",").replacing("%2c", with: ",")
        let words = value.split(separator: ",", omittingEmptySubsequences: false)
        return words.map { QueryParameter(name: self.name, value: String($0)) }
    }

    /// Returns the element of `words` whose name is the value.
    func word<Word>(of words: [Word], _ name: (Word) -> String) throws(APIError) -> Word {
        if let word = words.first(where: { name($0) == self.value }) { return word }
        let all = words.map(name).joined(separator: ", ")
        throw .badQuery("\(self.name) is one of \(all), not \"\(self.value)\".")
    }

    /// Returns the error for an unknown parameter.
    ///
    /// - `takes`: a main clause that states the valid parameters.
    func unknown(among names: [String], _ takes: String) -> APIError {
        let nearest = NearestMatch.find(self.name, in: names).map { " (\($0)?)" } ?? ""
        return .badQuery("\(self.name) is not a parameter\(nearest); \(takes).")
    }
}
