internal import Synchronization
internal import Wire

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
