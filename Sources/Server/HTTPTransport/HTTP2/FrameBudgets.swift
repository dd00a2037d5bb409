/// A token bucket for frames that cost work and carry no request.
package struct ControlFrameBudget {
    private let burst: Int32
    private let perSecond: Int32
    private var left: Int
    private var filledAt: Int64

    /// - Parameters:
    ///   - burst: the maximum number of frames at once.
    ///   - perSecond: the number of frames added to the budget each second.
    ///   - now: the time in monotonic milliseconds.
    package init(burst: Int, perSecond: Int, now: Int64) {
        self.burst = Int32(clamping: burst)
        self.perSecond = Int32(clamping: perSecond)
        self.left = burst
        self.filledAt = now
    }

    /// Adds frames to the budget. For example, a completely answered request adds one, because clients such as libcurl
    /// then reset its stream needlessly.
    mutating func earned(_ frames: Int = 1) {
        self.left = min(Int(self.burst), self.left + frames)
    }

    /// Takes one frame from the budget.
    ///
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
    /// The budget for WINDOW_UPDATE frames. Peers send one for each stream, and two for every few KiB of DATA.
    private var updates: ControlFrameBudget
    /// The number of CONTINUATION frames of the current field block.
    private var continuations: Int32 = 0

    /// - Parameters:
    ///   - limits: the limits, with the burst and the number of frames added each second.
    ///   - now: the time in monotonic milliseconds.
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

    /// Starts to count CONTINUATION frames, after a HEADERS frame.
    package mutating func blockBegan() {
        self.continuations = 0
    }

    /// Counts a CONTINUATION frame.
    ///
    /// - Parameters:
    ///   - max: the maximum number of CONTINUATION frames in one block.
    ///   - now: the time in monotonic milliseconds.
    /// - Returns: the limit that the frame exceeds; nil if it exceeds none.
    package mutating func continuationReceived(max: Int, now: Int64) -> TransportLimit? {
        self.continuations += 1
        if Int(self.continuations) > max { return .continuationFramesMax }
        return self.control.frameReceived(now: now) ? nil : .controlFramesPerSecond
    }

    /// Adds a WINDOW_UPDATE frame to the budget, because the peer may enlarge the window of a new stream.
    package mutating func streamTaken() {
        self.updates.earned()
    }

    /// Adds a frame to the budget, because the peer may reset a stream that has ended normally.
    package mutating func streamClosed() {
        self.control.earned()
    }

    /// Adds WINDOW_UPDATE frames to the budget, because the peer enlarges its windows after receiving DATA.
    package mutating func dataLeaves(_ bytes: Int) {
        self.updates.earned(2 + (bytes >> 11))
    }
}

