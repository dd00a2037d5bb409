/// A token bucket for frames that cost work and carry no request.
package struct ControlFrameBudget {
    private let burst: Int32
    private let perSecond: Int32
    private var left: Int
    private var filledAt: Int64

    /// - Parameters:
    ///   - burst: the most frames at once.
    ///   - perSecond: the frames added each second.
    ///   - now: monotonic milliseconds.
    package init(burst: Int, perSecond: Int, now: Int64) {
        self.burst = Int32(clamping: burst)
        self.perSecond = Int32(clamping: perSecond)
        self.left = burst
        self.filledAt = now
    }

    /// Adds frames to the budget, such as one for each completely answered request, whose stream clients such as
    /// libcurl then reset needlessly.
    mutating func earned(_ frames: Int = 1) {
        self.left = min(Int(self.burst), self.left + frames)
    }

    /// - Returns: false if the budget is spent.
    package mutating func frameReceived(now: Int64) -> Bool {
        let earned = Int(now - self.filledAt) * Int(self.perSecond) / 1000
        if earned > 0 {
            self.left = min(Int(self.burst), self.left + earned)
            self.filledAt = now
        }
        self.left -= 1
        return self.left >= 0
    }
}

/// The budgets for frames that carry no request.
package struct FrameBudgets {
    private var control: ControlFrameBudget
    /// The budget for WINDOW_UPDATE alone. Peers send one for each stream, and two for every few KiB of DATA.
    private var updates: ControlFrameBudget
    /// The number of CONTINUATION frames of the current field block.
    private var continuations: Int32 = 0

    /// - Parameters:
    ///   - limits: the limits with the burst and the frames added each second.
    ///   - now: monotonic milliseconds.
    package init(_ limits: TransportLimits, now: Int64) {
        self.control = ControlFrameBudget(
            burst: limits.controlFramesBurst,
            perSecond: limits.controlFramesPerSecond,
            now: now
        )
        self.updates = self.control
    }

    /// - Returns: false if the budget is spent.
    package mutating func controlFrameReceived(now: Int64) -> Bool { self.control.frameReceived(now: now) }

    /// - Returns: false if the budget is spent.
    package mutating func updateReceived(now: Int64) -> Bool { self.updates.frameReceived(now: now) }

    /// Starts to count CONTINUATION frames after a HEADERS frame.
    package mutating func blockBegan() {
        self.continuations = 0
    }

    /// Counts a CONTINUATION frame.
    ///
    /// - Parameters:
    ///   - max: the most CONTINUATION frames of one block.
    ///   - now: monotonic milliseconds.
    /// - Returns: the limit that the frame exceeds; nil if it exceeds none.
    package mutating func continuationReceived(max: Int, now: Int64) -> TransportLimit? {
        self.continuations += 1
        if Int(self.continuations) > max { return .continuationFramesMax }
        return self.control.frameReceived(now: now) ? nil : .controlFramesPerSecond
    }

    /// Adds a WINDOW_UPDATE frame to the budget for a new stream, whose window the peer may enlarge.
    package mutating func streamTaken() {
        self.updates.earned()
    }

    /// Adds a frame to the budget for a stream that ended normally, which the peer may still reset.
    package mutating func streamClosed() {
        self.control.earned()
    }

    /// Adds WINDOW_UPDATE frames to the budget for DATA that is sent, for which the peer enlarges its windows.
    package mutating func dataLeaves(_ bytes: Int) {
        self.updates.earned(2 + (bytes >> 11))
    }
}

