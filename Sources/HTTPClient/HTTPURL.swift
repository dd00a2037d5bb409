/// The parts of a URL, as libcurl itself divides it: what is checked is what is connected to.
package struct HTTPURL: Hashable, Sendable {
    /// In lower case.
    package var scheme: String
    /// Decoded; an IPv6 address has its brackets.
    package var host: String
    /// As it was given, or the scheme's.
    package var port: Int
    /// Begins with a slash.
    package var path: String
    /// Whether it names a user or a password.
    package var hasCredentials: Bool
    package var hasQuery: Bool
    package var hasFragment: Bool

    /// The URL for people: without what may hold a secret.
    package var shown: String {
        let standard = self.scheme == "https" ? 443 : 80
        return "\(self.scheme)://\(self.host)\(self.port == standard ? "" : ":\(self.port)")\(self.path)"
    }

    /// The host's address, when it is one and no name.
    package var address: IPAddress? { IPAddress(self.host) }
}
