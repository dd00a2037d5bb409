import HTTPTransport

/// The limit on concurrent streams for each connection of one loop.
final class StreamLimits {
    private let loop: EventLoop
    /// True if each connection begins with a limit of one stream, as at APNs.
    private let beginsWithOne: Bool
    /// The connections that began with a limit of one stream and now have the default limit.
    private var lifted: Set<ConnectionID> = []

    init(_ loop: EventLoop, beginsWithOne: Bool) {
        self.loop = loop
        self.beginsWithOne = beginsWithOne
    }

    /// Raises the limit of a connection that began with one stream. Its client has been authenticated.
    func admitted(_ connection: ConnectionID) {
        guard self.beginsWithOne, self.lifted.insert(connection).inserted else { return }
        self.restore(connection)
    }

    /// Sets a connection's limit to the default limit, which is the maximum of the loop.
    func restore(_ connection: ConnectionID) {
        self.loop.setStreamLimit(connection, to: .max)
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.lifted.remove(connection)
    }
}
