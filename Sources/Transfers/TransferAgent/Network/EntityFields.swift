package import HTTPClient

/// A strong validator: it tells one version of the entity at a URL from every other.
package enum EntityValidator {
    /// A last change that is this many seconds older than its answer is a strong validator: the entity could not have
    /// changed again within that second without getting a later date. RFC 9110 §8.8.2.2 asks for one second.
    private static let dateSecondsMin: Int64 = 2

    /// A strong entity tag, or without any tag the time of the last change if that is strong (RFC 9110 §13.1.5); nil if
    /// the answer has neither.
    package static func of(_ response: HTTPResponse) -> String? {
        if let tag = response.header("etag") { return self.isStrongTag(tag) ? tag : nil }
        guard let modified = response.header("last-modified"), let date = response.header("date"),
            let changedAt = HTTPDate.seconds(modified), let answeredAt = HTTPDate.seconds(date)
        else { return nil }
        return answeredAt - changedAt >= self.dateSecondsMin ? modified : nil
    }

    private static func isStrongTag(_ text: String) -> Bool {
        text.utf8.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
    }

    /// True if a part belongs to the entity with this validator. A server that knows ranges and not `If-Range` sends
    /// parts of any version.
    package static func isSame(_ validator: String?, in part: HTTPResponse) -> Bool {
        guard let validator else { return false }
        // RFC 9110 §15.3.7: a part has the tag of the whole, and may leave out the date that was sent in `If-Range`.
        if self.isStrongTag(validator) { return part.header("etag") == validator }
        return part.header("etag") == nil && (part.header("last-modified") ?? validator) == validator
    }

    /// True if an answer names another entity than the one with this validator.
    package static func isOther(_ validator: String?, in response: HTTPResponse) -> Bool {
        let hasNone = response.header("etag") == nil && response.header("last-modified") == nil
        return !hasNone && !self.isSame(validator, in: response)
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
        // The end of the range, which is one more than its last byte, must be a number, too.
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), first >= 0, first <= last,
            last < .max
        else { return nil }
        self.first = first
        self.last = last
        if parts[1] == "*" {
            self.total = nil
        } else {
            guard let total = Int64(parts[1]), total > last else { return nil }
            self.total = total
        }
    }

    /// The whole length in an answer 416, as `bytes */N`; nil if the text is something else.
    package static func wholeLength(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes", words[1].hasPrefix("*/") else { return nil }
        let digits = words[1].dropFirst(2)
        return digits.utf8.allSatisfy({ $0 &- 0x30 < 10 }) ? Int64(digits) : nil
    }
}

/// Where a redirect leads, and what may be sent there.
package enum Redirection {
    /// The most redirects that are followed.
    package static let countMax = 10

    /// The fields that every server is sent: what is wanted, what is sent, and who asks. Any other may hold a secret,
    /// by whatever name a service has for its tokens, and goes to the server alone that it is for.
    private static let harmless: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "content-disposition", "content-encoding",
        "content-language", "content-type", "pragma", "user-agent",
    ]

    /// Whether a field may hold a secret.
    package static func isSecret(_ name: String) -> Bool { !self.harmless.contains(name.lowercased()) }

    package static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// The method of the next request: 303 has everything asked for, and 301 and 302 a POST, as browsers do.
    package static func method(after status: Int, of method: String) -> String {
        switch status {
        case 303: method == "HEAD" ? method : "GET"
        case 301, 302: method == "POST" ? "GET" : method
        default: method
        }
    }

    /// Whether two URLs lead to one server: scheme, name and port are the same.
    package static func isSameOrigin(_ left: String, _ right: String) -> Bool {
        guard let left = HTTPURL(left), let right = HTTPURL(right) else { return false }
        return left.scheme == right.scheme && left.host.lowercased() == right.host.lowercased()
            && left.port == right.port
    }

    /// Without a name and a password, for people.
    package static func withoutCredentials(_ url: String) -> String {
        guard let slashes = url.firstRange(of: "://") else { return url }
        let end = url[slashes.upperBound...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        guard let at = url[slashes.upperBound..<end].lastIndex(of: "@") else { return url }
        return String(url[..<slashes.upperBound]) + url[url.index(after: at)...]
    }

    /// Without a query either, for logs.
    package static func forLogs(_ url: String) -> String {
        String(self.withoutCredentials(url).prefix { $0 != "?" && $0 != "#" })
    }
}
