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
