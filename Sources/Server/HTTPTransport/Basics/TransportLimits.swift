internal import Synchronization

/// All limits of the transport, each with its unit, its default, and the reason for the default.
package struct TransportLimits: Sendable {
    // MARK: Counts

    /// The maximum number of connections of the server. Default: 20,000, because each needs a descriptor and, with TLS,
    /// about 60 KiB (1.2 GB in total). The descriptor limit of the process also applies.
    package var connectionsMax = 20_000
    /// The maximum number of connections from one address (IPv6: one 64-bit network) to one listener; 0 for no limit.
    /// Default: 5,000, a quarter of all connections, because the clients of a reverse proxy share one address.
    /// Connections to a socket file are not limited.
    package var connectionsPerAddressMax = 5_000
    /// The maximum number of connections without any HTTP data, most of which are in a TLS handshake. Default: 1,000,
    /// which a machine accepts in a quarter of a second, and which use at most 40 MB. Each loop has an equal share. At
    /// the limit, a new connection ends the oldest of these connections, so that silent clients do not exclude others.
    package var handshakesMax = 1_000
    /// The maximum number of open streams on one connection. Default: 1,000, as APNs announces.
    package var streamsPerConnectionMax = 1_000
    /// The maximum number of open streams on one loop. Default: 100,000, the streams of a hundred connections, because
    /// each may have a header list and a body in memory. Further streams are refused, and clients retry them. Each
    /// connection may have an 8,192nd of the limit (12) in any case.
    package var streamsPerLoopMax = 100_000
    /// The maximum number of connections accepted in one turn of one loop. Default: 4, so that the loops share a burst.
    package var acceptsPerTurn = 4

    // MARK: Received bytes

    /// The maximum size of a request's header list in bytes, as HTTP/2 counts it (name, value, and 32 per field).
    /// Default: 8,000, as APNs announces.
    package var headerListBytesMax = 8_000
    /// The maximum size of a frame in bytes. Default: 16,384, the minimum in HTTP/2, which APNs also announces.
    package var frameBytesMax = 16_384
    /// The number of bytes that a peer may send on one stream before a window update. Default: 65,535, as APNs
    /// announces. This is many times the largest payload.
    package var streamWindowBytes = 65_535
    /// The number of bytes that a peer may send on one connection before a window update. Default: 1 MiB, a thousand
    /// ordinary pushes.
    package var connectionWindowBytes = 1_048_576
    /// The maximum number of bytes read from one socket in one turn. Default: 64 KiB, four full frames, so that no
    /// connection delays the others.
    package var readBytesPerTurn = 65_536
    /// The maximum size of one connection's partly received requests in bytes. Default: 2 MiB, the heads of 1,000
    /// streams. Each request is counted up to its last complete field. A request above the limit is refused as an error
    /// of the client. If its field block is incomplete, the connection ends.
    package var requestBytesPerConnectionMax = 2_097_152
    /// The maximum size of the partly received requests of all connections in bytes. Default: 48 MiB, as much as two
    /// dozen connections may use. A request above the limit is refused, and the client may retry it. A connection with
    /// an incomplete long field ends.
    package var requestBytesMax = 50_331_648
    /// The maximum number of bytes that are read and discarded if an HTTP/1.1 body is too large. Default: 1 MiB, so
    /// that most clients then read the answer. Above the limit, the connection ends.
    package var discardedBytesMax = 1_048_576

    // MARK: Sent bytes

    /// The maximum number of bytes prepared for one socket. Default: 64 KiB, about as much as a socket accepts at once.
    /// No more bytes are prepared until the socket has accepted these. A peer that stops reading therefore costs at
    /// most this limit and one frame.
    package var outputBytesMax = 65_536
    /// The maximum number of frames queued behind unsent bytes. At the limit, the connection is not read. Default:
    /// 2,000, two for each possible stream.
    package var outputFramesMax = 2_000
    /// The number of bytes queued on a streaming answer above which `streamDrained` notifies the handler later, when
    /// half of this number is left. Default: 1 MiB, which is more than a fast client leaves unread. The handler decides
    /// what to send until then.
    package var streamingBytesSoftMax = 1_048_576

    /// The maximum number of bytes queued on all streams of one connection. Default: 16 MiB, sixteen streams at
    /// `streamingBytesSoftMax`. Above the limit, the connection ends.
    package var queuedBytesPerConnectionMax = 16_777_216

    // MARK: Seconds

    /// The maximum time in seconds from the accept to the end of the TLS handshake and the first HTTP/2 frame. Default:
    /// 10, many round trips on the slowest network.
    package var handshakeSeconds = 10
    /// The maximum time in seconds in which a request, a frame, a field block or the acknowledgment of SETTINGS must
    /// arrive completely. Default: 60, which is 220 bytes a second for the largest request of 13 KB.
    package var requestSeconds = 60
    /// The maximum time in seconds in which the peer must receive an answer completely. Default: 60, the same as for a
    /// request. The limit does not apply to a streaming answer while it is open.
    package var responseSeconds = 60
    /// The time in seconds without progress after which a connection ends whose socket accepts no output. Default: 60,
    /// the same as for an answer.
    package var writeStallSeconds = 60
    /// The maximum time in seconds for which a connection may have no request. Default: 3,600, as APNs keeps idle
    /// connections.
    package var idleSeconds = 3_600
    /// The maximum time in seconds until a PING is answered. Default: 10, the same as for a handshake.
    package var pingSeconds = 10
    /// The time in seconds for which the server still reads a connection that it ends. Default: 2, a few round trips,
    /// so that the peer gets the last bytes.
    package var lingerSeconds = 2

    // MARK: Frames without a request

    /// The maximum number of CONTINUATION frames in one field block. Default: 64, although HEADERS alone can contain
    /// the largest header list.
    package var continuationFramesMax = 64
    /// The maximum burst of frames that carry no request: PING, SETTINGS, PRIORITY, RST_STREAM, GOAWAY, CONTINUATION,
    /// empty DATA, and TLS records without application data, such as key updates. They are counted together, so mixing
    /// them gives no advantage. WINDOW_UPDATE frames have a separate budget of the same size. Default: 1,000, so that a
    /// client may reset all its open streams.
    ///
    /// Answers raise the budget. A stream counts like an RST_STREAM of the peer if the server resets it for an error of
    /// the client (MadeYouReset, CVE-2025-8671). So does a stream that the server refuses above an acknowledged limit.
    package var controlFramesBurst = 1_000
    /// The long-term rate of these frames per second. Default: 100, far more than a well-behaved client sends.
    package var controlFramesPerSecond = 100

    package init() {}
}

