package import Wire

/// What is known of one request and its answer: lives in a slab, and keeps its memory when it is used again.
@safe
package struct StreamState: ~Copyable {
    /// How far the request and its answer have come.
    package enum Phase: UInt8 {
        /// In the slab's free list. Can move to: receiving.
        case free
        /// The request has not ended. Can move to: waiting, free.
        case receiving
        /// The handler has the request and has not answered. Can move to: sending, streaming, free.
        case waiting
        /// The whole answer is known and is being sent. Can move to: free.
        case sending
        /// The answer grows as the handler writes. Can move to: sending (finished), free.
        case streaming
    }

    /// The stream's number on its connection.
    package var number: Int32 = 0
    /// How far the request and its answer have come.
    package var phase = Phase.free
    /// Whether the body has passed `bodyBytesMax`.
    package var isBodyTooLarge = false
    /// Whether the header list has passed its limit; what came after that is not kept.
    package var isHeaderListTooLarge = false
    /// Whether the peer will send nothing more on the stream.
    package var hasRequestEnded = false
    /// Whether the request's method is HEAD: no answer to it has content (RFC 9110 §9.3.2).
    var hasHeadMethod = false
    /// Whether the request is among those that have arrived in part.
    var isHeld = false
    /// True if the handler asked for the stream's reset.
    var isResetByHandler = false
    var shortage = RequestShortage.none
    /// Whether `output` has grown past the bound after which the handler hears that it is taken.
    package var isAboveStreamingLimit = false

    /// The values and names of all header fields; after them the body, from `bodyStart`.
    package var received = ByteBuffer()
    var bodyStart = 0
    var bodyBytesMax = 0
    /// The bytes of the body that are to come by `content-length`; nil when that was not said.
    var bodyBytesMissing: UInt64?
    /// The size of the header list as HTTP/2 counts it: 32 bytes a field besides its name and value.
    package var headerListBytes = 0

    var fields: UnsafeMutablePointer<HeaderField>?
    /// How many regular fields there are.
    package var fieldCount = 0
    private var fieldCapacity = 0
    var method = HeaderField.none
    var path = HeaderField.none
    var authority = HeaderField.none
    var host = HeaderField.none

    /// The bytes of the answer's body that have not been sent.
    package var output = ByteBuffer()

    /// Neighbours in the list of the phase, oldest first; `next` also links the free list.
    var previous: StreamSlot?
    var next: StreamSlot?
    /// When the phase began, in monotonic milliseconds.
    package var since: Int64 = 0

    init() {}

    deinit {
        unsafe self.fields?.deallocate()
    }

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

    /// Takes a field of HTTP/2, whose name and value `FieldRules` has admitted; of a list over the limit, none.
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

    /// Notes a field whose bytes are in `received`.
    @inline(__always)
    mutating func take(_ field: HeaderField, _ kind: FieldRules.Kind) {
        if kind == .regular || kind == .host { self.append(field) }
        self.name(field, kind)
    }

    /// Notes what a field is, where the request knows it by that.
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

    /// Calls `body` with the fields whose bytes begin at `start` or later, all as if `start` were the first byte.
    ///
    /// - Parameters:
    ///   - start: where among the bytes of the fields.
    ///   - first: the first regular field that begins there or later.
    ///   - body: called with fields in no order but that of the regular ones.
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

    /// Whether as much of the body has come as was announced.
    var isBodyWhole: Bool { (self.bodyBytesMissing ?? 0) == 0 }

    /// Counts what came of the body.
    ///
    /// - Returns: false when that is more than was announced.
    mutating func take(bodyBytes count: Int) -> Bool {
        guard let missing = self.bodyBytesMissing else { return true }
        let (left, isTooMuch) = missing.subtractingReportingOverflow(UInt64(count))
        self.bodyBytesMissing = left
        return !isTooMuch
    }

    /// Copies a field whose name may have capitals, as HTTP/1.1 allows.
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

    /// Notes regular fields among bytes of which there are so many more before them than the fields say.
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

    /// Makes the state ready for another request; memory of ordinary size is kept.
    mutating func reset(keepingBytesMax: Int) {
        self.isBodyTooLarge = false
        self.isHeaderListTooLarge = false
        self.hasRequestEnded = false
        self.hasHeadMethod = false
        self.isHeld = false
        self.isResetByHandler = false
        self.shortage = .none
        self.isAboveStreamingLimit = false
        self.dropRequest(keepingBytesMax: keepingBytesMax)
        self.output.removeAll(keepingBytesMax: keepingBytesMax)
    }

    /// Exchanges the memory that requests are kept in.
    mutating func exchangeRequestMemory(with other: inout StreamState) {
        swap(&self.received, &other.received)
        let (fields, fieldCapacity) = unsafe (self.fields, self.fieldCapacity)
        unsafe self.fields = other.fields
        self.fieldCapacity = other.fieldCapacity
        unsafe other.fields = fields
        other.fieldCapacity = fieldCapacity
    }

    /// Forgets the request: its bytes are needed no more.
    mutating func dropRequest(keepingBytesMax: Int) {
        self.received.removeAll(keepingBytesMax: keepingBytesMax)
        self.bodyStart = 0
        self.bodyBytesMax = 0
        self.bodyBytesMissing = nil
        self.headerListBytes = 0
        self.fieldCount = 0
        self.method = .none
        self.path = .none
        self.authority = .none
        self.host = .none
    }
}