/// The maximum number of streams that a peer may have open: the announced limits and the enforced limit.
///
/// A new limit applies to the peer from its acknowledgment (RFC 9113 §6.5.3). Until then, the larger of the old and
/// the new limit is enforced. The first limit is enforced from the start, because peers should wait for it.
package struct StreamLimit {
    /// The maximum number of unacknowledged limits.
    package static let unacknowledgedMax = 32

    /// The number of open streams at which new streams are refused.
    package private(set) var enforced: Int
    private var acknowledgedLimit: Int
    /// The limits that the peer has not acknowledged, the oldest first. The newest limits may be unsent.
    private var unacknowledged: [Int]
    /// True if a limit has not been sent.
    package var isUnsent: Bool { self.unsentCount > 0 }
    /// The number of unsent limits at the end of `unacknowledged`.
    private var unsentCount: UInt8 = 1
    /// The number of acknowledgments that arrived before their SETTINGS frame was sent. Some clients send an
    /// acknowledgment together with their preface.
    private var earlyCount: UInt8 = 0
    /// The time since which an acknowledgment is pending, in monotonic milliseconds; nil if none is pending.
    package private(set) var owedSince: Int64?

    /// True if the peer knows the current limit. A stream above the limit is then the peer's error.
    package var isAcknowledged: Bool { self.unacknowledged.isEmpty }

    /// - Parameter limit: the limit in the first SETTINGS frame.
    package init(_ limit: Int) {
        self.enforced = limit
        self.acknowledgedLimit = limit
        self.unacknowledged = [limit]
    }

    /// Adds a limit, which a separate SETTINGS frame announces.
    ///
    /// - Returns: false if too many limits are unacknowledged.
    package mutating func change(to limit: Int) -> Bool {
        guard self.unacknowledged.count < Self.unacknowledgedMax else { return false }
        self.unacknowledged.append(limit)
        self.unsentCount += 1
        self.enforced = max(self.enforced, limit)
        return true
    }

    /// Adds the newest limit again, which is part of a SETTINGS frame for another setting.
    ///
    /// - Returns: false if too many limits are unacknowledged.
    package mutating func repeatNewest() -> Bool { self.change(to: self.unacknowledged.last ?? self.acknowledgedLimit) }

    /// Records that a SETTINGS frame is being sent.
    ///
    /// - Returns: the limit for the frame; nil if no limit is unsent.
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
        // Free the memory of the list, because most connections announce no further limits.
        if self.unacknowledged.isEmpty { self.unacknowledged = [] }
    }
}

/// The timer of a connection's PING frames and their answers.
package struct PingTimer {
    /// The action that is due.
    package enum Action: Hashable, Sendable {
        case wait
        case send
        /// The answer is overdue, so the peer is considered gone.
        case peerIsGone
    }

    /// The tolerance for a PING that is nearly due, in milliseconds. Timers run once a second, and may be late by one
    /// turn of the loop.
    private static let nearMilliseconds: Int64 = 2000

    private var everyMilliseconds: Int64?
    private var isUnanswered = false
    private var sentAt: Int64

    /// - Parameter now: the time in monotonic milliseconds, as in all methods.
    package init(now: Int64) {
        self.sentAt = now
    }

    /// Sets the interval of PING frames. The first PING is due one interval after `now`.
    ///
    /// - `seconds`: the interval; nil to send no PING frames.
    package mutating func intervalChanged(seconds: Int?, now: Int64) {
        if self.everyMilliseconds == nil && !self.isUnanswered { self.sentAt = now }
        self.everyMilliseconds = seconds.map { Int64($0) * 1000 }
    }

    /// Records the peer's answer to the PING.
    package mutating func answered() {
        self.isUnanswered = false
    }

    /// Records that other bytes are sent to the peer. If a PING is nearly due, it should be sent with them. The loop
    /// then writes once instead of twice to thousands of idle connections.
    ///
    /// - Returns: true if a PING must be sent now.
    package mutating func bytesQueued(now: Int64) -> Bool {
        guard !self.isUnanswered, let everyMilliseconds, now - self.sentAt >= everyMilliseconds - Self.nearMilliseconds
        else { return false }
        self.sentAt = now
        self.isUnanswered = true
        return true
    }

    /// Returns the time of the next action of `timePassed`, unless something happens earlier; `Int64.max` for never.
    ///
    /// - Parameter answerSeconds: the maximum time for the peer's answer.
    func dueAt(answerSeconds: Int) -> Int64 {
        if self.isUnanswered { return self.sentAt + Int64(answerSeconds) * 1000 + 1 }
        return self.everyMilliseconds.map { self.sentAt + $0 } ?? .max
    }

    /// Returns the action that is due at `now`.
    ///
    /// - `answerSeconds`: the maximum time for the peer's answer.
    package mutating func timePassed(now: Int64, answerSeconds: Int) -> Action {
        if self.isUnanswered { return now - self.sentAt <= Int64(answerSeconds) * 1000 ? .wait : .peerIsGone }
        guard let everyMilliseconds, now - self.sentAt >= everyMilliseconds else { return .wait }
        self.sentAt = now
        self.isUnanswered = true
        return .send
    }
}
