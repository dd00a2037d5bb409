/// How many frames that cost us work and carry no request a peer may still send: a bucket that fills with time.
package struct ControlFrameBudget {
    private let burst: Int
    private let perSecond: Int
    private var left: Int
    private var filledAt: Int64

    /// - Parameters:
    ///   - burst: frames that may come at once.
    ///   - perSecond: frames added a second.
    ///   - now: monotonic milliseconds.
    package init(burst: Int, perSecond: Int, now: Int64) {
        self.burst = burst
        self.perSecond = perSecond
        self.left = burst
        self.filledAt = now
    }

    /// The peer may send more of them: a request was answered in full, after which clients such as libcurl reset its
    /// stream, as harmless as it is needless; or it was sent something that it has to answer.
    mutating func earned(_ frames: Int = 1) {
        self.left = min(self.burst, self.left + frames)
    }

    /// - Returns: false when the budget is spent.
    package mutating func frameReceived(now: Int64) -> Bool {
        let earned = Int(now - self.filledAt) * self.perSecond / 1000
        if earned > 0 {
            self.left = min(self.burst, self.left + earned)
            self.filledAt = now
        }
        self.left -= 1
        return self.left >= 0
    }
}

/// What a peer may still send on a connection that carries no request.
package struct FrameBudgets {
    private var control: ControlFrameBudget
    /// For WINDOW_UPDATE alone, of which peers send one a stream, and two for each few KiB of DATA.
    private var updates: ControlFrameBudget
    /// The CONTINUATION frames of the present field block.
    private var continuations = 0

    /// - Parameters:
    ///   - limits: of which the burst, and how many more a second.
    ///   - now: monotonic milliseconds.
    package init(_ limits: TransportLimits, now: Int64) {
        self.control = ControlFrameBudget(
            burst: limits.controlFramesBurst,
            perSecond: limits.controlFramesPerSecond,
            now: now
        )
        self.updates = self.control
    }

    /// - Returns: false when the budget is spent.
    package mutating func controlFrameReceived(now: Int64) -> Bool { self.control.frameReceived(now: now) }

    /// - Returns: false when the budget is spent.
    package mutating func updateReceived(now: Int64) -> Bool { self.updates.frameReceived(now: now) }

    /// HEADERS have come, which CONTINUATION frames may follow.
    package mutating func blockBegan() {
        self.continuations = 0
    }

    /// A CONTINUATION frame has come.
    ///
    /// - Parameters:
    ///   - max: the most of one block.
    ///   - now: monotonic milliseconds.
    /// - Returns: the bound that it is beyond; nil when it is within all.
    package mutating func continuationReceived(max: Int, now: Int64) -> TransportLimit? {
        self.continuations += 1
        if self.continuations > max { return .continuationFramesMax }
        return self.control.frameReceived(now: now) ? nil : .controlFramesPerSecond
    }

    /// A stream was taken, of which the peer may enlarge the window.
    package mutating func streamTaken() {
        self.updates.earned()
    }

    /// A stream was closed in order, which the peer may reset nevertheless.
    package mutating func streamClosed() {
        self.control.earned()
    }

    /// DATA leaves, for which the peer enlarges its windows.
    package mutating func dataLeaves(_ bytes: Int) {
        self.updates.earned(2 + (bytes >> 11))
    }
}

