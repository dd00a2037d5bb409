internal import Synchronization

/// The bounds that the transport counts, each by the name of its field in `TransportLimits`.
package enum TransportLimit: String, CountedLimit {
    /// A listener stopped accepting for a second.
    case connectionsMax
    /// A connection was ended unheard.
    case connectionsPerAddressMax
    /// The oldest handshake in progress was ended for a new one.
    case handshakesMax
    /// A stream was refused.
    case streamsPerConnectionMax
    /// A stream was refused.
    case streamsPerLoopMax
    /// A turn left connections for the next one, or for other loops.
    case acceptsPerTurn
    /// A request was answered 431.
    case headerListBytesMax
    /// A connection was ended.
    case frameBytesMax
    /// A stream was reset.
    case streamWindowBytes
    /// A connection was ended.
    case connectionWindowBytes
    /// A turn left bytes in a socket.
    case readBytesPerTurn
    /// A request was refused before it had arrived.
    case requestBytesPerConnectionMax
    /// A request was refused before it had arrived.
    case requestBytesMax
    /// A connection was ended.
    case discardedBytesMax
    /// A socket was written to before everything was made that waits for it.
    case outputBytesMax
    /// The handler was told that a stream is not read.
    case streamingBytesSoftMax
    /// A connection was ended.
    case queuedBytesPerConnectionMax
    /// A connection was ended.
    case handshakeSeconds
    /// A request was given up.
    case requestSeconds
    /// An answer was given up.
    case responseSeconds
    /// A connection was ended.
    case writeStallSeconds
    /// A connection was ended.
    case idleSeconds
    /// A connection was ended.
    case pingSeconds
    /// A connection was ended whose peer had not ended it.
    case lingerSeconds
    /// A connection was read no more until its answers had left.
    case outputFramesMax
    /// A connection was ended.
    case continuationFramesMax
    /// A connection was ended.
    case controlFramesPerSecond
    /// No bound of ours: the system had no descriptor, or no memory, for a connection, which waits.
    case openFiles
}

/// The bounds that one part of the program meets, by their names in the configuration.
package protocol CountedLimit: RawRepresentable<String>, CaseIterable, Hashable, Sendable where AllCases == [Self] {}

/// How often each of some bounds was met since the process began.
///
/// Each loop has its own, so that loops do not wait for each other; any thread may count and look. To count takes a
/// look-up and an atomic addition, where a bound is met, and nothing elsewhere.
package final class LimitTally<Limit: CountedLimit>: Sendable {
    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    private let counts: [Limit: Count]

    package init() {
        self.counts = Dictionary(uniqueKeysWithValues: Limit.allCases.map { ($0, Count()) })
    }

    /// The bound kept somebody from something.
    package func met(_ limit: Limit, times: Int = 1) {
        self.counts[limit]?.value.add(times, ordering: .relaxed)
    }

    package func times(_ limit: Limit) -> Int {
        self.counts[limit]?.value.load(ordering: .relaxed) ?? 0
    }
}
