internal import Synchronization

/// What the loops of one server share.
final class ServerState: Sendable {
    struct BoundListener: Sendable {
        let descriptor: Int32
        let tls: TLSContext?
        let isTCP: Bool
        let streamsAtFirst: Int?
    }

    let limits: TransportLimits
    let listeners: [BoundListener]
    /// The server's bound, already below the descriptor limit of the process.
    let connectionsMax: Int
    /// The open connections of all loops.
    let connectionCount = Atomic<Int>(0)

    init(limits: TransportLimits, listeners: [BoundListener], connectionsMax: Int) {
        self.limits = limits
        self.listeners = listeners
        self.connectionsMax = connectionsMax
    }

    deinit {
        for listener in self.listeners { System.close(listener.descriptor) }
    }
}
