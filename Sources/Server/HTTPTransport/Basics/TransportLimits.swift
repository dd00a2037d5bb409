internal import Synchronization

/// Every limit of the transport, with its unit, its default, and the reason for the default.
package struct TransportLimits: Sendable {
    // MARK: Counts

    /// Connections of the whole server; 20,000, as each costs a descriptor and about 60 KiB with TLS, 1.2 GB in all.
    /// The descriptor limit of the process also applies.
    package var connectionsMax = 20_000
    /// Connections from one address (IPv6: one 64-bit network) to one listener; 5,000, a quarter of all, since a whole
    /// fleet or all clients of a reverse proxy may share one address. 0 means no limit. Connections to a socket file
    /// are not limited.
    package var connectionsPerAddressMax = 5_000
    /// Connections that have not yet spoken HTTP, mostly TLS handshakes; 1,000, as many as a machine accepts in a
    /// quarter of a second, and at most 40 MB. Each loop has an equal share. At the limit, a new connection ends the
    /// oldest such connection, so that silent clients do not keep others out.
    package var handshakesMax = 1_000
    /// Streams open at once on one connection; 1,000, as APNs announces it.
    package var streamsPerConnectionMax = 1_000
    /// Streams open at once on one loop; 100,000, the maximum of a hundred connections, since each may hold a header
    /// list and a body. Further streams are refused, and clients retry them.
    package var streamsPerLoopMax = 100_000
    /// Connections accepted in one turn of one loop; 4, so that the loops share a burst of connections.
    package var acceptsPerTurn = 4

    // MARK: Received bytes

    /// Bytes of one request's header list as HTTP/2 counts them (name, value, and 32 per field); 8,000, as APNs
    /// announces it.
    package var headerListBytesMax = 8_000
    /// Bytes of the largest frame accepted; 16,384, the smallest value that HTTP/2 allows, which APNs also announces.
    package var frameBytesMax = 16_384
    /// Bytes a peer may send on one stream before it waits for a window update; 65,535, as APNs announces it, which is
    /// many times the largest payload.
    package var streamWindowBytes = 65_535
    /// Bytes a peer may send on one connection before it waits for a window update; 1 MiB, a thousand ordinary pushes.
    package var connectionWindowBytes = 1_048_576
    /// Bytes read from one socket in one turn; 64 KiB, four full frames, so that no connection delays the others.
    package var readBytesPerTurn = 65_536
    /// Bytes of partly received requests of one connection, counted to the end of the last complete field; 2 MiB, the
    /// heads of 1,000 streams. A request above the limit is refused as the client's error; if its field block is
    /// incomplete, the connection is ended.
    package var requestBytesPerConnectionMax = 2_097_152
    /// Bytes of partly received requests of all connections; 48 MiB, the limit of two dozen connections. A request
    /// above the limit is refused, and the client may retry. A connection with an incomplete long field is ended.
    package var requestBytesMax = 50_331_648
    /// Bytes that are read and discarded of an HTTP/1.1 body that is too large; 1 MiB, so that most clients then read
    /// the answer. After that the connection is ended.
    package var discardedBytesMax = 1_048_576

    // MARK: Sent bytes

    /// Bytes prepared for one socket at a time; 64 KiB, about the number a socket accepts at once. No more are prepared
    /// until the socket has accepted them, so a peer that stops reading costs at most this and one frame.
    package var outputBytesMax = 65_536
    /// Frames queued behind unsent bytes at which the connection is no longer read; 2,000, two for each possible
    /// stream.
    package var outputFramesMax = 2_000
    /// Bytes queued on one streaming response above which `streamDrained` will be called; 1 MiB, more than a burst of
    /// events leaves unread by a fast client. The handler decides what to do meanwhile.
    package var streamingBytesSoftMax = 1_048_576

    /// Bytes queued for one connection on all its streams; 16 MiB, sixteen streams at `streamingBytesSoftMax`. A
    /// connection above the limit is ended.
    package var queuedBytesPerConnectionMax = 16_777_216

    // MARK: Seconds

    /// Seconds from the accept to the end of the TLS handshake and the first HTTP/2 frame; 10, many round trips on the
    /// slowest network.
    package var handshakeSeconds = 10
    /// Seconds within which a request, a frame, a field block and the acknowledgement of SETTINGS must arrive
    /// completely; 60, which is 220 bytes a second for the largest request, 13 KB.
    package var requestSeconds = 60
    /// Seconds within which the peer must take an answer completely; 60, as long as a request may take. A streaming
    /// answer is exempt while it is open.
    package var responseSeconds = 60
    /// Seconds after which a connection ends if its socket accepts no byte of the output; 60, as long as an answer may
    /// take.
    package var writeStallSeconds = 60
    /// Seconds a connection may be without a request; 3,600, as APNs keeps idle connections for an hour.
    package var idleSeconds = 3_600
    /// Seconds in which a PING must be answered; 10, as long as a handshake may take.
    package var pingSeconds = 10
    /// Seconds for which the server still reads a connection that it ends; 2, a few round trips, so that the peer gets
    /// the last bytes.
    package var lingerSeconds = 2

    // MARK: Frames without a request

    /// CONTINUATION frames of one header block; 64, although the largest header list fits into HEADERS alone.
    package var continuationFramesMax = 64
    /// Burst of frames that carry no request: PING, SETTINGS, PRIORITY, RST_STREAM, GOAWAY, CONTINUATION, empty DATA,
    /// and TLS records without application data such as key updates, counted together so that mixing them gains
    /// nothing. WINDOW_UPDATE frames have a separate budget of this size. 1,000, so that a client may reset all its
    /// open streams. Answers raise the budget. A stream that the server resets for an error of the client, or refuses
    /// above an acknowledged limit, counts like an RST_STREAM of the peer (MadeYouReset, CVE-2025-8671).
    package var controlFramesBurst = 1_000
    /// The long-term rate of such frames per second; 100, far more than a well-behaved client sends.
    package var controlFramesPerSecond = 100

    package init() {}
}

