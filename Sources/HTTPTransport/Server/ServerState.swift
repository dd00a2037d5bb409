internal import Synchronization

/// What the loops of one server share.
final class ServerState: Sendable {
    struct BoundListener: Sendable {
        let descriptor: Int32
        let tls: TLSContext?
        let isTCP: Bool
        let streamsAtFirst: Int?
        let connectionsReserved: Int
    }

    let limits: TransportLimits
    let listeners: [BoundListener]
    /// The server's bound, already below the descriptor limit of the process.
    let connectionsMax: Int
    /// The most handshakes in progress on one loop.
    let handshakesPerLoopMax: Int
    /// The open connections of all loops.
    let connectionCount = Atomic<Int>(0)
    /// The same by listener.
    let connectionCounts: [ConnectionCount]
    /// The same by where they come from.
    let clients: ConnectionCounts<ClientNetwork>
    let requestBytes: RequestBytes

    init(limits: TransportLimits, listeners: [BoundListener], connectionsMax: Int, loopCount: Int) {
        self.limits = limits
        self.listeners = listeners
        self.connectionCounts = listeners.map { _ in ConnectionCount() }
        self.connectionsMax = connectionsMax
        self.handshakesPerLoopMax = max(1, limits.handshakesMax / loopCount)
        self.clients = ConnectionCounts(connectionsMax: limits.connectionsPerAddressMax)
        self.requestBytes = RequestBytes(bytesMax: limits.requestBytesMax)
    }

    deinit {
        for listener in self.listeners { System.close(listener.descriptor) }
    }

    /// Whether a listener may take one more connection.
    func hasRoom(_ listener: BoundListener) -> Bool {
        self.connectionCount.load(ordering: .relaxed) < self.connectionsMax + listener.connectionsReserved
    }
}

/// How many connections there are, counted by any thread.
final class ConnectionCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { self.count.load(ordering: .relaxed) }

    func begin() { self.count.add(1, ordering: .relaxed) }

    func end() { self.count.subtract(1, ordering: .relaxed) }
}
