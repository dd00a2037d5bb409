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
