package import Wire

/// The open streams of one connection, by phase, each phase oldest first.
package struct OpenStreams {
    /// The streams whose requests have not ended.
    private(set) var receiving = StreamList()
    /// The streams that the handler has: not answered, or streaming.
    private(set) var waiting = StreamList()
    /// The streams whose answers are known and on their way.
    private(set) var sending = StreamList()
    /// The stream whose field block is being read, or whose data came last; nil when it is gone, or never was.
    var current: StreamSlot?
    /// Since when there has been none, in monotonic milliseconds; means nothing while there is one.
    package var idleSince: Int64

    /// - Parameter now: monotonic milliseconds.
    package init(now: Int64) {
        self.idleSince = now
    }

    package var count: Int { self.receiving.count + self.waiting.count + self.sending.count }

    /// Any open stream.
    package var first: StreamSlot? { self.receiving.first ?? self.waiting.first ?? self.sending.first }

    /// A stream, if it is one that is likely asked for; nil says nothing.
    @inline(__always)
    package func find(_ number: Int32) -> StreamSlot? {
        if let current = self.current, current.state.number == number { return current }
        // Bodies, answers and ends mostly come in the order of the requests.
        if let oldest = self.receiving.first, oldest.state.number == number { return oldest }
        if let oldest = self.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.sending.first, oldest.state.number == number { return oldest }
        return nil
    }

    /// A stream has begun, whose block is being read.
    package mutating func begin(_ slot: StreamSlot) {
        self.append(slot)
        self.current = slot
    }

    /// A stream has ended.
    ///
    /// - Parameters:
    ///   - slot: where it is, in the phase it was in.
    ///   - now: monotonic milliseconds.
    package mutating func end(_ slot: StreamSlot, now: Int64) {
        self.remove(slot)
        if self.current == slot { self.current = nil }
        if self.count == 0 { self.idleSince = now }
    }

    /// - Parameters:
    ///   - slot: an open stream.
    ///   - phase: the one that begins.
    ///   - now: monotonic milliseconds; the phase begins then.
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

/// Which stream numbers a peer may still use (RFC 9113 §5.1.1: those of new streams only grow).
///
/// libnghttp2 ignores HEADERS and DATA on every stream that is gone, since more of a request may be under way to one
/// that we have reset. Where that cannot be, they are a fault.
package struct StreamNumbers {
    /// How many streams that were cut short are remembered one by one.
    package static let cutShortMax = 64

    private var newest: Int32 = -1
    private var newestResetByPeer: Int32 = 0
    /// The odd numbers from here to the newest have all been used.
    private var unbrokenFrom: Int32 = 1
    /// The streams that we closed last before their requests had ended, in a ring.
    private var cutShort: [Int32] = []
    /// The place in the ring that is taken next, when it is full.
    private var oldestCutShort = 0
    /// The highest number that has left the ring: of those up to it nothing more is known, and all are let pass.
    private var forgotten: Int32 = 0

    /// The numbers of a connection on which no stream was opened.
    package init() {}

    /// A stream was opened, whose number is higher than any before it.
    package mutating func opened(_ number: Int32) {
        if number != self.newest + 2 { self.unbrokenFrom = number }
        self.newest = number
    }

    /// The stream was closed before its request had ended: more of it may still come, unless the peer closed it.
    package mutating func cutShort(_ number: Int32) {
        guard number != self.newestResetByPeer else { return }
        guard self.cutShort.count == Self.cutShortMax else { return self.cutShort.append(number) }
        self.forgotten = max(self.forgotten, self.cutShort[self.oldestCutShort])
        self.cutShort[self.oldestCutShort] = number
        self.oldestCutShort = (self.oldestCutShort + 1) % Self.cutShortMax
    }

    /// The peer has sent RST_STREAM, and so sends nothing more on the stream.
    package mutating func resetByPeer(_ number: Int32) {
        self.newestResetByPeer = number
        guard !self.cutShort.isEmpty, let place = self.cutShort.firstIndex(of: number) else { return }
        // No stream has this number.
        self.cutShort[place] = 0
    }

    /// Returns true if the latest RST_STREAM of the peer was for this stream.
    func isNewestReset(_ number: Int32) -> Bool { number == self.newestResetByPeer }

    /// Whether HEADERS on `number` open no new stream.
    func isUsed(_ number: Int32) -> Bool { number <= self.newest }

    /// Whether more of a request may be under way on `number`, whose stream is gone.
    package func mayGoOn(_ number: Int32) -> Bool { number <= self.forgotten || self.cutShort.contains(number) }

    /// - Returns: the rule that HEADERS on `number` break unless that stream is open; nil when they break none, or more
    ///   of a request may be under way.
    package func faultUnlessOpen(_ number: Int32) -> HTTP2ErrorCode? {
        guard self.isUsed(number), !self.mayGoOn(number) else { return nil }
        // A number that was skipped, or is not a client's, never was a stream.
        return number >= self.unbrokenFrom && number & 1 == 1 ? .streamClosed : .protocolError
    }
}

/// The bytes of the requests of one connection that have arrived in part.
package struct HeldBytes {
    /// How many are held.
    package private(set) var count = 0
    /// What of them is of the field block that is being read.
    private var ofBlock = 0
    /// What of them is counted with all others'.
    private var counted = 0

    /// None is held.
    package init() {}

    package mutating func hold(_ bytes: Int) {
        self.count += bytes
    }

    package mutating func letGo(_ bytes: Int) {
        self.count -= bytes
    }

    /// So many are of the block, none of which was held.
    package mutating func holdBlock(_ bytes: Int) {
        self.ofBlock = bytes
        self.count += bytes
    }

    /// The block goes on, or the connection has ended.
    @inline(__always)
    package mutating func letGoOfBlock() {
        self.count -= self.ofBlock
        self.ofBlock = 0
    }

    /// What there is no room in for so many more.
    ///
    /// - Parameters:
    ///   - bytes: how many more.
    ///   - connectionMax: the most of one connection.
    ///   - all: those of all connections.
    @inline(__always)
    package func shortage(for bytes: Int, connectionMax: Int, all: RequestBytes) -> RequestShortage {
        if self.count + bytes > connectionMax { return .connection }
        return all.hasRoom(for: self.count - self.counted + bytes) ? .none : .server
    }

    /// Brings the count of all loops up to date: once a read, and not at all for requests that came whole.
    @inline(__always)
    package mutating func tell(_ all: RequestBytes) {
        guard self.count != self.counted else { return }
        all.change(by: self.count - self.counted)
        self.counted = self.count
    }
}

/// What becomes of the streams that are open when a connection is told to go away.
package enum StreamsInFlight: Hashable, Sendable {
    /// The streams are answered, and then the connection ends.
    case finished
    /// The streams are answered, and the GOAWAY frame leaves behind their answers: some clients read nothing more of
    /// any stream once they have seen one. Requests that come meanwhile are taken and answered as well.
    case answeredFirst
    /// As `answeredFirst`, and a second before that frame leaves another one that names no last stream: requests that
    /// the peer sends before it has seen the first are answered, not refused (RFC 9113 section 6.8).
    case announcedFirst
    /// The stream of this number and those opened after it come to nothing, which their client is told: it may ask
    /// again elsewhere. Older ones are answered.
    case refused(from: Int32)
    /// The connection ends with the GOAWAY frame, and their client cannot know what became of them.
    case dropped
}

/// What the peer was told, or will be, of the connection's end.
package struct Departure {
    /// A GOAWAY frame that leaves behind the answers to the requests that are on the connection.
    package struct Farewell {
        package let debugData: [UInt8]
        package let code: HTTP2ErrorCode
        /// When it was asked for, in monotonic milliseconds.
        fileprivate let since: Int64
    }

    /// How long a farewell waits for a moment without any request; from then on only for answers that are owed, so that
    /// a client that always has another request on its way is told as well.
    package static let patienceMilliseconds: Int64 = 1000

    /// The newest stream that a GOAWAY frame lets the peer believe in. The library takes further ones until that frame
    /// has left.
    private var lastTaken = Int32.max
    private var farewell: Farewell?
    /// True if a GOAWAY frame without a last stream is to leave before the farewell.
    private var isAnnouncementDue = false
    /// The farewell's earliest moment, in monotonic milliseconds.
    private var leavesFrom = Int64.min

    /// The peer was told nothing.
    package init() {}

    /// Whether a farewell waits.
    package var hasFarewell: Bool { self.farewell != nil }

    /// Whether the peer may believe that a stream is taken.
    package func takes(_ number: Int32) -> Bool { number <= self.lastTaken }

    /// The last stream that a GOAWAY frame of this moment is to name.
    ///
    /// - Parameters:
    ///   - newest: the newest one that the library has taken.
    ///   - inFlight: what becomes of those that are open.
    package func last(newest: Int32, _ inFlight: StreamsInFlight) -> Int32 {
        let last = min(self.lastTaken, newest)
        guard case .refused(let first) = inFlight else { return last }
        return max(0, min(last, first - 2))
    }

    /// The peer is told of the last stream that it may believe in.
    package mutating func told(last: Int32) {
        self.lastTaken = last
    }

    /// A GOAWAY frame is to leave behind the answers, unless one waits already. It is made when it leaves: a request
    /// that is read before that is among those it answers for.
    ///
    /// - `isAnnounced`: true if a GOAWAY frame that names no last stream leaves before it.
    package mutating func wait(debugData: ByteView, code: HTTP2ErrorCode, isAnnounced: Bool = false, now: Int64) {
        guard self.farewell == nil else { return }
        self.farewell = Farewell(debugData: debugData.array, code: code, since: now)
        self.isAnnouncementDue = isAnnounced
    }

    /// Returns true if a pending farewell, or its announcement, may be sent now.
    package func mayLeave(_ open: OpenStreams, now: Int64) -> Bool {
        guard let farewell, now >= self.leavesFrom else { return false }
        guard open.count > 0 else { return true }
        let isPatient = now - farewell.since < Self.patienceMilliseconds
        // A stream that stays open does not hold up the announcement, which leaves it alone.
        if self.isAnnouncementDue { return open.sending.first == nil && (open.waiting.first == nil || !isPatient) }
        return !isPatient && open.waiting.first == nil && open.sending.first == nil
    }

    /// Returns true if the announcement leaves now; the farewell follows a second later at the earliest.
    package mutating func takeAnnouncement(_ open: OpenStreams, now: Int64) -> Bool {
        guard self.isAnnouncementDue, self.mayLeave(open, now: now) else { return false }
        self.isAnnouncementDue = false
        self.leavesFrom = now + Self.patienceMilliseconds
        return true
    }

    /// The farewell that may leave, which then waits no more.
    package mutating func take(_ open: OpenStreams, now: Int64) -> Farewell? {
        guard !self.isAnnouncementDue, self.mayLeave(open, now: now) else { return nil }
        defer { self.farewell = nil }
        return self.farewell
    }
}
