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
