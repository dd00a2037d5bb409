import HTTPTransport
import Settings

extension LoopHandler {
    /// Lets a connection that began with one stream, as those of APNs do, have as many as any: whoever speaks on it was
    /// admitted.
    func liftStreamLimit(_ connection: ConnectionID) {
        guard self.liftedConnections.insert(connection).inserted else { return }
        self.loop.setStreamLimit(connection, to: self.settings.transport.streamsPerConnectionMax)
    }
}
