/// What became of a request since the last poll.
package enum HTTPEvent: Sendable {
    /// The answer to a streaming request has begun: its status and headers.
    case head(HTTPRequestID, HTTPResponse)
    /// The next bytes of a streaming answer.
    case body(HTTPRequestID, [UInt8])
    /// The exchange has ended; nothing follows. A streaming answer has no body here.
    case ended(HTTPRequestID, Result<HTTPResponse, HTTPClientError>)
}

/// Names a request of one client; never used again.
package struct HTTPRequestID: Hashable, Sendable {
    let number: UInt64
}
