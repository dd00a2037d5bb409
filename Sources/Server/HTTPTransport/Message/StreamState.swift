internal import Synchronization
package import Wire

/// The state of one request and its answer. It is allocated in a chunk, and reused together with its memory.
@safe
package struct StreamState: ~Copyable {
    /// The progress of the request and its answer.
    package enum Phase: UInt8 {
        /// The state is in the pool's free list. Can move to: receiving.
        case free
        /// The request has not ended. Can move to: waiting, free.
        case receiving
        /// The handler has the request and has not answered. Can move to: sending, streaming, free.
        case waiting
        /// The whole answer is known and is being sent. Can move to: free.
        case sending
        /// The handler continues to write the answer. Can move to: sending (finished), free.
        case streaming
    }

    /// The stream's number on its connection.
    package var number: Int32 = 0
    /// The progress of the request and its answer.
    package var phase = Phase.free
    /// True if the body has exceeded `bodyBytesMax`.
    package var isBodyTooLarge = false
    /// True if the header list has exceeded its limit. Later fields are dropped.
    package var isHeaderListTooLarge = false
    /// True if the peer will send nothing more on the stream.
    package var hasRequestEnded = false
    /// True if the request's method is HEAD. Its answer has no content (RFC 9110 §9.3.2).
    var hasHeadMethod = false
    /// True if the request is counted among the partly received requests.
    var isHeld = false
    /// True if the handler requested a reset of the stream.
    var isResetByHandler = false
    /// True if the stream is reset with NO_ERROR as soon as all produced frames are sent.
    var isResetPending = false
    var shortage = RequestShortage.none
    /// True if `output` has exceeded its soft limit. The handler is notified when `output` is below half of the limit.
    package var isAboveStreamingLimit = false

    /// The names and values of all header fields. The body follows at `bodyStart`.
    package var received = ByteBuffer()
    var bodyStart = 0
    var bodyBytesMax = 0
    /// The number of bytes of the body that have not arrived according to `content-length`; nil without that field.
    var bodyBytesMissing: UInt64?
    /// The size of the header list, as HTTP/2 counts it: name, value, and 32 bytes per field.
    package var headerListBytes = 0

    var fields: UnsafeMutablePointer<HeaderField>?
    /// The number of regular fields.
    package var fieldCount = 0
    var fieldCapacity = 0
    var method = HeaderField.none
    var path = HeaderField.none
    var authority = HeaderField.none
    var host = HeaderField.none

    /// The unsent bytes of the answer's body.
    package var output = ByteBuffer()

    /// The neighbors in the list of the phase, which has the oldest stream first. `next` also links the free list.
    var previous: StreamSlot?
    var next: StreamSlot?
    /// The start of the phase, in monotonic milliseconds.
    package var since: Int64 = 0

    init() {}

    deinit {
        unsafe self.fields?.deallocate()
    }

    /// True if the body has arrived completely, according to `content-length`.
    var isBodyWhole: Bool { (self.bodyBytesMissing ?? 0) == 0 }

    /// Counts received bytes of the body.
    ///
    /// - Returns: false if more bytes have arrived than `content-length` announced.
    mutating func take(bodyBytes count: Int) -> Bool {
        guard let missing = self.bodyBytesMissing else { return true }
        let (left, isTooMuch) = missing.subtractingReportingOverflow(UInt64(count))
        self.bodyBytesMissing = left
        return !isTooMuch
    }

    /// Prepares the state for another request. Keeps memory of ordinary size.
    mutating func reset(keepingBytesMax: Int) {
        self.isBodyTooLarge = false
        self.isHeaderListTooLarge = false
        self.hasRequestEnded = false
        self.hasHeadMethod = false
        self.isHeld = false
        self.isResetByHandler = false
        self.isResetPending = false
        self.shortage = .none
        self.isAboveStreamingLimit = false
        self.dropRequest(keepingBytesMax: keepingBytesMax)
        self.output.removeAll(keepingBytesMax: keepingBytesMax)
    }

    /// Exchanges the memory of the request with another state.
    mutating func exchangeRequestMemory(with other: inout StreamState) {
        swap(&self.received, &other.received)
        unsafe swap(&self.fields, &other.fields)
        swap(&self.fieldCapacity, &other.fieldCapacity)
    }

    /// Removes the request, because its bytes are no longer needed.
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

/// The stream states of one loop, allocated in chunks and reused.
@safe
package final class StreamPool {
    private static let chunkCount = 64

    /// The maximum number of bytes for which each buffer of a free state keeps memory.
    static let keptBytesMax = 16_384
    /// The maximum number of states in use, apart from those that a connection may always have.
    var streamsMax: Int
    private var chunks: [UnsafeMutablePointer<StreamState>] = unsafe []
    private var free: StreamSlot?
    /// The number of states in use.
    package private(set) var usedCount = 0

    /// - Parameter streamsMax: the maximum number of states in use, apart from those that a connection may always have.
    package init(streamsMax: Int) {
        self.streamsMax = streamsMax
    }

    deinit {
        while let chunk = unsafe self.chunks.popLast() {
            unsafe chunk.deinitialize(count: StreamPool.chunkCount)
            unsafe chunk.deallocate()
        }
    }

    /// Returns an empty state in the phase `receiving`; nil if all states are in use. A connection may always have an
    /// 8,192nd of them, 12 by default: the open streams of others then never exclude it.
    ///
    /// - `openCount`: the number of open streams of the connection.
    @inline(__always)
    package func take(number: Int32, openCount: Int = 0, now: Int64) -> StreamSlot? {
        guard self.usedCount < self.streamsMax || openCount < self.streamsMax >> 13 else { return nil }
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

    /// Returns a state to the pool. Its memory is kept unless it is unusually large.
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

/// A pointer to one `StreamState` in its chunk.
///
/// The pointer is safe, because chunks exist as long as their loop, and only the loop's thread uses it.
@safe
package struct StreamSlot: Equatable {
    let pointer: UnsafeMutablePointer<StreamState>

    /// The state at this address.
    package var state: StreamState {
        @inline(__always) _read { yield unsafe self.pointer.pointee }
        @inline(__always) nonmutating _modify { yield unsafe &self.pointer.pointee }
    }

    /// Returns true if both refer to the same state.
    package static func == (left: StreamSlot, right: StreamSlot) -> Bool {
        unsafe left.pointer == right.pointer
    }
}

/// A list of streams in order of arrival, linked through their states. Adding, removing and finding the oldest take
/// constant time.
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

/// The memory that the HTTP/1 and HTTP/2 sessions of one loop share. Only the loop's thread uses it.
package final class LoopMemory {
    /// The limits. Limits that were announced to peers or set in libnghttp2 never change.
    package var limits: TransportLimits
    /// The states of the loop's streams.
    package let streams: StreamPool
    /// The bytes of partly received requests on all loops.
    package let requestBytes: RequestBytes
    /// The counters of how often each limit was reached on this loop.
    package let tally = LimitTally<TransportLimit>()
    /// The head of an answer that a session sends without the handler.
    let response = Response()
    /// The time in monotonic milliseconds, set once per turn.
    package var now: Int64
    /// The time in seconds since 1970, set once per second.
    package var wallSeconds: Int64 = 0
    /// The value of `date` in HTTP/1 answers.
    var date = HTTPDate()
    /// Memory for the next request. When the handler has processed a request, the request's memory is free again,
    /// although its stream still waits. Thousands of waiting streams can therefore share memory that stays in the
    /// processor's cache.
    var spare = StreamState()
    /// True if the handler was notified of something other than a request, or if a connection has ended.
    var wasHandlerNotified = false

    /// Creates the memory of a new loop.
    ///
    /// - `requestBytes`: the counter of all loops; nil for a single loop.
    /// - `now`: the time in monotonic milliseconds.
    package init(limits: TransportLimits, streams: StreamPool, requestBytes: RequestBytes? = nil, now: Int64) {
        self.limits = limits
        self.streams = streams
        self.requestBytes = requestBytes ?? RequestBytes(bytesMax: limits.requestBytesMax)
        self.now = now
    }

    /// Records that the queue of a streaming answer has exceeded its soft limit.
    func noteStreaming(_ slot: StreamSlot) {
        guard !slot.state.isAboveStreamingLimit, slot.state.output.count > self.limits.streamingBytesSoftMax else {
            return
        }
        slot.state.isAboveStreamingLimit = true
        self.tally.met(.streamingBytesSoftMax)
    }
}

/// The number of bytes of partly received requests on all loops together.
///
/// A request that arrives in a single read is not counted. This is true of nearly all requests.
package final class RequestBytes: Sendable {
    private let bytesMax: Atomic<Int>
    private let count = Atomic<Int>(0)

    /// - Parameter bytesMax: the maximum number of bytes.
    package init(bytesMax: Int) {
        self.bytesMax = Atomic(bytesMax)
    }

    /// Sets another limit. Bytes above the limit stay.
    func setMax(_ bytesMax: Int) {
        self.bytesMax.store(bytesMax, ordering: .relaxed)
    }

    /// Returns true if `bytes` further bytes are within the limit. A connection may always hold an 8,192nd of the
    /// limit, 6 KiB by default: the bytes of others then never refuse a single push or result.
    ///
    /// - `held`: the number of bytes that their connection would hold in total.
    @inline(__always)
    func hasRoom(for bytes: Int, ofConnection held: Int) -> Bool {
        let bytesMax = self.bytesMax.load(ordering: .relaxed)
        return self.count.load(ordering: .relaxed) + bytes <= bytesMax || held <= bytesMax >> 13
    }

    func change(by bytes: Int) {
        self.count.add(bytes, ordering: .relaxed)
    }

    /// The current number of bytes.
    package var held: Int { self.count.load(ordering: .relaxed) }
}
