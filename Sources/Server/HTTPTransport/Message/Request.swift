package import Wire

/// A whole request, or one whose body passed its limit.
///
/// Everything in it is valid only during the call that hands it over; nothing of it is on the heap of its own.
@safe
package struct Request {
    /// What the answer is addressed to.
    package let stream: StreamID
    /// The place in the server's list of listeners.
    package let listener: Int
    package let isHTTP2: Bool
    /// Whether the body passed the limit that `bodyBytesMax(for:)` gave; `body` is empty then.
    package let isBodyTooLarge: Bool
    /// What there was no room for the whole request in; `body` is empty then.
    package let shortage: RequestShortage

    /// How many bytes of the body are still to come, by `content-length`; nil when that does not say.
    package let bodyBytesMissing: UInt64?

    @usableFromInline let bytes: ByteView
    @usableFromInline let fields: UnsafePointer<HeaderField>?
    /// The number of regular fields; pseudo-header fields are not among them.
    package let headerCount: Int
    @usableFromInline let methodField: HeaderField
    @usableFromInline let pathField: HeaderField
    @usableFromInline let authorityField: HeaderField
    @usableFromInline let bodyStart: Int

    init(stream: StreamID, listener: Int, isHTTP2: Bool, slot: StreamSlot) {
        self.stream = stream
        self.listener = listener
        self.isHTTP2 = isHTTP2
        self.isBodyTooLarge = slot.state.isBodyTooLarge
        self.shortage = slot.state.shortage
        self.bodyBytesMissing = slot.state.bodyBytesMissing
        self.bytes = slot.state.received.view
        unsafe self.fields = slot.state.fields.map { unsafe UnsafePointer($0) }
        self.headerCount = slot.state.fieldCount
        self.methodField = slot.state.method
        self.pathField = slot.state.path
        let authority = slot.state.authority
        self.authorityField = authority.nameCount > 0 ? authority : slot.state.host
        self.bodyStart = slot.state.bodyStart
    }

    @inlinable
    @inline(__always)
    func value(of field: HeaderField) -> ByteView {
        self.bytes.slice(Int(field.valueStart), count: Int(field.valueCount))
    }

    @inlinable
    package var method: ByteView { self.value(of: self.methodField) }

    /// The request target as sent, with its query.
    @inlinable
    package var path: ByteView { self.value(of: self.pathField) }

    /// `:authority`, or the host of an HTTP/1.1 target that names one; the `host` field when there is neither. May be
    /// empty.
    @inlinable
    package var authority: ByteView { self.value(of: self.authorityField) }

    /// The body; empty while its size is asked for, and when it is too large.
    @inlinable
    package var body: ByteView { self.isBodyTooLarge ? ByteView() : self.bytes.dropFirst(self.bodyStart) }

    /// A regular field: fields come in the order they were sent, duplicates are kept, names are lower-case.
    @inlinable
    @inline(__always)
    package func header(at index: Int) -> (name: ByteView, value: ByteView) {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: self.headerCount), "header index out of range")
        let field = unsafe self.fields.unsafelyUnwrapped[index]
        return (self.bytes.slice(Int(field.nameStart), count: Int(field.nameCount)), self.value(of: field))
    }
}

/// What a request had no room in before all of it had arrived.
package enum RequestShortage: UInt8, Sendable {
    /// The request had room.
    case none
    /// `requestBytesPerConnectionMax`: its own client has begun too many.
    case connection
    /// `requestBytesMax`: all clients together have.
    case server
}

/// Where a header field stands in the bytes of its request.
@usableFromInline
struct HeaderField {
    @usableFromInline var nameStart: UInt32
    @usableFromInline var nameCount: UInt32
    @usableFromInline var valueStart: UInt32
    @usableFromInline var valueCount: UInt32

    init(nameStart: Int, nameCount: Int, valueStart: Int, valueCount: Int) {
        self.nameStart = UInt32(truncatingIfNeeded: nameStart)
        self.nameCount = UInt32(truncatingIfNeeded: nameCount)
        self.valueStart = UInt32(truncatingIfNeeded: valueStart)
        self.valueCount = UInt32(truncatingIfNeeded: valueCount)
    }

    /// The same field among bytes of which there are so many more before it.
    @inline(__always)
    func moved(by bytes: Int) -> HeaderField {
        let bytes = UInt32(truncatingIfNeeded: bytes)
        var field = self
        field.nameStart &+= bytes
        field.valueStart &+= bytes
        return field
    }

    /// The field that is not there: a value of no bytes.
    static var none: HeaderField { HeaderField(nameStart: 0, nameCount: 0, valueStart: 0, valueCount: 0) }
}

