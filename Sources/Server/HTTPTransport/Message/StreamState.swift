internal import Synchronization
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

/// The stream states of one loop, made in chunks and used again and again.
@safe
package final class StreamPool {
    private static let chunkCount = 64

    /// The most bytes a free state keeps in each of its buffers.
    static let keptBytesMax = 16_384
    /// The most states handed out at a time.
    var streamsMax: Int
    private var chunks: [UnsafeMutablePointer<StreamState>] = unsafe []
    private var free: StreamSlot?
    /// The states handed out and not given back.
    package private(set) var usedCount = 0

    /// - Parameter streamsMax: the most states handed out at a time.
    package init(streamsMax: Int) {
        self.streamsMax = streamsMax
    }

    deinit {
        while let chunk = unsafe self.chunks.popLast() {
            unsafe chunk.deinitialize(count: StreamPool.chunkCount)
            unsafe chunk.deallocate()
        }
    }

    /// - Returns: an empty state in phase `receiving`, or nil when all are in use.
    @inline(__always)
    package func take(number: Int32, now: Int64) -> StreamSlot? {
        guard self.usedCount < self.streamsMax else { return nil }
        if self.free == nil { self.grow() }
        guard let slot = self.free else { return nil }
        self.free = slot.state.next
        self.usedCount += 1
        slot.state.next = nil
        slot.state.number = number
        slot.state.phase = .receiving
        slot.state.since = now
        return slot
    }

    /// Takes back a state that `take` handed out; its memory is kept unless it is of extraordinary size.
    @inline(__always)
    package func giveBack(_ slot: StreamSlot) {
        precondition(slot.state.phase != .free, "a stream state was given back twice")
        slot.state.reset(keepingBytesMax: Self.keptBytesMax)
        slot.state.phase = .free
        slot.state.next = self.free
        self.free = slot
        self.usedCount -= 1
    }

    private func grow() {
        let chunk = UnsafeMutablePointer<StreamState>.allocate(capacity: StreamPool.chunkCount)
        for index in 0..<StreamPool.chunkCount {
            unsafe (chunk + index).initialize(to: StreamState())
            let slot = unsafe StreamSlot(pointer: chunk + index)
            slot.state.next = self.free
            self.free = slot
        }
        unsafe self.chunks.append(chunk)
    }
}

/// The place of one `StreamState` in its slab.
///
/// Safe because slabs live as long as their loop, and a slot is only used by the loop's thread.
@safe
package struct StreamSlot: Equatable {
    let pointer: UnsafeMutablePointer<StreamState>

    /// The state that lies there.
    package var state: StreamState {
        @inline(__always) _read { yield unsafe self.pointer.pointee }
        @inline(__always) nonmutating _modify { yield unsafe &self.pointer.pointee }
    }

    /// Whether both are the same place.
    package static func == (left: StreamSlot, right: StreamSlot) -> Bool {
        unsafe left.pointer == right.pointer
    }
}

/// Streams in the order they came, linked through their states: adding, removing and finding the oldest cost nothing.
struct StreamList {
    private(set) var first: StreamSlot?
    private var last: StreamSlot?
    private(set) var count = 0

    mutating func append(_ slot: StreamSlot) {
        slot.state.previous = self.last
        slot.state.next = nil
        if let last = self.last { last.state.next = slot } else { self.first = slot }
        self.last = slot
        self.count += 1
    }

    mutating func remove(_ slot: StreamSlot) {
        let previous = slot.state.previous
        let next = slot.state.next
        if let previous { previous.state.next = next } else { self.first = next }
        if let next { next.state.previous = previous } else { self.last = previous }
        slot.state.previous = nil
        slot.state.next = nil
        self.count -= 1
    }
}

/// What the sessions of one loop share, whichever HTTP they speak; its thread alone touches it.
package final class LoopMemory {
    /// The limits; those that a peer is told of, or that libnghttp2 knows, never change.
    package var limits: TransportLimits
    /// The states of the loop's streams.
    package let streams: StreamPool
    /// What has arrived in part on all loops.
    package let requestBytes: RequestBytes
    /// How often the bounds were met on this loop.
    package let tally = LimitTally<TransportLimit>()
    /// The head of an answer that a session gives by itself.
    let response = Response()
    /// Monotonic milliseconds; the driver sets it once a turn.
    package var now: Int64
    /// Seconds since 1970; the driver sets it once a second.
    package var wallSeconds: Int64 = 0
    /// The `date` of HTTP/1's answers.
    var date = HTTPDate()
    /// Memory for the request that comes next. A request is over for us once the handler has had it, while its stream
    /// waits for the answer: so that thousands that wait share what the last one left in the cache.
    var spare = StreamState()
    /// Set whenever the handler was told something outside of a request, or a connection ended.
    var handlerWasTold = false

    /// What the sessions of a loop that begins share.
    ///
    /// - `requestBytes`: what has arrived in part on all loops; nil for a loop that is alone.
    /// - `now`: monotonic milliseconds.
    package init(limits: TransportLimits, streams: StreamPool, requestBytes: RequestBytes? = nil, now: Int64) {
        self.limits = limits
        self.streams = streams
        self.requestBytes = requestBytes ?? RequestBytes(bytesMax: limits.requestBytesMax)
        self.now = now
    }

    /// Notes that a streaming answer has passed the bound after which its handler is told when it is taken.
    func noteStreaming(_ slot: StreamSlot) {
        guard !slot.state.isAboveStreamingLimit, slot.state.output.count > self.limits.streamingBytesSoftMax else {
            return
        }
        slot.state.isAboveStreamingLimit = true
        self.tally.met(.streamingBytesSoftMax)
    }
}

/// The bytes of all requests that have arrived in part, on all loops together.
///
/// A request that arrives within one read, as nearly all do, is never counted here.
package final class RequestBytes: Sendable {
    private let bytesMax: Atomic<Int>
    private let count = Atomic<Int>(0)

    /// - Parameter bytesMax: the most of them.
    package init(bytesMax: Int) {
        self.bytesMax = Atomic(bytesMax)
    }

    /// Sets another bound; what is held already stays.
    func setMax(_ bytesMax: Int) {
        self.bytesMax.store(bytesMax, ordering: .relaxed)
    }

    /// Whether so many more may be held.
    @inline(__always)
    func hasRoom(for bytes: Int) -> Bool {
        self.count.load(ordering: .relaxed) + bytes <= self.bytesMax.load(ordering: .relaxed)
    }

    func change(by bytes: Int) {
        self.count.add(bytes, ordering: .relaxed)
    }

    /// The bytes of requests that have arrived in part.
    package var held: Int { self.count.load(ordering: .relaxed) }
}
