extension HTTP2Session {
    /// When `secondPassed` will next have something to do, if nothing is read or written before.
    var isQuietUntil: Int64 {
        guard self.hasReceivedFrame, self.open.receiving.first == nil, self.open.sending.first == nil else { return 0 }
        let limits = self.core.limits
        let idle = self.open.count == 0 ? self.idleSince + Int64(limits.idleSeconds) * 1000 + 1 : .max
        return min(idle, self.ping.dueAt(answerSeconds: limits.pingSeconds))
    }
}
