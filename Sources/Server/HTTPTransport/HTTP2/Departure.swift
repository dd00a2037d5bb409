package import Wire

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
