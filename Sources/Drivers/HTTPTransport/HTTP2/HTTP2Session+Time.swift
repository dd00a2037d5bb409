internal import Bytes

extension HTTP2Session {
    /// - Parameter seconds: the time from one PING to the next; nil for none.
    package func setPing(everySeconds seconds: Int?) {
        self.ping.set(everySeconds: seconds, now: self.memory.now)
    }

    /// Lets time pass: refuses what took too long, sends PINGs.
    ///
    /// - Returns: false when the peer is gone.
    package func secondPassed() -> Bool {
        let now = self.memory.now
        let limits = self.memory.limits
        if now >= self.frameDueAt { self.endByLimit(.requestSeconds) }
        if now >= self.acknowledgementDueAt { self.endByLimit(.requestSeconds, .settingsTimeout) }
        // With the connection its streams end.
        if !self.isEndedByLimit {
            self.resetOverdue(self.open.receiving, .requestSeconds, seconds: limits.requestSeconds)
            self.resetOverdue(self.open.sending, .responseSeconds, seconds: limits.responseSeconds)
        }
        if self.open.count == 0 && now - self.idleSince > Int64(limits.idleSeconds) * 1000 {
            self.idleSince = now
            self.memory.tally.met(.idleSeconds)
            self.goAway(debugData: ByteView("{\"reason\":\"IdleTimeout\"}"))
        }
        switch self.ping.timePassed(now: now, answerSeconds: limits.pingSeconds) {
        case .wait: ()
        case .send: self.seam.submitPing()
        case .peerIsGone: return false
        }
        return true
    }

    private func resetOverdue(_ list: StreamList, _ limit: TransportLimit, seconds: Int) {
        var slot = list.first
        while let overdue = slot, self.memory.now - overdue.state.since > Int64(seconds) * 1000 {
            self.memory.tally.met(limit)
            self.refuse(overdue.state.number, .cancel)
            slot = overdue.state.next
        }
    }

    /// When a frame or field block that has begun must have ended; `Int64.max` when none has.
    private var frameDueAt: Int64 {
        self.unfinished.number == 0 ? .max : self.afterRequestSeconds(from: self.unfinished.since)
    }

    /// When the peer must have acknowledged a SETTINGS frame of ours; `Int64.max` when it owes none.
    private var acknowledgementDueAt: Int64 {
        self.streamLimit.owedSince.map { self.afterRequestSeconds(from: $0) } ?? .max
    }

    private func afterRequestSeconds(from start: Int64) -> Int64 {
        start + Int64(self.memory.limits.requestSeconds) * 1000 + 1
    }

    /// When `secondPassed` will next have something to do, if nothing is read or written before.
    package var isQuietUntil: Int64 {
        guard self.hasReceivedFrame, self.open.receiving.first == nil, self.open.sending.first == nil,
            self.farewell == nil
        else { return 0 }
        let limits = self.memory.limits
        let idle = self.open.count == 0 ? self.idleSince + Int64(limits.idleSeconds) * 1000 + 1 : .max
        let due = min(self.frameDueAt, self.acknowledgementDueAt)
        return min(idle, due, self.ping.dueAt(answerSeconds: limits.pingSeconds))
    }
}