/// A field of a request, and what it is kept as.
struct PlacedField {
    let field: HeaderField
    let kind: FieldRules.Kind
}

/// Names one connection of one loop; a slot that is used again has another generation.
package struct ConnectionID: Hashable, Sendable {
    /// The place in the loop's table.
    package let index: UInt32
    /// Counts the connections that have had this place, from 1.
    package let generation: UInt32

    @inlinable
    package init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    /// Both numbers at once.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(self.index) << 32 | UInt64(self.generation))
    }
}

/// Names one request and its answer on one loop.
package struct StreamID: Hashable, Sendable {
    package let connection: ConnectionID
    /// The HTTP/2 stream number, or the ordinal of an HTTP/1.1 request on its connection, from 1.
    package let number: Int32

    @inlinable
    package init(connection: ConnectionID, number: Int32) {
        self.connection = connection
        self.number = number
    }

    /// Few words are quicker than many, and no two streams have the same.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.connection)
        hasher.combine(UInt64(UInt32(bitPattern: self.number)))
    }
}

/// The error codes of HTTP/2 (RFC 9113 §7), in the order of their numbers.
package enum HTTP2ErrorCode: String, CaseIterable, Sendable {
    case noError = "NO_ERROR"
    case protocolError = "PROTOCOL_ERROR"
    case internalError = "INTERNAL_ERROR"
    case flowControlError = "FLOW_CONTROL_ERROR"
    case settingsTimeout = "SETTINGS_TIMEOUT"
    case streamClosed = "STREAM_CLOSED"
    case frameSizeError = "FRAME_SIZE_ERROR"
    case refusedStream = "REFUSED_STREAM"
    case cancel = "CANCEL"
    case compressionError = "COMPRESSION_ERROR"
    case connectError = "CONNECT_ERROR"
    case enhanceYourCalm = "ENHANCE_YOUR_CALM"
    case inadequateSecurity = "INADEQUATE_SECURITY"
    case http11Required = "HTTP_1_1_REQUIRED"

    /// The code on the wire.
    package var number: UInt32 {
        switch self {
        case .noError: 0
        case .protocolError: 1
        case .internalError: 2
        case .flowControlError: 3
        case .settingsTimeout: 4
        case .streamClosed: 5
        case .frameSizeError: 6
        case .refusedStream: 7
        case .cancel: 8
        case .compressionError: 9
        case .connectError: 10
        case .enhanceYourCalm: 11
        case .inadequateSecurity: 12
        case .http11Required: 13
        }
    }
}

/// Takes the requests of one event loop; every call comes on that loop's thread.
///
/// All but `turnEnded` are called while bytes are being read or written: they may answer any stream of the loop,
/// whose bytes leave at the end of the turn.
package protocol RequestHandler: AnyObject {
    /// A client has shown a certificate in a TLS handshake that is over now; called before the connection's first
    /// request. When it asks the loop for `goAway` of that connection, no request of it comes.
    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID)

    /// A TLS handshake came to nothing, for a cause in the library's words.
    func handshakeFailed(_ cause: String)

    /// The most bytes the body may have; asked when the headers of a request that has a body have ended.
    func bodyBytesMax(for request: Request) -> Int

    /// The request has ended, or its body has passed the limit (`isBodyTooLarge`).
    func requestReceived(_ request: Request)

    /// An unanswered or streaming response has nobody to go to any more: the peer reset it, or the connection is gone.
    /// Not called after `finish`.
    func streamClosed(_ stream: StreamID)

    /// A connection that had carried at least one request, or shown a certificate, is gone; all its streams were closed
    /// before.
    func connectionClosed(_ connection: ConnectionID)

    /// The queue of a streaming response fell below half of its limit after having passed it.
    func streamDrained(_ stream: StreamID)

    /// Every ready socket of one turn of the loop was read, nothing is written yet.
    func turnEnded()

    /// `EventLoop.wake` was called.
    func woken()

    /// About once a second while the loop has connections.
    func secondPassed(_ monotonicMilliseconds: Int64)

    /// The loop ends, and with it every connection: what is asked of them leaves as far as their sockets take it.
    func loopEnds()

    /// `EventLoop.alarmAt` has come, which is `Int64.max` again.
    func alarmRang(_ monotonicMilliseconds: Int64)
}

extension RequestHandler {
    package func handshakeFailed(_: String) {}

    package func loopEnds() {}

    /// Servers that ask for no certificate hear of none.
    package func certificateShown(_: ClientCertificate, on _: ConnectionID) {}
}
