package import HTTPClient

/// Strong validators. A strong validator identifies one version of the entity at a URL.
package enum EntityValidator {
    /// The minimum age, in seconds, at which a last modification date is a strong validator. Any later change then has
    /// a later date. RFC 9110 §8.8.2.2 requires one second.
    private static let dateSecondsMin: Int64 = 2

    /// Returns the entity tag if it is strong; nil if it is weak. Without a tag, returns the last modification date if
    /// it is a strong validator (RFC 9110 §13.1.5), otherwise nil.
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

    /// Returns true if a part belongs to the entity with this validator. A server that supports ranges but not
    /// `If-Range` may send parts of any other version.
    package static func isSame(_ validator: String?, in part: HTTPResponse) -> Bool {
        guard let validator else { return false }
        // RFC 9110 §15.3.7: a part has the entity tag of the whole entity. It may omit the date if the request sent
        // this date in `If-Range`.
        if self.isStrongTag(validator) { return part.header("etag") == validator }
        return part.header("etag") == nil && (part.header("last-modified") ?? validator) == validator
    }

    /// Returns true if an answer has a validator of another entity.
    package static func isOther(_ validator: String?, in response: HTTPResponse) -> Bool {
        let hasNone = response.header("etag") == nil && response.header("last-modified") == nil
        return !hasNone && !self.isSame(validator, in: response)
    }
}

/// The length that an answer announces.
package enum EntityLength {
    /// - Returns: the length; -1 if the answer announces none; nil if the announced value is invalid.
    package static func announced(in response: HTTPResponse) -> Int64? {
        // RFC 9112 §6.3: a transfer coding overrides the content length.
        if response.header("transfer-encoding") != nil { return -1 }
        var values: [Substring] = []
        for field in response.headers where field.name == "content-length" {
            values += field.value.split(separator: ",", omittingEmptySubsequences: false).map(Self.trimmed)
        }
        guard let first = values.first else { return -1 }
        guard values.allSatisfy({ $0 == first }), first.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Int64(first)
    }

    /// Returns the text without spaces and tabs at its ends.
    private static func trimmed(_ text: Substring) -> Substring {
        var rest = text.drop { $0 == " " || $0 == "\t" }
        while rest.last == " " || rest.last == "\t" { rest.removeLast() }
        return rest
    }
}

/// The `content-range` field of a part (RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
    package let first: Int64
    package let last: Int64
    /// The total length; nil if the server does not know it.
    package let total: Int64?

    /// - Returns: nil if the text is not a valid byte range.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        // The end of the range, `last + 1`, must not overflow.
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

    /// Returns the total length from a 416 answer, which has the form `bytes */N`; nil for other text.
    package static func wholeLength(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes", words[1].hasPrefix("*/") else { return nil }
        let digits = words[1].dropFirst(2)
        return digits.utf8.allSatisfy({ $0 &- 0x30 < 10 }) ? Int64(digits) : nil
    }
}

/// The rules for following redirects.
package enum Redirection {
    /// The maximum number of redirects to follow.
    package static let countMax = 10

    /// The header fields that every server receives: content negotiation, content description, and user agent. Only the
    /// original server receives other fields, because they may contain a secret under any name.
    private static let harmless: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "content-disposition", "content-encoding",
        "content-language", "content-type", "pragma", "user-agent",
    ]

    /// Returns true if a header field may contain a secret.
    package static func isSecret(_ name: String) -> Bool { !self.harmless.contains(name.lowercased()) }

    package static func isRedirect(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    /// Returns the method of the next request, as in browsers: after 303, GET unless the method was HEAD; after 301 and
    /// 302, GET instead of POST.
    package static func method(after status: Int, of method: String) -> String {
        switch status {
        case 303: method == "HEAD" ? method : "GET"
        case 301, 302: method == "POST" ? "GET" : method
        default: method
        }
    }

    /// Returns true if two URLs have the same origin: scheme, host and port.
    package static func isSameOrigin(_ left: String, _ right: String) -> Bool {
        guard let left = HTTPURL(left), let right = HTTPURL(right) else { return false }
        return left.scheme == right.scheme && left.host.lowercased() == right.host.lowercased()
            && left.port == right.port
    }

    /// Returns the URL to which `location` redirects, with the credentials of the original URL if both have the same
    /// origin; nil unless it is an `http` or `https` URL.
    package static func target(_ location: String, at url: String, of original: String) -> String? {
        guard let next = HTTPURL.resolved(location, at: url), let parts = HTTPURL(next) else { return nil }
        guard !parts.hasCredentials, self.isSameOrigin(next, original) else { return next }
        let credentialsCount = original.count - HTTPURL.withoutCredentials(original).count
        let credentials = original.dropFirst("\(parts.scheme)://".count).prefix(credentialsCount)
        return next.replacing("://", with: "://\(credentials)", maxReplacements: 1)
    }

    /// Returns the URL without credentials, query and fragment, for logs.
    package static func forLogs(_ url: String) -> String {
        String(HTTPURL.withoutCredentials(url).prefix { $0 != "?" && $0 != "#" })
    }
}