/// The number of streams a peer may have open at once: the numbers announced and the number enforced.
///
/// A new number binds the peer from its acknowledgement on (RFC 9113 §6.5.3). Until then the larger of the old and the
/// new number is enforced. The first number is enforced from the start, because peers should wait for it.
package struct StreamLimit {
    /// The maximum number of unacknowledged numbers.
    package static let unacknowledgedMax = 32

    /// The number of open streams above which new ones are refused.
    package private(set) var enforced: Int
    private var acknowledgedLimit: Int
    /// The numbers that the peer has not acknowledged, the oldest first; the newest may be unsent.
    private var unacknowledged: [Int]
    /// True if a number is not yet sent.
    package var isUnsent: Bool { self.unsentCount > 0 }
    /// The count of unsent numbers at the end of `unacknowledged`.
    private var unsentCount: UInt8 = 1
    /// The number of acknowledgements that arrived before their SETTINGS frame was sent. Some clients send one with
    /// their preface.
    private var earlyCount: UInt8 = 0
    /// The time since which the peer owes an acknowledgement, in monotonic milliseconds; nil if it owes none.
    package private(set) var owedSince: Int64?

    /// True if the peer knows the current limit, so that a stream beyond it is the peer's fault.
    package var isAcknowledged: Bool { self.unacknowledged.isEmpty }

    /// - Parameter limit: the number in the first SETTINGS frame.
    package init(_ limit: Int) {
        self.enforced = limit
        self.acknowledgedLimit = limit
        self.unacknowledged = [limit]
    }

    /// Announces another number with a separate SETTINGS frame.
    ///
    /// - Returns: false if too many numbers are unacknowledged.
    package mutating func change(to limit: Int) -> Bool {
        guard self.unacknowledged.count < Self.unacknowledgedMax else { return false }
        self.unacknowledged.append(limit)
        self.unsentCount += 1
        self.enforced = max(self.enforced, limit)
        return true
    }

    /// Announces the newest number again, in a SETTINGS frame with another setting.
    ///
    /// - Returns: false if too many numbers are unacknowledged.
    package mutating func repeatNewest() -> Bool { self.change(to: self.unacknowledged.last ?? self.acknowledgedLimit) }

    /// Records that a SETTINGS frame is sent.
    ///
    /// - Returns: the number for the frame; nil if none is unsent.
    package mutating func sent(now: Int64) -> Int? {
        guard self.unsentCount > 0 else { return nil }
        let limit = self.unacknowledged[self.unacknowledged.count - Int(self.unsentCount)]
        self.unsentCount -= 1
        self.owedSince = self.owedSince ?? now
        if self.earlyCount > 0 {
            self.earlyCount -= 1
            self.acknowledged(now: now)
        }
        return limit
    }

    /// Records that the peer has acknowledged its oldest unacknowledged SETTINGS frame.
    package mutating func acknowledged(now: Int64) {
        guard self.unacknowledged.count > Int(self.unsentCount) else {
            self.earlyCount = min(self.earlyCount + 1, self.unsentCount)
            return
        }
        self.acknowledgedLimit = self.unacknowledged.removeFirst()
        self.enforced = self.unacknowledged.reduce(self.acknowledgedLimit, max)
        self.owedSince = self.unacknowledged.count > Int(self.unsentCount) ? now : nil
        // Most connections announce nothing more, so the memory of the list is freed.
        if self.unacknowledged.isEmpty { self.unacknowledged = [] }
    }
}

/// The timer of a connection's PING frames and their answers.
package struct PingTimer {
    /// The action that is due.
    package enum Action: Hashable, Sendable {
        case wait
        case send
        /// The answer is overdue; the peer counts as gone.
        case peerIsGone
    }

    /// The tolerance for a PING that is nearly due, in milliseconds: timers run once a second and may be late by a turn
    /// of the loop.
    private static let nearMilliseconds: Int64 = 2000

    private var everyMilliseconds: Int64?
    private var isUnanswered = false
    private var sentAt: Int64

    /// - Parameter now: monotonic milliseconds, as in all methods.
    package init(now: Int64) {
        self.sentAt = now
    }

    /// Sets the interval of PING frames.
    ///
    /// - `seconds`: the time from one PING to the next; nil for none. The first PING is due that long after `now`.
    package mutating func intervalChanged(seconds: Int?, now: Int64) {
        if self.everyMilliseconds == nil && !self.isUnanswered { self.sentAt = now }
        self.everyMilliseconds = seconds.map { Int64($0) * 1000 }
    }

    /// Records the peer's answer to the PING.
    package mutating func answered() {
        self.isUnanswered = false
    }

    /// Returns true if a PING must be sent with other bytes for the peer. It is sent with them if nearly due, so that
    /// thousands of kept-alive connections are written to once instead of twice.
    ///
    /// - Returns: true to send one.
    package mutating func bytesQueued(now: Int64) -> Bool {
        guard !self.isUnanswered, let everyMilliseconds, now - self.sentAt >= everyMilliseconds - Self.nearMilliseconds
        else { return false }
        self.sentAt = now
        self.isUnanswered = true
        return true
    }

    /// Returns the time of the next action of `timePassed` if nothing happens before; `Int64.max` for never.
    ///
    /// - Parameter answerSeconds: the time the peer has for its answer.
    func dueAt(answerSeconds: Int) -> Int64 {
        if self.isUnanswered { return self.sentAt + Int64(answerSeconds) * 1000 + 1 }
        return self.everyMilliseconds.map { self.sentAt + $0 } ?? .max
    }

    /// Returns the action that is due at `now`.
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
