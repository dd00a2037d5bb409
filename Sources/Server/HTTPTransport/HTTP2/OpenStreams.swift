package import Wire

/// The open streams of one connection by phase. Each phase has its oldest stream first.
package struct OpenStreams {
    /// The streams whose requests have not ended.
    private(set) var receiving = StreamList()
    /// The streams that the handler has not answered completely.
    private(set) var waiting = StreamList()
    /// The streams whose answers are complete and are being sent.
    private(set) var sending = StreamList()
    /// The stream whose field block is being decoded or that received the latest data; nil if it is closed or there was
    /// none.
    var current: StreamSlot?
    /// The time since which no stream has been open, in monotonic milliseconds. Meaningless while a stream is open.
    package var idleSince: Int64

    /// - Parameter now: the time in monotonic milliseconds.
    package init(now: Int64) {
        self.idleSince = now
    }

    package var count: Int { self.receiving.count + self.waiting.count + self.sending.count }

    /// One of the open streams; nil if no stream is open.
    package var first: StreamSlot? { self.receiving.first ?? self.waiting.first ?? self.sending.first }

    /// Returns a stream if it is the current stream or the oldest of its phase. If the result is nil, the stream may
    /// still be open.
    @inline(__always)
    package func find(_ number: Int32) -> StreamSlot? {
        if let current = self.current, current.state.number == number { return current }
        // Most bodies, answers and ends come in the order of the requests.
        if let oldest = self.receiving.first, oldest.state.number == number { return oldest }
        if let oldest = self.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.sending.first, oldest.state.number == number { return oldest }
        return nil
    }

    /// Adds a new stream, whose block is being decoded.
    package mutating func begin(_ slot: StreamSlot) {
        self.append(slot)
        self.current = slot
    }

    /// Removes a stream that has ended.
    ///
    /// - Parameters:
    ///   - slot: the stream, which is still in its last phase.
    ///   - now: the time in monotonic milliseconds.
    package mutating func end(_ slot: StreamSlot, now: Int64) {
        self.remove(slot)
        if self.current == slot { self.current = nil }
        if self.count == 0 { self.idleSince = now }
    }

    /// Moves a stream to another phase.
    ///
    /// - Parameters:
    ///   - slot: an open stream.
    ///   - phase: the new phase.
    ///   - now: the start of the phase, in monotonic milliseconds.
    package mutating func move(_ slot: StreamSlot, to phase: StreamState.Phase, now: Int64) {
        self.remove(slot)
        slot.state.phase = phase
        slot.state.since = now
        self.append(slot)
    }

    private mutating func append(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.append(slot)
        case .waiting, .streaming: self.waiting.append(slot)
        case .sending: self.sending.append(slot)
        case .free: ()
        }
    }

    private mutating func remove(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.remove(slot)
        case .waiting, .streaming: self.waiting.remove(slot)
        case .sending: self.sending.remove(slot)
        case .free: ()
        }
    }
}

