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
