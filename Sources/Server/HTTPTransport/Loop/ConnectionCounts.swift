internal import Platform
internal import Synchronization

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
/// It is `Sendable` without the compiler's proof: `monitor` guards the counts, when a connection begins and ends and
/// not for requests.
package final class ConnectionCounts<Key: Hashable & Sendable>: @unchecked Sendable {
    private var connectionsMax: Int
    private let monitor = Monitor()
    private var counts: [Key: Int] = [:]

    /// - Parameter connectionsMax: the most connections of each; 0 for no limit.
    package init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
    }

    /// Sets another bound. Those that are past it stay.
    package func setMax(_ connectionsMax: Int) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        self.connectionsMax = connectionsMax
    }

    /// Counts a connection.
    ///
    /// - Returns: false when there are as many as there may be; it is then not counted.
    package func begin(_ key: Key) -> Bool {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        let count = self.counts[key, default: 0]
        guard self.connectionsMax == 0 || count < self.connectionsMax else { return false }
        self.counts[key] = count + 1
        return true
    }

    /// A connection that was counted is gone.
    package func end(_ key: Key) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
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
