internal import Platform
internal import Synchronization

/// The state that the loops of one server share.
final class ServerState: Sendable {
    struct BoundListener: Sendable {
        let descriptor: Int32
        let isTLS: Bool
        let isTCP: Bool
        let streamsAtFirst: Int?
        let connectionsReserved: Int
        /// The socket file that was created for the listener and is removed with it; nil for a port, and for a socket
        /// that was passed to the server.
        let file: System.SocketFile?

        /// Stops listening.
        func close() {
            // First the file: a process that starts before the close still finds the socket in use and does not take
            // its name.
            self.file?.remove()
            System.close(self.descriptor)
        }
    }

    /// The limits with which the loops begin.
    let limits: TransportLimits
    let listeners: [BoundListener]
    /// The maximum number of connections, by the descriptors of the process.
    private let descriptorsMax: Int
    private let loopCount: Int
    private let connectionsMax: Atomic<Int>
    private let handshakesMax: Atomic<Int>
    /// The certificates that TLS listeners show in future handshakes.
    private let contexts: ListenerContexts
    /// The numbers of open connections of all loops, by listener.
    let connectionCounts: [ConnectionCount]
    /// The numbers of open connections by client network.
    let clients: ConnectionCounts<ClientNetwork>
    let requestBytes: RequestBytes

    /// - Parameters:
    ///   - contexts: one for each listener; nil for cleartext.
    ///   - descriptorsMax: the most connections, by the descriptors of the process.
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
        self.contexts = ListenerContexts(contexts)
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

    /// Removes the socket files by which local clients connect; open connections stay.
    func removeSocketFiles() {
        for listener in self.listeners { listener.file?.remove() }
    }

    /// Returns true if a listener may accept one more connection.
    func hasRoom(_ listener: BoundListener) -> Bool {
        self.connectionCounts.reduce(0) { $0 + $1.value }
            < self.connectionsMax.load(ordering: .relaxed) + listener.connectionsReserved
    }

    /// The maximum number of handshakes in progress on one loop.
    var handshakesPerLoopMax: Int {
        max(1, self.handshakesMax.load(ordering: .relaxed) / self.loopCount)
    }

    /// Returns the context for a listener's next connection; nil for cleartext.
    func context(listener index: Int) -> TLSContext? {
        self.listeners[index].isTLS ? self.contexts.context(listener: index) : nil
    }

    /// The context of all TLS listeners; nil if there are none.
    var context: TLSContext? {
        self.listeners.firstIndex { $0.isTLS }.flatMap { self.contexts.context(listener: $0) }
    }

    /// Sets the limits that the loops share, from any thread. Connections beyond them stay open.
    func setLimits(_ limits: TransportLimits) {
        self.connectionsMax.store(max(1, min(limits.connectionsMax, self.descriptorsMax)), ordering: .relaxed)
        self.handshakesMax.store(limits.handshakesMax, ordering: .relaxed)
        self.clients.setMax(limits.connectionsPerAddressMax)
        self.requestBytes.setMax(limits.requestBytesMax)
    }

    /// Sets the certificate of every TLS listener, from any thread. Open connections keep their certificates.
    func setContext(_ context: TLSContext) {
        self.contexts.replace(with: context)
    }
}

/// The context of each listener for TLS handshakes. Every loop reads it when it accepts; any thread may change it.
///
/// `@unchecked Sendable`: `monitor` guards the contexts.
final class ListenerContexts: @unchecked Sendable {
    private let monitor = Monitor()
    /// The contexts by listener; nil for cleartext.
    private var contexts: [TLSContext?]

    init(_ contexts: [TLSContext?]) {
        self.contexts = contexts
    }

    func context(listener index: Int) -> TLSContext? {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        return self.contexts[index]
    }

    /// Replaces the context of every listener that has one.
    func replace(with context: TLSContext) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        for index in self.contexts.indices where self.contexts[index] != nil { self.contexts[index] = context }
    }
}

/// The key by which connections are counted: the listener, and an IPv4 address or the first 64 bits of an IPv6 address,
/// since a client usually has all addresses of such a network.
package struct ClientNetwork: Hashable, Sendable {
    let listener: Int
    /// An IPv4 address with the upper 32 bits set, or the first half of an IPv6 address; 1 for ::1.
    package let bits: UInt64

    package init(listener: Int, bits: UInt64) {
        self.listener = listener
        self.bits = bits
    }
}

/// The numbers of connections by key, such as an address, on all loops together.
///
/// `@unchecked Sendable`: `countsMonitor` guards the counts. Only the begin and the end of a connection lock it.
package final class ConnectionCounts<Key: Hashable & Sendable>: @unchecked Sendable {
    private var connectionsMax: Int
    private let countsMonitor = Monitor()
    private var counts: [Key: Int] = [:]

    /// - Parameter connectionsMax: the most connections per key; 0 for no limit.
    package init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
    }

    /// Sets another limit; open connections stay.
    package func setMax(_ connectionsMax: Int) {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        self.connectionsMax = connectionsMax
    }

    /// Counts a connection.
    ///
    /// - Returns: false at the limit; the connection is then not counted.
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
