package import Wire

/// The open streams of one connection by phase, the oldest of each phase first.
package struct OpenStreams {
    /// The streams whose requests have not ended.
    private(set) var receiving = StreamList()
    /// The streams that the handler has not answered, and the streaming ones.
    private(set) var waiting = StreamList()
    /// The streams whose complete answers are being sent.
    private(set) var sending = StreamList()
    /// The stream whose field block is being read or that received the last data; nil if it is gone or there was none.
    var current: StreamSlot?
    /// The time since which no stream is open, in monotonic milliseconds; meaningless while a stream is open.
    package var idleSince: Int64

    /// - Parameter now: monotonic milliseconds.
    package init(now: Int64) {
        self.idleSince = now
    }

    package var count: Int { self.receiving.count + self.waiting.count + self.sending.count }

    /// One of the open streams; nil if there are none.
    package var first: StreamSlot? { self.receiving.first ?? self.waiting.first ?? self.sending.first }

    /// Returns a stream if it is the current or the oldest of its phase. A stream for which the result is nil may be
    /// open.
    @inline(__always)
    package func find(_ number: Int32) -> StreamSlot? {
        if let current = self.current, current.state.number == number { return current }
        // Bodies, answers and ends mostly come in the order of the requests.
        if let oldest = self.receiving.first, oldest.state.number == number { return oldest }
        if let oldest = self.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.sending.first, oldest.state.number == number { return oldest }
        return nil
    }

    /// Adds a new stream, whose block is being read.
    package mutating func begin(_ slot: StreamSlot) {
        self.append(slot)
        self.current = slot
    }

    /// Removes a stream that has ended.
    ///
    /// - Parameters:
    ///   - slot: the stream, still in its last phase.
    ///   - now: monotonic milliseconds.
    package mutating func end(_ slot: StreamSlot, now: Int64) {
        self.remove(slot)
        if self.current == slot { self.current = nil }
        if self.count == 0 { self.idleSince = now }
    }

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

/// The stream numbers that a peer may still use (RFC 9113 §5.1.1: the numbers of new streams only grow).
///
/// libnghttp2 ignores HEADERS and DATA on every closed stream, since the peer may have sent them before it saw a reset.
/// This type finds the streams on which that is impossible, so that such a frame is an error.
package struct StreamNumbers {
    /// The maximum number of streams in `cutShort`.
    package static let cutShortMax = 64

    private var newest: Int32 = -1
    private var newestResetByPeer: Int32 = 0
    /// The lowest odd number from which the peer has used every odd number up to the newest.
    private var unbrokenFrom: Int32 = 1
    /// The highest number removed from the ring. Frames on streams up to this number are accepted, as their ends are
    /// unknown.
    private var forgotten: Int32 = 0
    /// A ring of the last streams that the server closed before their requests had ended.
    private var cutShort: [Int32] = []
    /// The index in the full ring that is overwritten next.
    private var oldestCutShort: UInt8 = 0

    /// Creates the numbers of a connection on which no stream was opened.
    package init() {}

    /// Records a new stream, whose number is higher than all before.
    package mutating func opened(_ number: Int32) {
        if number != self.newest + 2 { self.unbrokenFrom = number }
        self.newest = number
    }

    /// Records a stream that was closed before its request had ended. Unless the peer reset the stream, more may
    /// arrive.
    package mutating func cutShort(_ number: Int32) {
        guard number != self.newestResetByPeer else { return }
        guard self.cutShort.count == Self.cutShortMax else { return self.cutShort.append(number) }
        let oldest = Int(self.oldestCutShort)
        self.forgotten = max(self.forgotten, self.cutShort[oldest])
        self.cutShort[oldest] = number
        self.oldestCutShort = UInt8((oldest + 1) % Self.cutShortMax)
    }

    /// Records an RST_STREAM frame of the peer, which then sends nothing more on the stream.
    package mutating func resetByPeer(_ number: Int32) {
        self.newestResetByPeer = number
        guard !self.cutShort.isEmpty, let place = self.cutShort.firstIndex(of: number) else { return }
        // Stream numbers are positive, so 0 matches none.
        self.cutShort[place] = 0
    }

    /// Returns true if the latest RST_STREAM of the peer was for this stream.
    func isNewestReset(_ number: Int32) -> Bool { number == self.newestResetByPeer }

    /// Returns true if HEADERS on `number` do not open a new stream.
    func isUsed(_ number: Int32) -> Bool { number <= self.newest }

    /// Returns true if more of a request may still arrive on `number`, whose stream is gone.
    package func mayGoOn(_ number: Int32) -> Bool { number <= self.forgotten || self.cutShort.contains(number) }

    /// - Returns: the error code for HEADERS on `number` if that stream is not open; nil if the frame is allowed or may
    ///   be the rest of a request.
    package func faultUnlessOpen(_ number: Int32) -> HTTP2ErrorCode? {
        guard self.isUsed(number), !self.mayGoOn(number) else { return nil }
        // A skipped number was never a stream, nor was an even one.
        return number >= self.unbrokenFrom && number & 1 == 1 ? .streamClosed : .protocolError
    }
}

/// Counts the bytes of partly received requests of one connection.
package struct HeldBytes {
    /// The number of bytes held.
    package private(set) var count = 0
    /// The number of those bytes that belong to the field block being read.
    private var ofBlock = 0
    /// The number of bytes that the count of all connections includes.
    private var counted = 0

    /// Creates the counters with no bytes held.
    package init() {}

    package mutating func hold(_ bytes: Int) {
        self.count += bytes
    }

    package mutating func letGo(_ bytes: Int) {
        self.count -= bytes
    }

    /// Counts the bytes of the block, which were not counted before.
    package mutating func holdBlock(_ bytes: Int) {
        self.ofBlock = bytes
        self.count += bytes
    }

    /// Removes the bytes of the block, when the block continues or the connection has ended.
    @inline(__always)
    package mutating func letGoOfBlock() {
        self.count -= self.ofBlock
        self.ofBlock = 0
    }

    /// Returns the limit that `bytes` more would exceed.
    ///
    /// - Parameters:
    ///   - bytes: the number of additional bytes.
    ///   - connectionMax: the most bytes of one connection.
    ///   - all: the counter of all connections.
    @inline(__always)
    package func shortage(for bytes: Int, connectionMax: Int, all: RequestBytes) -> RequestShortage {
        if self.count + bytes > connectionMax { return .connection }
        return all.hasRoom(for: self.count - self.counted + bytes) ? .none : .server
    }

    /// Updates the counter of all loops, once per read, and never for a request that arrives in one read.
    @inline(__always)
    package mutating func tell(_ all: RequestBytes) {
        guard self.count != self.counted else { return }
        all.change(by: self.count - self.counted)
        self.counted = self.count
    }
}

/// The treatment of open streams when a connection sends GOAWAY.
package enum StreamsInFlight: Hashable, Sendable {
    /// The streams are answered, and then the connection ends.
    case finished
    /// The streams are answered, and GOAWAY follows the answers, because some clients stop reading when they see it.
    /// Requests that arrive before GOAWAY is sent are answered as well.
    case answeredFirst
    /// Like `answeredFirst`, and a GOAWAY with the largest stream number is sent at least a second earlier: the
    /// requests that the peer sends until it sees that frame are answered, too (RFC 9113 section 6.8).
    case announcedFirst
    /// The streams from this number on are refused, so that their client may retry elsewhere. Older streams are
    /// answered.
    case refused(from: Int32)
    /// The connection ends with GOAWAY, and the client cannot know the results of open requests.
    case dropped
}

/// The GOAWAY frames sent and pending on a connection.
package struct Departure {
    /// A GOAWAY frame that is sent after the answers to the open requests.
    package struct Farewell {
        package let debugData: [UInt8]
        package let code: HTTP2ErrorCode
        /// The time when it was requested, in monotonic milliseconds.
        fileprivate let since: Int64
    }

    /// The time, in milliseconds, for which a farewell waits until no stream is open. Afterwards it waits only for
    /// answers, so that a client that always sends another request gets it, too.
    package static let gracePeriodMilliseconds: Int64 = 1000

    /// The last stream in the GOAWAY frames so far. libnghttp2 accepts further streams until such a frame is sent.
    private var lastTaken = Int32.max
    /// True if a GOAWAY frame with the largest stream number must be sent before the farewell.
    private var isAnnouncementDue = false
    private var farewell: Farewell?
    /// The earliest time of the farewell, in monotonic milliseconds.
    private var leavesFrom = Int64.min

    /// Creates the state before any GOAWAY.
    package init() {}

    /// True if a farewell is pending.
    package var hasFarewell: Bool { self.farewell != nil }

    /// Returns true if the peer may consider a stream accepted.
    package func takes(_ number: Int32) -> Bool { number <= self.lastTaken }

    /// Returns the last stream that a GOAWAY frame must name now.
    ///
    /// - Parameters:
    ///   - newest: the newest stream that libnghttp2 has accepted.
    ///   - inFlight: the treatment of open streams.
    package func last(newest: Int32, _ inFlight: StreamsInFlight) -> Int32 {
        let last = min(self.lastTaken, newest)
        guard case .refused(let first) = inFlight else { return last }
        return max(0, min(last, first - 2))
    }

    /// Records the last stream that a GOAWAY frame names.
    package mutating func announced(last: Int32) {
        self.lastTaken = last
    }

    /// Schedules a GOAWAY frame after the answers, unless one is pending. Its last stream is chosen when it is sent, so
    /// that all earlier requests are answered.
    ///
    /// - `isAnnounced`: true if a GOAWAY frame with the largest stream number is sent earlier.
    package mutating func wait(debugData: ByteView, code: HTTP2ErrorCode, isAnnounced: Bool = false, now: Int64) {
        guard self.farewell == nil else { return }
        self.farewell = Farewell(debugData: debugData.array, code: code, since: now)
        self.isAnnouncementDue = isAnnounced
    }

    /// Returns true if a pending farewell, or its announcement, may be sent now.
    package func mayLeave(_ open: OpenStreams, now: Int64) -> Bool {
        guard let farewell, now >= self.leavesFrom else { return false }
        guard open.count > 0 else { return true }
        let isWithinGracePeriod = now - farewell.since < Self.gracePeriodMilliseconds
        // The announcement affects no stream, so a stream that stays open does not delay it.
        if self.isAnnouncementDue {
            return open.sending.first == nil && (open.waiting.first == nil || !isWithinGracePeriod)
        }
        return !isWithinGracePeriod && open.waiting.first == nil && open.sending.first == nil
    }

    /// Returns true if the announcement is sent now; the farewell follows a second later at the earliest.
    package mutating func takeAnnouncement(_ open: OpenStreams, now: Int64) -> Bool {
        guard self.isAnnouncementDue, self.mayLeave(open, now: now) else { return false }
        self.isAnnouncementDue = false
        self.leavesFrom = now + Self.gracePeriodMilliseconds
        return true
    }

    /// Returns the farewell if it may be sent now, and removes it.
    package mutating func take(_ open: OpenStreams, now: Int64) -> Farewell? {
        guard !self.isAnnouncementDue, self.mayLeave(open, now: now) else { return nil }
        defer { self.farewell = nil }
        return self.farewell
    }
}
