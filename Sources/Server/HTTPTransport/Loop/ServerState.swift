internal import Platform
internal import Synchronization

/// The state that the loops of one server share.
///
/// `@unchecked Sendable`: `monitor` guards `contexts`.
final class ServerState: @unchecked Sendable {
    struct BoundListener: Sendable {
        let descriptor: Int32
        let streamsAtFirst: Int?
        let connectionsReserved: Int
        /// The socket file that was created for the listener, and that is removed with the listener. Nil for a port,
        /// and for a socket that was passed to the server.
        let file: System.SocketFile?

        /// Stops listening.
        func close() {
            // Remove the file first. Until the socket is closed, a process that starts finds that the socket is in use,
            // and does not replace the file.
            self.file?.remove()
            Descriptor.close(self.descriptor)
        }
    }

    /// The initial limits of the loops.
    let limits: TransportLimits
    let listeners: [BoundListener]
    /// The maximum number of connections that the descriptors of the process permit.
    private let descriptorsMax: Int
    private let loopCount: Int
    private let connectionsMax: Atomic<Int>
    private let handshakesMax: Atomic<Int>
    private let monitor = Monitor()
    /// The TLS contexts for future handshakes, by listener. Cleartext listeners have nil.
    private var contexts: [TLSContext?]
    /// The numbers of open connections of all loops, by listener.
    let connectionCounts: [ConnectionCount]
    /// The numbers of open connections by client network.
    let clients: ConnectionCounts<ClientNetwork>
    let requestBytes: RequestBytes

    /// - `contexts`: one context for each listener; nil for cleartext.
    /// - `descriptorsMax`: the maximum number of connections that the descriptors of the process permit.
    init(
        limits: TransportLimits,
        listeners: [BoundListener],
        contexts: [TLSContext?],
        descriptorsMax: Int,
        loopCount: Int
    ) {
        self.limits = limits
        self.listeners = listeners
        self.connectionCounts = listeners.map { _ in ConnectionCount() }
        self.contexts = contexts
        self.descriptorsMax = descriptorsMax
        self.loopCount = loopCount
        self.connectionsMax = Atomic(max(1, min(limits.connectionsMax, descriptorsMax)))
        self.handshakesMax = Atomic(limits.handshakesMax)
        self.clients = ConnectionCounts(connectionsMax: limits.connectionsPerAddressMax)
        self.requestBytes = RequestBytes(bytesMax: limits.requestBytesMax)
    }

    deinit {
        for listener in self.listeners { listener.close() }
    }

    /// Removes the socket files to which local clients connect. Open connections continue.
    func removeSocketFiles() {
        for listener in self.listeners { listener.file?.remove() }
    }

    /// Returns true if a listener may accept another connection.
    func hasRoom(_ listener: BoundListener) -> Bool {
        self.connectionCounts.reduce(0) { $0 + $1.value }
            < self.connectionsMax.load(ordering: .relaxed) + listener.connectionsReserved
    }

    /// The maximum number of handshakes in progress on one loop.
    var handshakesPerLoopMax: Int {
        max(1, self.handshakesMax.load(ordering: .relaxed) / self.loopCount)
    }

    /// Returns the context for the next connection of a listener; nil for cleartext.
    func context(listener index: Int) -> TLSContext? {
        self.monitor.withLock { self.contexts[index] }
    }

    /// The context of all TLS listeners; nil if there are none.
    var context: TLSContext? {
        self.monitor.withLock { self.contexts.lazy.compactMap { $0 }.first }
    }

    /// Sets the limits that the loops share. Any thread may call it. Open connections above a limit continue.
    func setLimits(_ limits: TransportLimits) {
        self.connectionsMax.store(max(1, min(limits.connectionsMax, self.descriptorsMax)), ordering: .relaxed)
        self.handshakesMax.store(limits.handshakesMax, ordering: .relaxed)
        self.clients.setMax(limits.connectionsPerAddressMax)
        self.requestBytes.setMax(limits.requestBytesMax)
    }

    /// Sets the TLS context of every TLS listener. Any thread may call it. Open connections keep their context.
    func setContext(_ context: TLSContext) {
        self.monitor.withLock {
            for index in self.contexts.indices where self.contexts[index] != nil { self.contexts[index] = context }
        }
    }
}

/// The key by which connections are counted: the listener, and an IPv4 address or the first 64 bits of an IPv6 address.
/// A client usually has all IPv6 addresses with the same first 64 bits.
package struct ClientNetwork: Hashable, Sendable {
    let listener: Int
    /// An IPv4 address with the upper 32 bits set, or the first half of an IPv6 address. The value for ::1 is 1.
    package let bits: UInt64

    package init(listener: Int, bits: UInt64) {
        self.listener = listener
        self.bits = bits
    }
}

/// The numbers of connections on all loops together, by a key such as the address.
///
/// `@unchecked Sendable`: `countsMonitor` guards the counts. It is locked only at the start and the end of a
/// connection.
package final class ConnectionCounts<Key: Hashable & Sendable>: @unchecked Sendable {
    private var connectionsMax: Int
    private let countsMonitor = Monitor()
    private var counts: [Key: Int] = [:]

    /// - Parameter connectionsMax: the maximum number of connections per key; 0 for no limit.
    package init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
    }

    /// Sets another limit. Open connections above the limit continue.
    package func setMax(_ connectionsMax: Int) {
        self.countsMonitor.withLock { self.connectionsMax = connectionsMax }
    }

    /// Counts a connection, unless the limit is reached.
    ///
    /// - Returns: false if the limit is reached.
    package func begin(_ key: Key) -> Bool {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        let count = self.counts[key, default: 0]
        guard self.connectionsMax == 0 || count < self.connectionsMax else { return false }
        self.counts[key] = count + 1
        return true
    }

    /// Removes a counted connection.
    package func end(_ key: Key) {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        guard let count = self.counts[key] else { return }
        self.counts[key] = count > 1 ? count - 1 : nil
    }
}

/// An atomic counter of connections.
final class ConnectionCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { self.count.load(ordering: .relaxed) }

    func begin() { self.count.add(1, ordering: .relaxed) }

    func end() { self.count.subtract(1, ordering: .relaxed) }
}