/// The stream numbers that a peer may still use. The numbers of new streams always increase (RFC 9113 §5.1.1).
///
/// libnghttp2 ignores HEADERS and DATA on every closed stream, because the peer may have sent them before it received a
/// reset. This type finds the closed streams for which this is impossible. A frame on such a stream is an error.
package struct StreamNumbers {
    /// The maximum number of streams in `cutShort`.
    package static let cutShortMax = 64

    private var newest: Int32 = -1
    private var newestResetByPeer: Int32 = 0
    /// The lowest odd number such that the peer has used all odd numbers from it to the newest.
    private var unbrokenFrom: Int32 = 1
    /// The highest number that was removed from the ring buffer. Frames on streams up to this number are accepted,
    /// because it is unknown how the streams ended.
    private var forgotten: Int32 = 0
    /// A ring buffer of the last streams that the server closed before their requests had ended.
    private var cutShort: [Int32] = []
    /// The index to overwrite next when the ring buffer is full.
    private var oldestCutShort: UInt8 = 0

    /// Creates the state for a connection that has had no stream.
    package init() {}

    /// Records a new stream. Its number is higher than all previous numbers.
    package mutating func opened(_ number: Int32) {
        if number != self.newest + 2 { self.unbrokenFrom = number }
        self.newest = number
    }

    /// Records a stream that was closed before its request had ended. More of the request may arrive unless the peer
    /// has reset the stream.
    package mutating func cutShort(_ number: Int32) {
        guard number != self.newestResetByPeer else { return }
        guard self.cutShort.count == Self.cutShortMax else { return self.cutShort.append(number) }
        let oldest = Int(self.oldestCutShort)
        self.forgotten = max(self.forgotten, self.cutShort[oldest])
        self.cutShort[oldest] = number
        self.oldestCutShort = UInt8((oldest + 1) % Self.cutShortMax)
    }

    /// Records an RST_STREAM frame of the peer. The peer sends nothing more on the stream.
    package mutating func resetByPeer(_ number: Int32) {
        self.newestResetByPeer = number
        guard !self.cutShort.isEmpty, let place = self.cutShort.firstIndex(of: number) else { return }
        // 0 matches no stream, because stream numbers are positive.
        self.cutShort[place] = 0
    }

    /// Returns true if the peer's latest RST_STREAM frame was for this stream.
    func isNewestReset(_ number: Int32) -> Bool { number == self.newestResetByPeer }

    /// Returns true if a HEADERS frame with `number` does not open a new stream.
    func isUsed(_ number: Int32) -> Bool { number <= self.newest }

    /// Returns true if more of a request may arrive on `number`, although the stream is closed.
    package func mayGoOn(_ number: Int32) -> Bool { number <= self.forgotten || self.cutShort.contains(number) }

    /// Returns the error code for a HEADERS frame with `number`, which is not an open stream. Returns nil if the number
    /// is new, or if the frame may belong to an earlier request.
    package func faultUnlessOpen(_ number: Int32) -> HTTP2ErrorCode? {
        guard self.isUsed(number), !self.mayGoOn(number) else { return nil }
        // A skipped or even number was never a stream of the peer.
        return number >= self.unbrokenFrom && number & 1 == 1 ? .streamClosed : .protocolError
    }
}

/// Counts the bytes of partly received requests of one connection.
package struct HeldBytes {
    /// The number of bytes of partly received requests.
    package private(set) var count = 0
    /// The number of these bytes that belong to the field block being decoded.
    private var ofBlock = 0
    /// The number of these bytes that were added to the count of all connections.
    private var counted = 0

    /// Creates the counters for a new connection.
    package init() {}

    package mutating func hold(_ bytes: Int) {
        self.count += bytes
    }

    package mutating func letGo(_ bytes: Int) {
        self.count -= bytes
    }

    /// Counts the bytes of the block. They must not be counted yet.
    package mutating func holdBlock(_ bytes: Int) {
        self.ofBlock = bytes
        self.count += bytes
    }

    /// Removes the bytes of the block from the count, because the block continues or the connection has ended.
    @inline(__always)
    package mutating func letGoOfBlock() {
        self.count -= self.ofBlock
        self.ofBlock = 0
    }

    /// Returns the limit that `bytes` further bytes would exceed.
    ///
    /// - Parameters:
    ///   - bytes: the number of further bytes.
    ///   - connectionMax: the maximum number of bytes for one connection.
    ///   - all: the counter of all connections.
    @inline(__always)
    package func shortage(for bytes: Int, connectionMax: Int, all: RequestBytes) -> RequestShortage {
        if self.count + bytes > connectionMax { return .connection }
        let held = self.count + bytes
        return all.hasRoom(for: held - self.counted, ofConnection: held) ? .none : .server
    }

    /// Updates the counter of all loops. It is called once per read, and changes nothing for a request that arrives in
    /// one read.
    @inline(__always)
    package mutating func tell(_ all: RequestBytes) {
        guard self.count != self.counted else { return }
        all.change(by: self.count - self.counted)
        self.counted = self.count
    }
}

/// The ways to treat open streams when a connection sends GOAWAY.
package enum StreamsInFlight: Hashable, Sendable {
    /// Answers the streams, and then ends the connection.
    case finished
    /// Answers the streams before GOAWAY is sent, because some clients stop reading when they get it. Requests that
    /// arrive before GOAWAY is sent are answered, too.
    case answeredFirst
    /// Like `answeredFirst`, but at least one second earlier, sends another GOAWAY with the largest stream number.
    /// Requests that the peer sends before it gets that frame are answered, too (RFC 9113 §6.8).
    case announcedFirst
    /// Refuses the streams from this number, so that their client may retry elsewhere. Older streams are answered.
    case refused(from: Int32)
    /// Ends the connection with GOAWAY. The client cannot know the results of open requests.
    case dropped
}

