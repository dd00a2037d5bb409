/// Names one request and its answer on one loop.
package struct StreamID: Hashable, Sendable {
    package let connection: ConnectionID
    /// The HTTP/2 stream number, or the ordinal of an HTTP/1.1 request on its connection, from 1.
    package let number: Int32

    @inlinable
    package init(connection: ConnectionID, number: Int32) {
        self.connection = connection
        self.number = number
    }
}