/// The limits that the transport counts, each by the name of its field in `TransportLimits`.
package enum TransportLimit: String, CountedLimit {
    /// A listener stopped accepting for a second.
    case connectionsMax
    /// A connection was ended unread.
    case connectionsPerAddressMax
    /// The oldest handshake in progress was ended for a new one.
    case handshakesMax
    /// A stream was refused.
    case streamsPerConnectionMax
    /// A stream was refused.
    case streamsPerLoopMax
    /// A turn left connections to the next turn or to other loops.
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
    /// A request was refused before it had arrived, or a connection with an incomplete field block was ended.
    case requestBytesPerConnectionMax
    /// A request was refused before it had arrived, or a connection with a part of a long field was ended.
    case requestBytesMax
    /// A connection was ended.
    case discardedBytesMax
    /// The output was written in several parts.
    case outputBytesMax
    /// The handler was notified that a client does not read its stream.
    case streamingBytesSoftMax
    /// A connection was ended.
    case queuedBytesPerConnectionMax
    /// A connection was ended.
    case handshakeSeconds
    /// A request was abandoned.
    case requestSeconds
    /// An answer was abandoned.
    case responseSeconds
    /// A connection was ended.
    case writeStallSeconds
    /// A connection was ended.
    case idleSeconds
    /// A connection was ended.
    case pingSeconds
    /// A connection was ended before its peer closed it.
    case lingerSeconds
    /// A connection was not read until its answers were sent.
    case outputFramesMax
    /// A connection was ended.
    case continuationFramesMax
    /// A connection was ended.
    case controlFramesPerSecond
    /// The system had no descriptor or no memory for a connection, which waits. Not a limit of the transport.
    case openFiles
}

/// A set of limits, by their names in the configuration.
package protocol CountedLimit: RawRepresentable<String>, CaseIterable, Hashable, Sendable where AllCases == [Self] {}

/// Counters of how often each limit was met since the process began.
///
/// Each loop has its own tally, so that loops do not contend. Any thread may count and read. Counting costs a
/// dictionary look-up and an atomic addition, and only when a limit is met.
package final class LimitTally<Limit: CountedLimit>: Sendable {
    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    private let counts: [Limit: Count]

    package init() {
        self.counts = Dictionary(uniqueKeysWithValues: Limit.allCases.map { ($0, Count()) })
    }

    /// Counts a request, connection or action that a limit stopped or delayed.
    package func met(_ limit: Limit, times: Int = 1) {
        self.counts[limit]?.value.add(times, ordering: .relaxed)
    }

    package func times(_ limit: Limit) -> Int {
        self.counts[limit]?.value.load(ordering: .relaxed) ?? 0
    }
}
