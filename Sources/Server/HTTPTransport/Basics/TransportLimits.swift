internal import Synchronization

/// Every bound of the transport: its unit, its default, and why it is that number.
package struct TransportLimits: Sendable {
    // MARK: How many

    /// Connections of the whole server; 20,000, since each costs a descriptor and about 60 KiB with TLS, 1.2 GB in
    /// all. The server also stays below the process's descriptor limit.
    package var connectionsMax = 20_000
    /// Connections from one address to one listener, from one network of 64 bits with IPv6; 5,000, a quarter of all,
    /// since a whole fleet may stand behind one address. 0 is no limit. A proxy in front has one address for all its
    /// clients. Connections to a socket file have none.
    package var connectionsPerAddressMax = 5_000
    /// Connections that have not yet spoken HTTP, in handshakes of TLS most of all; 1,000, what a machine takes up in a
    /// quarter of a second, and 40 MB when all stop half-way. Each loop has its share of them. For one more the oldest
    /// is ended, so that those who never speak keep nobody out.
    package var handshakesMax = 1_000
    /// Streams open at once on one connection; 1,000, as APNs announces it.
    package var streamsPerConnectionMax = 1_000
    /// Streams open at once on one loop; 100,000, the full number of a hundred connections, since each may hold a
    /// header list and a body. Others are refused, to be retried.
    package var streamsPerLoopMax = 100_000
    /// Connections accepted in one turn of one loop; 4, so that the loops share a burst of them.
    package var acceptsPerTurn = 4

    // MARK: Bytes that come

    /// Bytes of one request's header list as HTTP/2 counts them (name, value and 32 a field); 8,000, as APNs announces
    /// it.
    package var headerListBytesMax = 8_000
    /// Bytes of the largest frame taken; 16,384, the smallest value that HTTP/2 allows, and what APNs announces.
    package var frameBytesMax = 16_384
    /// Bytes a peer may send on one stream before it waits for us; 65,535, as APNs announces it, which is many times
    /// the largest payload.
    package var streamWindowBytes = 65_535
    /// Bytes a peer may send on one connection before it waits for us; 1 MiB, a thousand ordinary pushes.
    package var connectionWindowBytes = 1_048_576
    /// Bytes taken from one socket in one turn; 64 KiB, four full frames, so that no connection keeps the others
    /// waiting.
    package var readBytesPerTurn = 65_536
    /// Bytes of the requests of one connection that have arrived in part, down to the field of which not all has come;
    /// 2 MiB, the heads of its 1,000 streams. A request that passes it is refused, and its client is at fault.
    package var requestBytesPerConnectionMax = 2_097_152
    /// Bytes of the requests of all connections that have arrived in part; 48 MiB, two dozen connections that use all
    /// of theirs. A request that passes it is refused, to be retried.
    package var requestBytesMax = 50_331_648
    /// Bytes of an HTTP/1.1 body that are thrown away after it has passed its limit; 1 MiB, so that most clients read
    /// the answer. After that the connection is ended.
    package var discardedBytesMax = 1_048_576

    // MARK: Bytes that leave

    /// Bytes made ready for one socket at a time; 64 KiB, about what a socket takes at once. What the socket does not
    /// take is kept, and nothing more is made before it has left; this and one frame are the most a peer that stops
    /// reading costs.
    package var outputBytesMax = 65_536
    /// Frames waiting behind unsent bytes after which no more is read from the connection; 2,000, two for each of the
    /// streams it may have open.
    package var outputFramesMax = 2_000
    /// Bytes queued on one streaming response above which `streamDrained` is promised; 1 MiB, well past any burst of
    /// events a reader that keeps up ever leaves waiting. The handler decides what to do.
    package var streamingBytesSoftMax = 1_048_576

    /// Bytes queued for one connection, on all its streams; 16 MiB, sixteen streams that their reader leaves at
    /// `streamingBytesSoftMax`. A connection that passes it is ended.
    package var queuedBytesPerConnectionMax = 16_777_216

    // MARK: Seconds

    /// Seconds from the accept to the end of the TLS handshake and the first HTTP/2 frame; 10, many round trips of the
    /// slowest network.
    package var handshakeSeconds = 10
    /// Seconds in which a request must have arrived whole, and each frame and field block that has begun, and the
    /// acknowledgement of SETTINGS; 60, as the largest request is 13 KB, and so 220 bytes a second.
    package var requestSeconds = 60
    /// Seconds in which an answer must have been taken whole; 60, as long as a request may take. A streaming one is
    /// exempt while it is open.
    package var responseSeconds = 60
    /// Seconds a socket may take no byte of what waits for it; 60, as long as an answer may take.
    package var writeStallSeconds = 60
    /// Seconds a connection may be without a request; 3,600, as APNs keeps one for an hour.
    package var idleSeconds = 3_600
    /// Seconds in which a PING must be answered; 10, as long as a handshake may take.
    package var pingSeconds = 10
    /// Seconds a connection that we end stays open for reading; 2, a few round trips, so that its last bytes are not
    /// lost.
    package var lingerSeconds = 2

    // MARK: Frames that carry no request

    /// CONTINUATION frames of one header block; 64, although the largest header list fits into HEADERS alone.
    package var continuationFramesMax = 64
    /// PING, SETTINGS, PRIORITY, RST_STREAM, GOAWAY, CONTINUATION and empty DATA frames a peer may send at once, and
    /// records of TLS that carry none, such as updates of keys, all kinds together, so that nothing is gained by mixing
    /// them, and as many of WINDOW_UPDATE; 1,000, so that a client may reset every stream it has open. Answers of ours
    /// raise it. A stream that we reset for a fault in its request, or refuse beyond an acknowledged limit, counts like
    /// RST_STREAM of the peer's (MadeYouReset, CVE-2025-8671).
    package var controlFramesBurst = 1_000
    /// The frames of those kinds a peer may send each second in the long run; 100, far more than a client that keeps to
    /// the rules sends.
    package var controlFramesPerSecond = 100

    package init() {}
}

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
