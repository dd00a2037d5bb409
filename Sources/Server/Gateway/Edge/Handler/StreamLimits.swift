import HTTPTransport

/// How many streams the connections of one loop may have open at once.
final class StreamLimits {
    private let loop: EventLoop
    /// Whether connections begin with one stream, as those of APNs do.
    private let beginsWithOne: Bool
    /// As many as any connection may have.
    private var usual: Int
    /// The connections that began with one stream, and may have more by now.
    private var lifted: Set<ConnectionID> = []

    init(_ loop: EventLoop, beginsWithOne: Bool, usual: Int) {
        self.loop = loop
        self.beginsWithOne = beginsWithOne
        self.usual = usual
    }

    /// Another number is the usual one; connections that have been told another keep it.
    func setUsual(_ limit: Int) { self.usual = limit }

    /// Whoever speaks on a connection was admitted: if it began with one stream it may have as many as any.
    func admitted(_ connection: ConnectionID) {
        guard self.beginsWithOne, self.lifted.insert(connection).inserted else { return }
        self.restore(connection)
    }

    /// Sets the usual limit.
    func restore(_ connection: ConnectionID) {
        self.loop.setStreamLimit(connection, to: self.usual)
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.lifted.remove(connection)
    }
}
