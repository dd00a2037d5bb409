import Platform
import Wire

/// The answer to a request.
package struct HTTPResponse: Sendable {
    /// The maximum number of bytes of the header fields of an answer, including those of informational answers before
    /// it. libcurl's own limit is only slightly higher, and its error would not name the cause.
    package static let headBytesMax = 98_304

    /// The status code, 100...999.
    package var status: Int
    /// Field names in lower case and values, in order.
    package var headers: [(name: String, value: String)]
    /// The body; empty for requests whose body is streamed.
    package var body: [UInt8]
    /// The number of seconds until the server accepts another request (`retry-after`): 0 for a time in the past, nil
    /// without the field.
    package var retryAfterSeconds: Int?
    /// The number of bytes of the request's file that were not sent when the answer was complete.
    package var unsentBytes: Int64 = 0

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the first value of the field `name`, which is in lower case.
    package func header(_ name: String) -> String? {
        self.headers.first { $0.name == name }?.value
    }

    /// True if the head determines the end of the body; otherwise, with HTTP/1.1, the body ends with the connection.
    var hasEndOfItsOwn: Bool {
        self.header("content-length") != nil || self.header("transfer-encoding") != nil || self.status == 204
            || self.status == 304
    }

    /// Returns true if a body of this length is complete, according to the head.
    func isWhole(_ bodyBytes: Int64) -> Bool {
        if self.status == 204 || self.status == 304 { return true }
        guard self.header("transfer-encoding") == nil, let length = self.header("content-length") else { return false }
        return Int64(length) == bodyBytes
    }

    /// Parses `retry-after` in either form (RFC 9110 §10.2.3). A date is relative to the answer's own `date` if there
    /// is one, as clocks differ.
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

    /// The reason in the error of a gateway or an agent, and a text of status, reason and message; nil if the body has
    /// no reason.
    package var refusal: (reason: String, words: String)? {
        guard let value = JSONValue(self.body), let reason = value["reason"]?.text else { return nil }
        let message = value["message"]?.text.map { ": \($0)" } ?? ""
        return (reason, "\(self.status) \(reason)\(message)")
    }

    /// The body as text; invalid UTF-8 is replaced with U+FFFD.
    package var text: String { String(decoding: self.body, as: UTF8.self) }
}

/// The dates of HTTP (RFC 9110 §5.6.7).
package enum HTTPDate {}

/// The reason why a request got no answer.
package struct HTTPClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No server accepts connections at the address, or its name is unknown.
        case unreachable
        /// The server's certificate is not trusted, or one side reported a TLS error of the other.
        case untrusted
        /// A file for TLS cannot be read or does not fit.
        case badCredentials
        /// The exchange exceeded its timeout.
        case timedOut
        /// The connection or the stream ended before the answer did, or before the TLS handshake was complete.
        case broken
        /// The answer is longer than this client accepts.
        case tooLarge
        /// The header fields of the answer are longer than this client accepts.
        case headTooLarge
        /// The URL or a header cannot be sent.
        case badRequest
        /// The name has an address that the settings do not allow.
        case refusedAddress
        /// libcurl could not be set up.
        case unavailable
        /// The task that waited for the answer was cancelled.
        case cancelled
    }

    package var code: Code
    /// The error as a text for people.
    package var message: String
    /// The message of the system or libcurl, if it says more; empty otherwise.
    package var detail = ""
    /// True if the request may have reached the server.
    package var mayHaveArrived = false
    /// The number of seconds until the server accepts another request, from an answer that was not read completely; nil
    /// if unknown.
    package var retryAfterSeconds: Int?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The error for an answer without a length whose connection ended without the end of TLS.
    static let endlessTLS: HTTPClientError = {
        var error = HTTPClientError(.broken, "the connection was cut")
        error.detail = "TLS did not end, and only its end shows that the answer is complete"
        error.mayHaveArrived = true
        return error
    }()

    /// True if TLS found that the peer does not speak TLS, such as a cleartext listener.
    package var isPeerCleartext: Bool {
        self.code == .untrusted
            && ["wrong version number", "packet length too long"].contains(where: self.detail.contains)
    }

    package var description: String { self.message }
}
