import Platform
import Wire

/// The answer to a request.
package struct HTTPResponse: Sendable {
    /// The most bytes of the header fields of an answer, with those of the informational answers before it. libcurl
    /// takes few more, and says of longer ones what nobody would understand.
    package static let headBytesMax = 98_304

    /// The status code, 100...999.
    package var status: Int
    /// Field names in lower case and values, in order.
    package var headers: [(name: String, value: String)]
    /// The body; empty for requests whose body is streamed.
    package var body: [UInt8]
    /// The seconds until the server wants another request (`retry-after`): 0 for a moment that has passed, nil if the
    /// answer does not say.
    package var retryAfterSeconds: Int?
    /// The bytes of the request's file that the server had not been sent when its answer was complete.
    package var unsentBytes: Int64 = 0

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first value of the field `name`, which is in lower case.
    package func header(_ name: String) -> String? {
        self.headers.first { $0.name == name }?.value
    }

    /// Whether its head says where it ends; over HTTP/1.1 another one ends with its connection.
    var hasEndOfItsOwn: Bool {
        self.header("content-length") != nil || self.header("transfer-encoding") != nil || self.status == 204
            || self.status == 304
    }

    /// True if as much of a body as this is the whole body, by the head's own word.
    func isWhole(_ bodyBytes: Int64) -> Bool {
        if self.status == 204 || self.status == 304 { return true }
        guard self.header("transfer-encoding") == nil, let length = self.header("content-length") else { return false }
        return Int64(length) == bodyBytes
    }

    /// Reads `retry-after` in either of its forms (RFC 9110 §10.2.3). A date counts from the answer's own `date`, if it
    /// has one, as clocks differ.
    package mutating func readRetryAfter() {
        guard let text = self.header("retry-after") else { return }
        if !text.isEmpty, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) {
            self.retryAfterSeconds = Int(text) ?? .max
        } else if let moment = HTTPDate.seconds(text) {
            let now = self.header("date").flatMap { HTTPDate.seconds($0) } ?? SystemClock.wall / 1000
            self.retryAfterSeconds = Int(max(0, moment - now))
        }
    }

    package var isSuccess: Bool { (200..<300).contains(self.status) }

    /// The reason that a gateway or an agent gives for an error, and status, reason and message in words; nil if the
    /// body has no reason.
    package var refusal: (reason: String, words: String)? {
        guard let value = JSONValue(self.body), let reason = value["reason"]?.text else { return nil }
        let message = value["message"]?.text.map { ": \($0)" } ?? ""
        return (reason, "\(self.status) \(reason)\(message)")
    }

    /// The body as text; ill-formed UTF-8 is replaced by U+FFFD.
    package var text: String { String(decoding: self.body, as: UTF8.self) }
}

/// The dates of HTTP (RFC 9110 §5.6.7).
package enum HTTPDate {}

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
        error.detail = "TLS did not end, and only its end shows that the answer is complete"
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
