internal import Platform
internal import Synchronization

/// What the loops of one server share.
final class ServerState: Sendable {
    struct BoundListener: Sendable {
        let descriptor: Int32
        let isTLS: Bool
        let isTCP: Bool
        let streamsAtFirst: Int?
        let connectionsReserved: Int
        /// The file that was made for it, and goes with it; nil for a port, and for a socket that somebody else opened.
        let file: System.SocketFile?

        /// Nobody connects any more.
        func close() {
            // Before the socket: who starts meanwhile finds it in use, and does not take the name.
            self.file?.remove()
            System.close(self.descriptor)
        }
    }

    /// What the loops begin with.
    let limits: TransportLimits
    let listeners: [BoundListener]
    /// The most connections that the process has descriptors for.
    private let descriptorsMax: Int
    private let loopCount: Int
    private let connectionsMax: Atomic<Int>
    private let handshakesMax: Atomic<Int>
    /// What TLS listeners show in handshakes to come.
    private let contexts: ListenerContexts
    /// The open connections of all loops, by listener.
    let connectionCounts: [ConnectionCount]
    /// The open connections by where they come from.
    let clients: ConnectionCounts<ClientNetwork>
    let requestBytes: RequestBytes

    /// - Parameters:
    ///   - contexts: for each listener, nil where it speaks cleartext.
    ///   - descriptorsMax: the most connections that the process has descriptors for.
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

    /// Takes the names away by which clients of this machine connect; who has connected stays.
    func removeSocketFiles() {
        for listener in self.listeners { listener.file?.remove() }
    }

    /// Whether a listener may take one more connection.
    func hasRoom(_ listener: BoundListener) -> Bool {
        self.connectionCounts.reduce(0) { $0 + $1.value }
            < self.connectionsMax.load(ordering: .relaxed) + listener.connectionsReserved
    }

    /// The most handshakes in progress on one loop.
    var handshakesPerLoopMax: Int {
        max(1, self.handshakesMax.load(ordering: .relaxed) / self.loopCount)
    }

    /// What a listener's next connection is shown; nil in cleartext.
    func context(listener index: Int) -> TLSContext? {
        self.listeners[index].isTLS ? self.contexts.context(listener: index) : nil
    }

    /// What all TLS listeners show; nil when there are none.
    var context: TLSContext? {
        self.listeners.firstIndex { $0.isTLS }.flatMap { self.contexts.context(listener: $0) }
    }

    /// Sets the bounds that the loops share; from any thread. Connections that are past them stay.
    func setLimits(_ limits: TransportLimits) {
        self.connectionsMax.store(max(1, min(limits.connectionsMax, self.descriptorsMax)), ordering: .relaxed)
        self.handshakesMax.store(limits.handshakesMax, ordering: .relaxed)
        self.clients.setMax(limits.connectionsPerAddressMax)
        self.requestBytes.setMax(limits.requestBytesMax)
    }

    /// Has every TLS listener show another certificate; from any thread. Connections that are there keep theirs.
    func setContext(_ context: TLSContext) {
        self.contexts.replace(with: context)
    }
}

/// What each listener shows in its TLS handshakes; every loop asks when it accepts, any thread changes it.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards the contexts.
final class ListenerContexts: @unchecked Sendable {
    private let monitor = Monitor()
    /// By listener; nil for those in cleartext.
    private var contexts: [TLSContext?]

    init(_ contexts: [TLSContext?]) {
        self.contexts = contexts
    }

    func context(listener index: Int) -> TLSContext? {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        return self.contexts[index]
    }

    /// Gives every listener that has one another context.
    func replace(with context: TLSContext) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        for index in self.contexts.indices where self.contexts[index] != nil { self.contexts[index] = context }
    }
}

/// Where a connection comes from, as far as it is counted: an IPv4 address, or the 64 bits of an IPv6 address that name
/// its network, since whoever has one of those addresses has them all; and the listener it came to, so that nobody is
/// kept from one by what happens at another.
package struct ClientNetwork: Hashable, Sendable {
    let listener: Int
    /// An IPv4 address below 32 bits that are set, or the first half of an IPv6 address; 1 for ::1.
    package let bits: UInt64

    package init(listener: Int, bits: UInt64) {
        self.listener = listener
        self.bits = bits
    }
}

/// How many connections there are of each of many, such as addresses, on all loops together.
///
/// `Sendable` without the compiler's proof: `countsMonitor` guards the counts, when a connection begins and ends
/// and not for requests.
package final class ConnectionCounts<Key: Hashable & Sendable>: @unchecked Sendable {
    private var connectionsMax: Int
    private let countsMonitor = Monitor()
    private var counts: [Key: Int] = [:]

    /// - Parameter connectionsMax: the most connections of each; 0 for no limit.
    package init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
    }

    /// Sets another bound. Those that are past it stay.
    package func setMax(_ connectionsMax: Int) {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        self.connectionsMax = connectionsMax
    }

    /// Counts a connection.
    ///
    /// - Returns: false when there are as many as there may be; it is then not counted.
    package func begin(_ key: Key) -> Bool {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        let count = self.counts[key, default: 0]
        guard self.connectionsMax == 0 || count < self.connectionsMax else { return false }
        self.counts[key] = count + 1
        return true
    }

    /// A connection that was counted is gone.
    package func end(_ key: Key) {
        self.countsMonitor.lock()
        defer { self.countsMonitor.unlock() }
        guard let count = self.counts[key] else { return }
        self.counts[key] = count > 1 ? count - 1 : nil
    }
}

/// How many connections there are, counted by any thread.
final class ConnectionCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { self.count.load(ordering: .relaxed) }

    func begin() { self.count.add(1, ordering: .relaxed) }

    func end() { self.count.subtract(1, ordering: .relaxed) }
}
