/// Why a request got no answer.
package struct HTTPClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Nobody accepts connections at the address, or its name is unknown.
        case unreachable
        /// The server's certificate is not trusted, or one side found the other's TLS at fault.
        case untrusted
        /// A file for TLS cannot be read or does not fit.
        case badCredentials
        /// The exchange took longer than it may.
        case timedOut
        /// The connection or the stream ended before the answer did, or before the TLS handshake.
        case broken
        /// The answer is longer than this client takes.
        case tooLarge
        /// The header fields of the answer are longer than this client takes.
        case headTooLarge
        /// The URL or a header cannot be sent.
        case badRequest
        /// The name stands for an address that the settings do not let this client reach.
        case refusedAddress
        /// libcurl could not be set up.
        case unavailable
        /// Whoever waited for the answer was cancelled.
        case cancelled
    }

    package var code: Code
    /// What went wrong, in words.
    package var message: String
    /// The system's or libcurl's own words for what happened, where they say more; empty otherwise.
    package var detail = ""
    /// Whether the request may have reached the server.
    package var mayHaveArrived = false
    /// After how many seconds the server wants to be asked again, of an answer of which no more was read; nil when it
    /// does not say.
    package var retryAfterSeconds: Int?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// What ended with its connection, to which TLS set no end.
    static let endlessTLS: HTTPClientError = {
        var error = HTTPClientError(.broken, "the connection was cut")
        error.detail = "TLS did not end, and only its end would tell that all of the answer came"
        error.mayHaveArrived = true
        return error
    }()

    /// Whether TLS found the answer to its first words to be none of TLS, as of a listener in cleartext.
    package var isPeerCleartext: Bool {
        self.code == .untrusted
            && ["wrong version number", "packet length too long"].contains(where: self.detail.contains)
    }

    package var description: String { self.message }
}
