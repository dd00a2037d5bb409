package import HTTPClient

/// What tells one entity at a URL from another that has taken its place.
package enum EntityValidator {
    /// A strong entity tag, else the time of the last change; nil when the answer has neither.
    package static func of(_ response: HTTPResponse) -> String? {
        // RFC 9110 §13.1.5: a weak tag must not be in If-Range.
        if let tag = response.header("etag"), tag.hasPrefix("\"") { return tag }
        return response.header("last-modified")
    }

    /// Whether a part belongs to the entity with this validator. A server that knows ranges and not `If-Range` sends
    /// parts of whatever is there.
    package static func isSame(_ validator: String?, in response: HTTPResponse) -> Bool {
        // RFC 9110 §15.3.7.3: parts are put together when they have the same strong validator; a part may leave out
        // what its receiver knows.
        let field = validator?.hasPrefix("\"") == true ? "etag" : "last-modified"
        guard let found = response.header(field) else { return true }
        return found == validator
    }
}

/// The length that an answer announces.
package enum EntityLength {
    /// - Returns: -1 when the answer says nothing of it; nil when what it says is no length.
    package static func announced(in response: HTTPResponse) -> Int64? {
        // RFC 9112 §6.3: with a transfer coding the field does not count.
        if response.header("transfer-encoding") != nil { return -1 }
        var values: [Substring] = []
        for field in response.headers where field.name == "content-length" {
            values += field.value.split(separator: ",", omittingEmptySubsequences: false).map(Self.trimmed)
        }
        guard let first = values.first else { return -1 }
        guard values.allSatisfy({ $0 == first }), first.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Int64(first)
    }

    /// Without the white space before and behind it.
    private static func trimmed(_ text: Substring) -> Substring {
        let rest = text.drop { $0 == " " || $0 == "\t" }
        return rest.prefix { $0 != " " && $0 != "\t" }
    }
}

/// The field `content-range` of one part (RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
    package let first: Int64
    package let last: Int64
    /// Nil when the server does not know.
    package let total: Int64?

    /// - Returns: nil when the text is no range of bytes.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), first >= 0, first <= last else {
            return nil
        }
        self.first = first
        self.last = last
        if parts[1] == "*" {
            self.total = nil
        } else {
            guard let total = Int64(parts[1]), total > last else { return nil }
            self.total = total
        }
    }
}
