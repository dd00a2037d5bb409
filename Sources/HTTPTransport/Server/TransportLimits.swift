/// Every bound of the transport.
package struct TransportLimits: Sendable {
    /// Connections of the whole server. Each costs a descriptor and about 60 KiB with TLS; the server also stays below
    /// the process's descriptor limit.
    package var connectionsMax = 20_000
    /// Streams open at once on one connection, as APNs announces it.
    package var streamsPerConnectionMax = 1_000
    /// Streams open at once on one loop; each may hold a header list and a body. Others are refused, to be retried.
    package var streamsPerLoopMax = 100_000
    /// Bytes of one request's header list as HTTP/2 counts them (name, value and 32 a field), as APNs announces it.
    package var headerListBytesMax = 8_000
    /// Bytes of the largest frame taken; the smallest value that HTTP/2 allows, and what APNs announces.
    package var frameBytesMax = 16_384
    /// Bytes a peer may send on one stream before it waits for us, as APNs announces it.
    package var streamWindowBytes = 65_535
    /// Bytes a peer may send on one connection before it waits for us: a thousand ordinary pushes.
    package var connectionWindowBytes = 1_048_576
    /// Bytes taken from one socket in one turn, so that no connection keeps the others waiting.
    package var readBytesPerTurn = 65_536
    /// Bytes made ready for one socket at a time. What the socket does not take is kept, and nothing more is made
    /// before it has left; this and one frame are the most a peer that stops reading costs.
    package var outputBytesMax = 65_536
    /// Frames waiting behind unsent bytes after which no more is read from the connection.
    package var outputFramesMax = 2_000
    /// Bytes queued on one streaming response above which `streamDrained` is promised; the handler decides what to do.
    package var streamingBytesSoftMax = 1_048_576
    /// Bytes of an HTTP/1.1 body that are thrown away after it has passed its limit before the connection is ended.
    package var discardedBytesMax = 1_048_576
    /// Seconds from the accept to the end of the TLS handshake and the first HTTP/2 frame.
    package var handshakeSeconds = 10
    /// Seconds in which a request must have arrived whole.
    package var requestSeconds = 60
    /// Seconds in which an answer must have been taken whole; a streaming one is exempt while it is open.
    package var responseSeconds = 60
    /// Seconds a socket may take no byte of what waits for it.
    package var writeStallSeconds = 60
    /// Seconds a connection may be without a request; APNs says one hour.
    package var idleSeconds = 3_600
    /// Seconds in which a PING must be answered.
    package var pingSeconds = 10
    /// Seconds a connection that we end stays open for reading, so that its last bytes are not lost.
    package var lingerSeconds = 2
    /// PING, SETTINGS, PRIORITY, RST_STREAM and empty DATA frames a peer may send at once, and each second.
    package var controlFramesBurst = 1_000
    package var controlFramesPerSecond = 100
    /// Connections accepted in one turn of one loop, so that loops share them.
    package var acceptsPerTurn = 4

    package init() {}
}
