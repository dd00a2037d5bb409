internal import Wire

/// The stage of a connection.
package enum ConnectionStage: CaseIterable, Sendable {
    /// Waits for the first bytes of a cleartext connection. Can move to: http2, http1, closed.
    case sniffing
    /// Performs the TLS handshake. Can move to: http2, lingering, closed.
    case handshaking
    /// Can move to: lingering, closed.
    case http2
    /// Can move to: lingering, closed.
    case http1
    /// The server has ended its side. Bytes from the peer are discarded. Can move to: closed.
    case lingering
    /// Terminal.
    case closed
}

/// An accepted socket of a loop, and the session of its protocol.
final class Connection {
    let id: ConnectionID
    let descriptor: Int32
    let listener: Int
    /// The client's network; nil for a socket file.
    let network: ClientNetwork?
    var stage: ConnectionStage
    var tls: TLSSession?
    var http2: HTTP2Session?
    var http1: HTTP1Session?
    /// The bytes that the socket has not accepted.
    var output = ByteBuffer()
    /// The events for which epoll watches.
    var interest: Poll.Readiness = .readable
    /// The index of the connection's flow in the loop's shares. Until the handler sets a flow, each connection has its
    /// own.
    var flow: FlowShares.Place
    /// True if the flow sends a large part of the bytes that the loop receives. Other connections are then served
    /// first.
    var isBusy = false
    /// True if the connection is in the loop's list of connections to flush.
    var isDirty = false
    /// True if the connection must end at the next flush.
    var isDoomed = false
    /// True if the connection counts as a handshake in progress.
    var isInHandshake = true
    /// True if the handler has requested that the connection end.
    var isGoingAway = false
    /// True if the client has presented a certificate. The handler then knows the connection.
    var hasShownCertificate = false
    /// True if the peer cannot have read all sent bytes.
    var hasLostBytes = false
    let acceptedAt: Int64
    /// The time since which a TLS record has been incomplete, in monotonic milliseconds; `Int64.max` for none.
    var recordSince = Int64.max
    /// True if `output` has TLS records that answer received ones, such as key updates. Nothing is read until they are
    /// sent.
    var hasAnswersOfTLS = false
    /// The time of the socket's last progress, or of the start of lingering, in monotonic milliseconds.
    var stalledSince: Int64 = 0

    init(
        id: ConnectionID,
        descriptor: Int32,
        listener: Int,
        network: ClientNetwork?,
        stage: ConnectionStage,
        now: Int64
    ) {
        self.id = id
        self.descriptor = descriptor
        self.listener = listener
        self.network = network
        self.stage = stage
        self.flow = FlowShares.Place(flow: UInt64(id.index))
        self.acceptedAt = now
    }

    /// True if the handler knows the connection.
    var isKnownToHandler: Bool {
        self.hasShownCertificate || self.http2?.hasCarriedRequest ?? self.http1?.hasCarriedRequest ?? false
    }

    /// The number of unsent bytes of all answers' bodies.
    var queuedBytes: Int { self.http2?.queuedBytes ?? self.http1?.queuedBytes ?? 0 }

    /// True if the session has ended or failed. The connection ends when the produced bytes are sent.
    var isOver: Bool {
        if let http2 { return http2.hasFailed || http2.isFinished }
        return self.http1?.isFinished ?? false
    }

    /// The events to watch for while `output` is empty. During an HTTP/1 request, later bytes stay in the socket, and
    /// only the end of the peer is watched for.
    var quietInterest: Poll.Readiness {
        self.http1?.wantsToRead == false ? .peerEnded : .readable
    }

    /// The value with which epoll reports the connection.
    var token: UInt64 {
        UInt64(self.id.generation) << 32 | UInt64(self.id.index)
    }
}

/// The connections of one loop that have not begun HTTP, the oldest first.
struct HandshakeQueue {
    /// The connections in order of arrival. Some may have ended or completed the handshake.
    private var connections: [ConnectionID] = []
    private var first = 0
    /// The number of connections that are still in a handshake.
    private(set) var count = 0

    mutating func append(_ connection: ConnectionID, isThere: (ConnectionID) -> Bool) {
        if self.connections.count > 2 * self.count + 64 {
            self.connections = self.connections[self.first...].filter(isThere)
            self.first = 0
        }
        self.connections.append(connection)
        self.count += 1
    }

    /// Records that a handshake has ended or completed.
    mutating func left() {
        self.count -= 1
    }

    /// Returns the oldest connection that is still in a handshake.
    mutating func oldest(isThere: (ConnectionID) -> Bool) -> ConnectionID? {
        while self.first < self.connections.count {
            let oldest = self.connections[self.first]
            if isThere(oldest) { return oldest }
            self.first += 1
        }
        return nil
    }
}

/// Recognizes and answers a cleartext HTTP request to a TLS listener.
enum CleartextRequest {
    /// The methods of HTTP/1.1, each with a space, and the start of HTTP/2's preface.
    private static let beginnings: [StaticString] = [
        "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "PATCH ", "OPTIONS ", "PRI * HTTP/2.0",
    ]

    /// The answer, which says that the listener requires TLS.
    static let answer: StaticString = """
        HTTP/1.1 400 Bad Request\r
        content-type: application/json\r
        content-length: 97\r
        connection: close\r
        \r
        {"reason":"TLSRequired","message":"This listener speaks TLS; write https:// instead of http://."}
        """

    /// Returns true if a connection begins with such a request.
    ///
    /// One empty line before the request is skipped, as RFC 9112 §2.2 requires.
    static func begins(_ bytes: ByteView) -> Bool {
        let request = bytes.starts(with: "\r\n") ? bytes.dropFirst(2) : bytes
        return self.beginnings.contains { request.starts(with: $0) }
    }
}