/// The sent and pending GOAWAY frames of a connection.
package struct Departure {
    /// A GOAWAY frame that is sent after the answers to all open requests.
    package struct PendingGoAway {
        package let debugData: [UInt8]
        package let code: HTTP2ErrorCode
        /// The time when the frame was requested, in monotonic milliseconds.
        fileprivate let since: Int64
    }

    /// The time for which a farewell waits until no stream is open, in milliseconds. After this time it waits only for
    /// answers, because some clients always have an open request.
    package static let gracePeriodMilliseconds: Int64 = 1000

    /// The last stream in the GOAWAY frames so far. Until such a frame is sent, libnghttp2 accepts further streams.
    private var lastTaken = Int32.max
    /// True if a GOAWAY frame with the largest stream number must be sent before the farewell.
    private var isAnnouncementDue = false
    private var pendingGoAway: PendingGoAway?
    /// The earliest time for the farewell, in monotonic milliseconds.
    private var leavesFrom = Int64.min

    /// Creates the state before any GOAWAY.
    package init() {}

    /// True if a farewell is pending.
    package var hasPendingGoAway: Bool { self.pendingGoAway != nil }

    /// Returns true if the peer may consider a stream accepted.
    package func takes(_ number: Int32) -> Bool { number <= self.lastTaken }

    /// Returns the last stream for a GOAWAY frame that is sent now.
    ///
    /// - Parameters:
    ///   - newest: the newest stream that libnghttp2 has accepted.
    ///   - inFlight: the treatment of open streams.
    package func last(newest: Int32, _ inFlight: StreamsInFlight) -> Int32 {
        let last = min(self.lastTaken, newest)
        guard case .refused(let first) = inFlight else { return last }
        return max(0, min(last, first - 2))
    }

    /// Records the last stream in a GOAWAY frame.
    package mutating func announced(last: Int32) {
        self.lastTaken = last
    }

    /// Schedules a GOAWAY frame after the answers, unless one is pending. Its last stream is determined when it is
    /// sent, so all earlier requests are answered.
    ///
    /// - `isAnnounced`: true to send a GOAWAY frame with the largest stream number before it.
    package mutating func wait(debugData: ByteView, code: HTTP2ErrorCode, isAnnounced: Bool = false, now: Int64) {
        guard self.pendingGoAway == nil else { return }
        self.pendingGoAway = PendingGoAway(debugData: debugData.array, code: code, since: now)
        self.isAnnouncementDue = isAnnounced
    }

    /// Returns true if the pending farewell or its announcement may be sent now.
    package func mayLeave(_ open: OpenStreams, now: Int64) -> Bool {
        guard let pendingGoAway, now >= self.leavesFrom else { return false }
        guard open.count > 0 else { return true }
        let isWithinGracePeriod = now - pendingGoAway.since < Self.gracePeriodMilliseconds
        // The announcement affects no stream, so it need not wait for streams that stay open.
        if self.isAnnouncementDue {
            return open.sending.first == nil && (open.waiting.first == nil || !isWithinGracePeriod)
        }
        return !isWithinGracePeriod && open.waiting.first == nil && open.sending.first == nil
    }

    /// Returns true if the announcement must be sent now. The farewell follows at least one second later.
    package mutating func takeAnnouncement(_ open: OpenStreams, now: Int64) -> Bool {
        guard self.isAnnouncementDue, self.mayLeave(open, now: now) else { return false }
        self.isAnnouncementDue = false
        self.leavesFrom = now + Self.gracePeriodMilliseconds
        return true
    }

    /// Removes and returns the farewell if it may be sent now.
    package mutating func take(_ open: OpenStreams, now: Int64) -> PendingGoAway? {
        guard !self.isAnnouncementDue, self.mayLeave(open, now: now) else { return nil }
        defer { self.pendingGoAway = nil }
        return self.pendingGoAway
    }
}
