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
