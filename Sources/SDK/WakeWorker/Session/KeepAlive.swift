/// Who wants a wake to be kept alive, and when more time is asked for next. Milliseconds on the caller's clock.
package struct KeepAlive: Hashable, Sendable {
    /// How much time is asked for at once.
    package static let extensionLength: Int64 = 30_000
    /// How long until another try after one that brought no answer.
    package static let retry: Int64 = 1000

    private var holders = 0
    private var isAsking = false
    private var isRefused = false
    private var askAt: Int64?

    /// Nobody wants it to be kept alive yet.
    package init() {}

    /// When `momentReached` is due; nil for never.
    package var nextMoment: Int64? { self.holders > 0 && !self.isAsking && !self.isRefused ? self.askAt : nil }

    package mutating func begun(deadline: Int64) {
        self.holders += 1
        if self.holders == 1 { self.askAt = deadline - Self.extensionLength / 2 }
    }

    package mutating func ended() {
        self.holders = max(0, self.holders - 1)
    }

    /// - Returns: whether more time is to be asked for.
    package mutating func momentReached(now: Int64) -> Bool {
        guard let moment = self.nextMoment, moment <= now else { return false }
        self.isAsking = true
        return true
    }

    /// The gateway gave more time, whoever asked.
    package mutating func extended(to deadline: Int64) {
        self.isAsking = false
        self.askAt = deadline - Self.extensionLength / 2
    }

    /// No answer came.
    package mutating func unanswered(now: Int64) {
        self.isAsking = false
        self.askAt = now + Self.retry
    }

    /// The gateway gives no more.
    package mutating func refused() {
        self.isAsking = false
        self.isRefused = true
    }
}