/// The limits that the transport counts, by the names of their fields in `TransportLimits`. Each case documents the
/// effect of reaching the limit.
package enum TransportLimit: String, CountedLimit {
    /// A listener accepts no connections for a second.
    case connectionsMax
    /// A connection ends without being read.
    case connectionsPerAddressMax
    /// The oldest handshake in progress is ended for a new one.
    case handshakesMax
    /// A stream is refused.
    case streamsPerConnectionMax
    /// A stream is refused.
    case streamsPerLoopMax
    /// A turn leaves connections to the next turn or to other loops.
    case acceptsPerTurn
    /// A request is answered with 431.
    case headerListBytesMax
    /// A connection ends.
    case frameBytesMax
    /// A stream is reset.
    case streamWindowBytes
    /// A connection ends.
    case connectionWindowBytes
    /// A turn leaves bytes in a socket.
    case readBytesPerTurn
    /// A request is refused before it has arrived, or a connection with an incomplete field block ends.
    case requestBytesPerConnectionMax
    /// A request is refused before it has arrived, or a connection with an incomplete long field ends.
    case requestBytesMax
    /// A connection ends.
    case discardedBytesMax
    /// The output is written in several parts.
    case outputBytesMax
    /// The handler is notified that a client does not read its stream.
    case streamingBytesSoftMax
    /// A connection ends.
    case queuedBytesPerConnectionMax
    /// A connection ends.
    case handshakeSeconds
    /// A request is abandoned.
    case requestSeconds
    /// An answer is abandoned.
    case responseSeconds
    /// A connection ends.
    case writeStallSeconds
    /// A connection ends.
    case idleSeconds
    /// A connection ends.
    case pingSeconds
    /// A connection ends before its peer has closed it.
    case lingerSeconds
    /// A connection is not read until its answers are sent.
    case outputFramesMax
    /// A connection ends.
    case continuationFramesMax
    /// A connection ends.
    case controlFramesPerSecond
    /// A connection waits because the system has no descriptor or memory for it, or forbids it. This is not a limit of
    /// the transport.
    case openFiles
}

/// A set of limits, by their names in the configuration.
package protocol CountedLimit: RawRepresentable<String>, CaseIterable, Hashable, Sendable where AllCases == [Self] {}

/// Counters of how often each limit was reached since the start of the process.
///
/// Each loop has its own tally, so loops do not contend. Any thread may count and read. Counting costs a dictionary
/// lookup and an atomic addition, and happens only when a limit is reached.
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
