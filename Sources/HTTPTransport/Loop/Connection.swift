internal import Bytes

/// One accepted socket of a loop and what is spoken on it.
final class Connection {
    enum Stage {
        /// The first bytes of a cleartext connection are awaited. Can move to: http2, http1, closed.
        case sniffing
        /// The TLS handshake goes on. Can move to: http2, lingering, closed.
        case handshaking
        /// Can move to: lingering, closed.
        case http2
        /// The socket belongs to the HTTP/1.1 library. Can move to: closed.
        case http1
        /// We have ended; what the peer still sends is thrown away. Can move to: closed.
        case lingering
        /// Terminal.
        case closed
    }

    let id: ConnectionID
    let descriptor: Int32
    let listener: Int
    /// Where it comes from; nil for a socket file.
    let network: ClientNetwork?
    var stage: Stage
    var tls: TLSSession?
    var http2: HTTP2Session?
    var http1: HTTP1Connection?
    /// What the socket has not taken yet.
    var output = ByteBuffer()
    /// What the loop's epoll watches for.
    var interest: Poll.Readiness = .readable
    /// Whether the connection is in the loop's list of those to be flushed.
    var isDirty = false
    /// Whether it ends at the next flush.
    var isDoomed = false
    /// Whether it is among the loop's handshakes in progress.
    var isInHandshake = true
    /// Whether the handler has asked for its end.
    var isGoingAway = false
    /// Whether its client has shown a certificate, of which the handler hears.
    var hasShownCertificate = false
    let acceptedAt: Int64
    /// Since when the socket takes nothing, or since when we linger; monotonic milliseconds.
    var stalledSince: Int64 = 0

    init(id: ConnectionID, descriptor: Int32, listener: Int, network: ClientNetwork?, stage: Stage, now: Int64) {
        self.id = id
        self.descriptor = descriptor
        self.listener = listener
        self.network = network
        self.stage = stage
        self.acceptedAt = now
    }

    /// Whether the handler knows of it.
    var isKnownToHandler: Bool { self.hasShownCertificate || self.hasCarriedRequest }

    var hasCarriedRequest: Bool {
        self.http2?.hasCarriedRequest ?? self.http1?.hasCarriedRequest ?? false
    }

    /// What epoll reports it by.
    var token: UInt64 {
        UInt64(self.id.generation) << 32 | UInt64(self.id.index)
    }
}
