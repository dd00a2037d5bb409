internal import Wire

/// How far a connection has come.
package enum ConnectionStage: CaseIterable, Sendable {
    /// The first bytes of a cleartext connection are awaited. Can move to: http2, http1, closed.
    case sniffing
    /// The TLS handshake goes on. Can move to: http2, lingering, closed.
    case handshaking
    /// Can move to: lingering, closed.
    case http2
    /// Can move to: lingering, closed.
    case http1
    /// We have ended; what the peer still sends is thrown away. Can move to: closed.
    case lingering
    /// Terminal.
    case closed
}

/// One accepted socket of a loop and what is spoken on it.
final class Connection {
    let id: ConnectionID
    let descriptor: Int32
    let listener: Int
    /// Where it comes from; nil for a socket file.
    let network: ClientNetwork?
    var stage: ConnectionStage
    var tls: TLSSession?
    var http2: HTTP2Session?
    var http1: HTTP1Session?
    /// What the socket has not taken yet.
    var output = ByteBuffer()
    /// What the loop's epoll watches for.
    var interest: Poll.Readiness = .readable
    /// The place of its flow among the loop's shares: its own, until the handler names another.
    var flow: FlowShares.Place
    /// Whether its flow sends a large part of all that the loop receives, so that it waits for connections of others.
    var isBusy = false
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
    /// Whether the peer is known not to have read all that was sent to it.
    var hasLostBytes = false
    let acceptedAt: Int64
    /// Since when one record of TLS is awaited of which a part has come; monotonic milliseconds, `Int64.max` for none.
    var recordSince = Int64.max
    /// Whether `output` holds what TLS itself answers to what it reads. Until that has left nothing more is read.
    var hasAnswersOfTLS = false
    /// Since when the socket takes nothing, or since when we linger; monotonic milliseconds.
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

    /// Whether the handler knows of it.
    var isKnownToHandler: Bool { self.hasShownCertificate || self.hasCarriedRequest }

    var hasCarriedRequest: Bool {
        self.http2?.hasCarriedRequest ?? self.http1?.hasCarriedRequest ?? false
    }

    /// Whether what is spoken on it is over, once what was made for it has left.
    var isOver: Bool {
        if let http2 { return http2.hasFailed || http2.isFinished }
        return self.http1?.isFinished ?? false
    }

    /// What is watched for while nothing waits to be sent. HTTP/1 has one request at a time: what comes behind it stays
    /// in the socket, and only the peer's end is news.
    var quietInterest: Poll.Readiness {
        self.http1?.wantsToRead == false ? .peerEnded : .readable
    }

    /// Appends what is to be sent, until there is nothing more or `output` holds `bytesMax`.
    func produce(into output: inout ByteBuffer, bytesMax: Int) {
        self.http2?.produce(into: &output, bytesMax: bytesMax)
        self.http1?.produce(into: &output, bytesMax: bytesMax)
    }

    /// What epoll reports it by.
    var token: UInt64 {
        UInt64(self.id.generation) << 32 | UInt64(self.id.index)
    }
}

/// The connections of one loop that have not spoken HTTP yet, oldest first.
struct HandshakeQueue {
    /// Some have ended or gone on since; they are passed over.
    private var connections: [ConnectionID] = []
    private var first = 0
    /// How many have not.
    private(set) var count = 0

    mutating func append(_ connection: ConnectionID, isThere: (ConnectionID) -> Bool) {
        if self.connections.count > 2 * self.count + 64 {
            self.connections = self.connections[self.first...].filter(isThere)
            self.first = 0
        }
        self.connections.append(connection)
        self.count += 1
    }

    /// A handshake has ended or gone on.
    mutating func left() {
        self.count -= 1
    }

    /// The oldest one.
    mutating func oldest(isThere: (ConnectionID) -> Bool) -> ConnectionID? {
        while self.first < self.connections.count {
            let oldest = self.connections[self.first]
            if isThere(oldest) { return oldest }
            self.first += 1
        }
        return nil
    }
}

/// A request of HTTP in cleartext that reached a listener of TLS.
enum CleartextRequest {
    /// The methods of HTTP/1.1 with the space behind them, and the beginning of HTTP/2.
    private static let beginnings: [StaticString] = [
        "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "PATCH ", "OPTIONS ", "PRI * HTTP/2.0",
    ]

    /// What it is answered: that this is a listener of TLS.
    static let answer: StaticString = """
        HTTP/1.1 400 Bad Request\r
        content-type: application/json\r
        content-length: 97\r
        connection: close\r
        \r
        {"reason":"TLSRequired","message":"This listener speaks TLS; write https:// instead of http://."}
        """

    /// Whether the first bytes of a connection begin such a request.
    ///
    /// An empty line before a request is skipped once, as RFC 9112 section 2.2 requires.
    static func begins(_ bytes: ByteView) -> Bool {
        let request = bytes.starts(with: "\r\n") ? bytes.dropFirst(2) : bytes
        return self.beginnings.contains { request.starts(with: $0) }
    }
}
