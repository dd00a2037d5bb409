internal import Glibc
public import Wire

/// A request that has arrived completely, or whose body exceeded its limit.
///
/// The views are valid only during the call that passes the request. The type allocates no heap memory.
@safe
@usableFromInline
package struct Request {
    /// The stream for the answer.
    @usableFromInline
    package let stream: StreamID
    /// The index in the server's list of listeners.
    package let listener: Int
    package let isHTTP2: Bool
    /// True if the body exceeded the limit that `bodyBytesMax(for:)` returned. `body` is then empty.
    @usableFromInline
    package let isBodyTooLarge: Bool
    /// The limit that the request exceeded before it had arrived completely. If there is one, `body` is empty.
    package let shortage: RequestShortage

    /// The number of bytes of the body that have not arrived according to `content-length`; nil without that field.
    package let bodyBytesMissing: UInt64?

    @usableFromInline let bytes: ByteView
    @usableFromInline let fields: UnsafePointer<HeaderField>?
    /// The number of regular fields, which do not include pseudo-header fields.
    @usableFromInline
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

    /// The request target, including its query, as received.
    @inlinable
    package var path: ByteView { self.value(of: self.pathField) }

    /// The value of `:authority`, the host in the target of an HTTP/1.1 request, or otherwise the `host` field. May be
    /// empty.
    @inlinable
    package var authority: ByteView { self.value(of: self.authorityField) }

    /// The body. It is empty during `bodyBytesMax(for:)`, and if it is too large.
    @inlinable
    package var body: ByteView { self.isBodyTooLarge ? ByteView() : self.bytes.dropFirst(self.bodyStart) }

    /// Returns a regular field. Fields are in the order of arrival, including duplicates. Names are in lower case.
    @inlinable
    @inline(__always)
    package func header(at index: Int) -> (name: ByteView, value: ByteView) {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: self.headerCount), "header index out of range")
        let field = unsafe self.fields.unsafelyUnwrapped[index]
        return (self.bytes.slice(Int(field.nameStart), count: Int(field.nameCount)), self.value(of: field))
    }
}

/// The memory limit that a request exceeded before it had arrived completely.
package enum RequestShortage: UInt8, Sendable {
    /// No limit was exceeded.
    case none
    /// `requestBytesPerConnectionMax`: the partly received requests of the connection are too large.
    case connection
    /// `requestBytesMax`: the partly received requests of all connections are too large.
    case server
}

/// The position of a header field in the bytes of its request.
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

    /// Returns the field at a position that is higher by `bytes`.
    @inline(__always)
    func moved(by bytes: Int) -> HeaderField {
        let bytes = UInt32(truncatingIfNeeded: bytes)
        var field = self
        field.nameStart &+= bytes
        field.valueStart &+= bytes
        return field
    }

    /// The value for an absent field, which has no bytes.
    static var none: HeaderField { HeaderField(nameStart: 0, nameCount: 0, valueStart: 0, valueCount: 0) }
}

/// A field of a request and its kind.
struct PlacedField {
    let field: HeaderField
    let kind: FieldRules.Kind
}

/// The fields of a request that is being received.
extension StreamState {
    /// Copies a name and a value to the end of `received`.
    @inline(__always)
    mutating func append(name: ByteView, value: ByteView) -> HeaderField {
        let start = self.received.count
        self.received.append(name, value)
        return HeaderField(
            nameStart: start,
            nameCount: name.count,
            valueStart: start + name.count,
            valueCount: value.count
        )
    }

    /// Adds an HTTP/2 field that `FieldRules` has admitted. Ignores the field if the list exceeds its limit.
    @inline(__always)
    package mutating func fieldReceived(
        _ name: ByteView,
        _ value: ByteView,
        _ kind: FieldRules.Kind,
        headerListBytesMax: Int
    ) {
        self.headerListBytes += name.count + value.count + 32
        guard self.headerListBytes <= headerListBytesMax else {
            self.isHeaderListTooLarge = true
            return
        }
        self.take(self.append(name: name, value: value), kind)
    }

    /// Adds a field whose bytes are in `received`.
    @inline(__always)
    mutating func take(_ field: HeaderField, _ kind: FieldRules.Kind) {
        if kind == .regular || kind == .host { self.append(field) }
        self.name(field, kind)
    }

    /// Stores the position of a field if the request has a property for it.
    @inline(__always)
    mutating func name(_ field: HeaderField, _ kind: FieldRules.Kind) {
        switch kind {
        case .host: self.host = field
        case .method: self.method = field
        case .path: self.path = field
        case .authority: self.authority = field
        case .regular, .other: ()
        }
    }

