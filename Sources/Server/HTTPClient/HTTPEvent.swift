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

/// A file descriptor that `HTTPClient.poll` waits for besides its own sockets.
package struct PollDescriptor: Hashable, Sendable {
    package enum Interest: Sendable {
        case readable, writable
    }

    package var descriptor: Int32
    package var interest: Interest

    package init(_ descriptor: Int32, _ interest: Interest) {
        self.descriptor = descriptor
        self.interest = interest
    }
}

/// Ends the wait of an `HTTPClient` in `poll`, from any thread; the next wait, when it does not wait now.
package struct HTTPWaker: Sendable {
    private let multi: MultiHandle

    init(_ multi: MultiHandle) {
        self.multi = multi
    }

    package func wake() {
        self.multi.wake()
    }
}
