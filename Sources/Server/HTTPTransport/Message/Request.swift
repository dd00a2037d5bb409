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
