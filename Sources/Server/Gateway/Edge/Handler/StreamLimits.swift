import HTTPTransport

/// The limit on concurrent streams of each connection of one loop.
final class StreamLimits {
    private let loop: EventLoop
    /// True if connections begin with a limit of one stream, as at APNs.
    private let beginsWithOne: Bool
    /// The default limit.
    private var usual: Int
    /// The connections that began with one stream and now have the default limit.
    private var lifted: Set<ConnectionID> = []

    init(_ loop: EventLoop, beginsWithOne: Bool, usual: Int) {
        self.loop = loop
        self.beginsWithOne = beginsWithOne
        self.usual = usual
    }

    /// Changes the default limit. Connections keep a limit that they were sent.
    func setUsual(_ limit: Int) { self.usual = limit }

    /// Raises the limit of a connection that began with one stream, because its client was admitted.
    func admitted(_ connection: ConnectionID) {
        guard self.beginsWithOne, self.lifted.insert(connection).inserted else { return }
        self.restore(connection)
    }

    /// Sets the default limit.
    func restore(_ connection: ConnectionID) {
        self.loop.setStreamLimit(connection, to: self.usual)
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.lifted.remove(connection)
    }
}