    /// Calls `body` with each field that begins at `start` or later. Its position is relative to `start`.
    ///
    /// - Parameters:
    ///   - start: an offset in the bytes of the fields.
    ///   - first: the index of the first regular field that begins at `start` or later.
    ///   - body: called with the regular fields in order, and with the other fields in any order.
    func forEachPlacedField(from start: Int, regularFrom first: Int, _ body: (PlacedField) -> Void) {
        for (field, kind) in [(self.method, FieldRules.Kind.method), (self.path, .path), (self.authority, .authority)]
        where field.nameCount > 0 && Int(field.nameStart) >= start {
            body(PlacedField(field: field.moved(by: -start), kind: kind))
        }
        for index in first..<self.fieldCount {
            let field = unsafe self.fields.unsafelyUnwrapped[index]
            let isHost = self.host.nameCount > 0 && self.host.nameStart == field.nameStart
            body(PlacedField(field: field.moved(by: -start), kind: isHost ? .host : .regular))
        }
    }

    /// Adds a field whose name may have uppercase letters, as HTTP/1.1 allows.
    mutating func appendField(nameInAnyCase name: ByteView, value: ByteView) {
        let start = self.received.count
        for index in 0..<name.count { self.received.append(name[index].lowercasedASCII) }
        let field = HeaderField(
            nameStart: start,
            nameCount: name.count,
            valueStart: start + name.count,
            valueCount: value.count
        )
        self.received.append(value)
        self.headerListBytes += name.count + value.count + 32
        self.append(field)
        if name.equalsIgnoringCase("host") { self.host = field }
    }

    @inline(__always)
    mutating func append(_ field: HeaderField) {
        if self.fieldCount == self.fieldCapacity { self.growFields() }
        unsafe (self.fields.unsafelyUnwrapped + self.fieldCount).initialize(to: field)
        self.fieldCount += 1
    }

    /// Adds regular fields, with their positions increased by `bytes`.
    @inline(__always)
    mutating func append(_ fields: ArraySlice<HeaderField>, movedBy bytes: Int) {
        let count = self.fieldCount + fields.count
        if count > self.fieldCapacity { self.growFields(to: count) }
        guard var room = unsafe self.fields.map({ unsafe $0 + self.fieldCount }) else { return }
        for field in fields {
            unsafe room.initialize(to: field.moved(by: bytes))
            unsafe room += 1
        }
        self.fieldCount = count
    }

    @inline(never)
    private mutating func growFields(to count: Int = 0) {
        let capacity = max(16, count, self.fieldCapacity * 2)
        let grown = UnsafeMutablePointer<HeaderField>.allocate(capacity: capacity)
        if let fields = unsafe self.fields {
            unsafe grown.moveInitialize(from: fields, count: self.fieldCount)
            unsafe fields.deallocate()
        }
        unsafe self.fields = grown
        self.fieldCapacity = capacity
    }
}

/// The identity of one connection of one loop. When an index is reused, the generation changes.
@usableFromInline
package struct ConnectionID: Hashable, Sendable {
    /// The index in the loop's table.
    @usableFromInline
    package let index: UInt32
    /// The number of connections that have used this index, including this one.
    @usableFromInline
    package let generation: UInt32

    @inlinable
    package init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    /// Hashes both numbers together.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(self.index) << 32 | UInt64(self.generation))
    }
}

/// The identity of one request and its answer on one loop.
@usableFromInline
package struct StreamID: Hashable, Sendable {
    @usableFromInline
    package let connection: ConnectionID
    /// The HTTP/2 stream number, or the ordinal of an HTTP/1.1 request on its connection, counted from 1.
    @usableFromInline
    package let number: Int32

    @inlinable
    package init(connection: ConnectionID, number: Int32) {
        self.connection = connection
        self.number = number
    }

    /// Hashes the identity in two words, which is faster than hashing each property.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.connection)
        hasher.combine(UInt64(UInt32(bitPattern: self.number)))
    }
}

/// The error codes of HTTP/2 (RFC 9113 §7), by their values on the wire.
package enum HTTP2ErrorCode: UInt32, CaseIterable, Sendable {
    case noError, protocolError, internalError, flowControlError, settingsTimeout, streamClosed, frameSizeError
    case refusedStream, cancel, compressionError, connectError, enhanceYourCalm, inadequateSecurity, http11Required

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    package var name: String { Self.names[Int(self.rawValue)] }
}