/// How many streams a peer may have open at once: what it was told, and what it is held to.
///
/// A peer must keep to a number once it has acknowledged it (RFC 9113 §6.5.3); until then the larger of two holds. The
/// first number holds from the start, as peers do well to wait for it.
package struct StreamLimit {
    /// The most numbers that may wait for their acknowledgement; then no other is announced.
    package static let unacknowledgedMax = 32

    /// The streams beyond which others are refused.
    package private(set) var enforced: Int
    /// Whether a number waits to be sent.
    package private(set) var isUnsent = true

    private var acknowledgedLimit: Int
    /// What the peer was told, or will be, and has not acknowledged, oldest first.
    private var unacknowledged: [Int]
    /// How many of them, the newest, have not been sent.
    private var unsentCount = 1
    /// The acknowledgements that came before what they are for had been sent: some clients begin with a fixed text that
    /// has one in it.
    private var earlyCount = 0
    /// Since when the peer owes an acknowledgement and has sent none, in monotonic milliseconds; nil when it owes none.
    package private(set) var owedSince: Int64?

    /// True if the peer knows the present limit, so that a stream beyond it is the peer's fault.
    package var isAcknowledged: Bool { self.unacknowledged.isEmpty }

    /// - Parameter limit: what the first SETTINGS frame says.
    package init(_ limit: Int) {
        self.enforced = limit
        self.acknowledgedLimit = limit
        self.unacknowledged = [limit]
    }

    /// Announces another number with a SETTINGS frame of its own.
    ///
    /// - Returns: false when too many numbers are not acknowledged.
    package mutating func change(to limit: Int) -> Bool {
        guard self.unacknowledged.count < Self.unacknowledgedMax else { return false }
        self.unacknowledged.append(limit)
        self.unsentCount += 1
        self.isUnsent = true
        self.enforced = max(self.enforced, limit)
        return true
    }

    /// Announces the newest number again, in a SETTINGS frame that has another setting besides.
    ///
    /// - Returns: false when too many numbers are not acknowledged.
    package mutating func repeatNewest() -> Bool { self.change(to: self.unacknowledged.last ?? self.acknowledgedLimit) }

    /// A SETTINGS frame of ours leaves.
    ///
    /// - Returns: the number that it has to carry; nil when none waits.
    package mutating func sent(now: Int64) -> Int? {
        guard self.unsentCount > 0 else { return nil }
        let limit = self.unacknowledged[self.unacknowledged.count - self.unsentCount]
        self.unsentCount -= 1
        self.isUnsent = self.unsentCount > 0
        self.owedSince = self.owedSince ?? now
        if self.earlyCount > 0 {
            self.earlyCount -= 1
            self.acknowledged(now: now)
        }
        return limit
    }

    /// The peer has acknowledged the oldest SETTINGS frame that it had not.
    package mutating func acknowledged(now: Int64) {
        guard self.unacknowledged.count > self.unsentCount else {
            self.earlyCount = min(self.earlyCount + 1, self.unsentCount)
            return
        }
        self.acknowledgedLimit = self.unacknowledged.removeFirst()
        self.enforced = self.unacknowledged.reduce(self.acknowledgedLimit, max)
        self.owedSince = self.unacknowledged.count > self.unsentCount ? now : nil
    }
}

/// When a connection's next PING is due, and whether its peer has answered the last one.
package struct PingTimer {
    /// What is to be done when time has passed.
    package enum Action: Hashable, Sendable {
        case wait
        case send
        /// The answer is overdue.
        case peerIsGone
    }

    /// What is kept by the second may be due a second, and a turn of the loop, later than what it is due with.
    private static let nearMilliseconds: Int64 = 2000

    private var everyMilliseconds: Int64?
    private var sentAt: Int64
    private var isUnanswered = false

    /// - Parameter now: monotonic milliseconds, as everywhere here.
    package init(now: Int64) {
        self.sentAt = now
    }

    /// How often PINGs are due was set.
    ///
    /// - `seconds`: the time from one PING to the next; nil for none. The first is due that long after `now`.
    package mutating func intervalChanged(seconds: Int?, now: Int64) {
        if self.everyMilliseconds == nil && !self.isUnanswered { self.sentAt = now }
        self.everyMilliseconds = seconds.map { Int64($0) * 1000 }
    }

    /// The peer has answered the PING.
    package mutating func answered() {
        self.isUnanswered = false
    }

    /// Something else is being sent to the peer. A PING that is nearly due goes with it: of the thousands of streams
    /// that are kept alive, each is then written to once where it would be twice.
    ///
    /// - Returns: whether to send one.
    package mutating func bytesQueued(now: Int64) -> Bool {
        guard !self.isUnanswered, let everyMilliseconds, now - self.sentAt >= everyMilliseconds - Self.nearMilliseconds
        else { return false }
        self.sentAt = now
        self.isUnanswered = true
        return true
    }

    /// When `timePassed` will next have something to do, if nothing happens before; `Int64.max` for never.
    ///
    /// - Parameter answerSeconds: the time the peer has for its answer.
    func dueAt(answerSeconds: Int) -> Int64 {
        if self.isUnanswered { return self.sentAt + Int64(answerSeconds) * 1000 + 1 }
        return self.everyMilliseconds.map { self.sentAt + $0 } ?? .max
    }

    /// Time has passed.
    ///
    /// - `answerSeconds`: the time the peer has for its answer.
    package mutating func timePassed(now: Int64, answerSeconds: Int) -> Action {
        if self.isUnanswered { return now - self.sentAt <= Int64(answerSeconds) * 1000 ? .wait : .peerIsGone }
        guard let everyMilliseconds, now - self.sentAt >= everyMilliseconds else { return .wait }
        self.sentAt = now
        self.isUnanswered = true
        return .send
    }
}
