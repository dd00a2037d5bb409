import Platform
import Wire

/// The answer to a request.
package struct HTTPResponse: Sendable {
    /// The maximum number of bytes of an answer's header fields, including those of informational answers before it.
    ///
    /// libcurl's own limit is only slightly higher, but its error would not name the cause.
    package static let headBytesMax = 98_304

    /// The status code, 100...999.
    package var status: Int
    /// The field names, in lower case, and values, in order.
    package var headers: [(name: String, value: String)]
    /// The body; empty if the body is streamed.
    package var body: [UInt8]
    /// The number of seconds until the server accepts another request, from the field `retry-after`: 0 for a time in
    /// the past, nil without the field.
    package var retryAfterSeconds: Int?
    /// The number of bytes of the request's file that were still unsent when the answer was complete.
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

    /// True if the head determines the length of the body. Otherwise, with HTTP/1.1, the body ends with the connection.
    var hasEndOfItsOwn: Bool {
        self.header("content-length") != nil || self.header("transfer-encoding") != nil || self.status == 204
            || self.status == 304
    }

    /// Returns true if the head shows that a body of this length is complete; false if the head does not tell.
    func isWhole(_ bodyBytes: Int64) -> Bool {
        if self.status == 204 || self.status == 304 { return true }
        guard self.header("transfer-encoding") == nil, let length = self.header("content-length") else { return false }
        return Int64(length) == bodyBytes
    }

    /// Parses the field `retry-after`, seconds or a date (RFC 9110 §10.2.3). A date is compared with the answer's own
    /// `date` if there is one, because the server's clock may differ.
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

    /// The reason from the error of a gateway or an agent, and a text with the status, the reason and the message; nil
    /// if the body contains no reason.
    package var refusal: (reason: String, words: String)? {
        guard let value = JSONValue(self.body), let reason = value["reason"]?.text else { return nil }
        let message = value["message"]?.text.map { ": \($0)" } ?? ""
        return (reason, "\(self.status) \(reason)\(message)")
    }

    /// The body as text; invalid UTF-8 is replaced with U+FFFD.
    package var text: String { String(decoding: self.body, as: UTF8.self) }
}

/// The reason why a request failed.
package struct HTTPClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No server accepts connections at the address, or the host name is unknown.
        case unreachable
        /// The server's certificate is not trusted, or one side reported a TLS error of the other.
        case untrusted
        /// A certificate or key file for TLS cannot be read or is invalid.
        case badCredentials
        /// The exchange exceeded its timeout.
        case timedOut
        /// The connection or the stream ended before the TLS handshake or the answer was complete.
        case broken
        /// The answer is longer than this client accepts.
        case tooLarge
        /// The header fields of the answer are longer than this client accepts.
        case headTooLarge
        /// The URL or a header cannot be sent.
        case badRequest
        /// The host has an address that the settings do not allow.
        case refusedAddress
        /// libcurl could not be set up.
        case unavailable
        /// The task that waited for the answer was cancelled.
        case cancelled
    }

    package var code: Code
    /// A description for people.
    package var message: String
    /// The message of the system or libcurl, if it adds information; empty otherwise.
    package var detail = ""
    /// True if the request may have reached the server.
    package var mayHaveArrived = false
    /// The number of seconds until the server accepts another request, from the head of an incomplete answer; nil if
    /// unknown.
    package var retryAfterSeconds: Int?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The error for an answer without a length whose TLS connection ended without a close_notify alert.
    static let endlessTLS: HTTPClientError = {
        var error = HTTPClientError(.broken, "the connection was cut")
        error.detail = "TLS did not end, and only its end shows that the answer is complete"
        error.mayHaveArrived = true
        return error
    }()

    /// True if the TLS handshake failed because the peer, such as a cleartext listener, does not use TLS.
    package var isPeerCleartext: Bool {
        self.code == .untrusted
            && ["wrong version number", "packet length too long"].contains(where: self.detail.contains)
    }

    package var description: String { self.message }
}