/// The handler of the requests of one event loop. All methods are called on the loop's thread.
///
/// All methods except `turnEnded` are called while bytes are being read or written. The handler may answer any stream
/// of the loop at any time. The bytes are sent at the end of the turn.
package protocol RequestHandler: AnyObject {
    /// Called when a client has presented a certificate in a completed TLS handshake, before the connection's first
    /// request. If the handler then calls `goAway` for the connection, none of its requests follow.
    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID)

    /// Called when a TLS handshake has failed. The cause is a text from OpenSSL.
    func handshakeFailed(_ cause: String)

    /// Returns the maximum size of the body in bytes. Called after the head of a request that has a body.
    func bodyBytesMax(for request: Request) -> Int

    /// Called when the request has arrived completely, or its body has exceeded the limit (`isBodyTooLarge`).
    func requestReceived(_ request: Request)

    /// Called when an HTTP/2 request has arrived whose header list is too large. The request has only the first fields;
    /// its method, path and authority may be empty.
    ///
    /// - Returns: true if the handler has answered the request with status 431; false if the transport must do so.
    func headerListTooLarge(_ request: Request) -> Bool

    /// Called when an unanswered or streaming request has ended, because the stream was reset or the connection has
    /// ended. Not called after `finish`.
    func streamClosed(_ stream: StreamID)

    /// Called when a connection that had a request or a client certificate has ended. All its streams were closed
    /// before.
    func connectionClosed(_ connection: ConnectionID)

    /// Called when the queue of a streaming answer had exceeded its limit and has fallen below half of the limit.
    func streamDrained(_ stream: StreamID)

    /// Called when all ready sockets of one turn have been read, before anything is written.
    func turnEnded()

    /// Called after `EventLoop.wake` was called.
    func woken()

    /// Called about once a second while the loop has connections.
    func secondPassed(_ monotonicMilliseconds: Int64)

    /// Called before the loop and all its connections end. The loop still sends answers, as far as the sockets accept
    /// them.
    func loopEnds()

    /// Called when the time `EventLoop.alarmAt` has come. `alarmAt` has been reset to `Int64.max`.
    func alarmRang(_ monotonicMilliseconds: Int64)
}

/// Only the requests and the ends of streams must be handled. By default, a handler ignores all other events.
extension RequestHandler {
    package func certificateShown(_: ClientCertificate, on _: ConnectionID) {}

    package func handshakeFailed(_: String) {}

    package func headerListTooLarge(_: Request) -> Bool { false }

    package func connectionClosed(_: ConnectionID) {}

    package func streamDrained(_: StreamID) {}

    package func turnEnded() {}

    package func woken() {}

    package func secondPassed(_: Int64) {}

    package func loopEnds() {}

    package func alarmRang(_: Int64) {}
}

/// The head of a response. One object is reused for all answers.
///
/// The head is stored as an HTTP/2 field block, so it is encoded only once. HTTP/1 sessions decode it.
package final class Response {
    private(set) var status = 200
    /// The status and all fields, as encoded by `FieldEncoder`.
    package private(set) var block = ByteBuffer()
    /// The offset of the fields after the status.
    private var fieldsStart = 0

    package init() {
        self.begin(status: 200)
    }

    /// Removes all fields, and begins a head with `status` (200 to 999).
    package func begin(status: Int) {
        precondition(status >= 200 && status <= 999, "a final status has three digits")
        self.status = status
        self.block.removeAll()
        FieldEncoder.append(status: status, to: &self.block)
        self.fieldsStart = self.block.count
    }

    /// Begins the head of an event stream, with fields that make proxies forward events immediately. nginx buffers
    /// responses without `x-accel-buffering: no`, and a compressing proxy delays events.
    package func beginEventStream() {
        self.begin(status: 200)
        self.add("content-type", "text/event-stream")
        self.add("cache-control", "no-cache, no-transform")
        self.add("x-accel-buffering", "no")
    }

    /// Adds a field. The value is copied.
    ///
    /// - `name`: the name, in lower case.
    package func add(_ name: StaticString, _ value: ByteView) {
        FieldEncoder.append(ByteView(name), value, to: &self.block)
    }

    package func add(_ name: StaticString, _ value: StaticString) {
        FieldEncoder.append(ByteView(name), ByteView(value), to: &self.block)
    }

    /// Adds a field whose value `write` appends. The value must have at most 126 bytes.
    package func add(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        FieldEncoder.append(ByteView(name), to: &self.block, write)
    }

    /// Adds a field whose value is a decimal number.
    package func add(_ name: StaticString, _ value: Int64) {
        FieldEncoder.append(ByteView(name), to: &self.block) { $0.appendDecimal(value) }
    }

    /// Calls `body` with the name and the value of each field after the status. Both are valid only during the call.
    package func forEachField(_ body: (ByteView, ByteView) -> Void) {
        FieldEncoder.forEachField(of: self.block.view.dropFirst(self.fieldsStart), body)
    }
}

/// The value of `date` fields (RFC 9110 §5.6.7), composed once per second.
struct HTTPDate: ~Copyable {
    private var second: Int64?
    private var text = ByteBuffer()

    /// Appends the value for a time.
    ///
    /// - `second`: the seconds since 1970, UTC.
    mutating func write(_ second: Int64, to buffer: inout ByteBuffer) {
        if self.second != second {
            self.second = second
            self.text.removeAll()
            self.compose(second)
        }
        buffer.append(self.text.view)
    }

    private mutating func compose(_ second: Int64) {
        var (time, date) = unsafe (Int(second), tm())
        unsafe gmtime_r(&time, &date)
        // The process uses the C locale, whose names are those of the standard.
        var characters = [UInt8](repeating: 0, count: 64)
        let count = unsafe characters.withUnsafeMutableBytes { memory in
            let start = unsafe memory.assumingMemoryBound(to: CChar.self).baseAddress
            return unsafe strftime(start, memory.count, "%a, %d %b %Y %H:%M:%S GMT", &date)
        }
        self.text.append(Array(characters.prefix(count)))
    }
}
