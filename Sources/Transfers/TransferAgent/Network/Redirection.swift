import HTTPClient

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
