/// The open streams of one connection, by phase, each phase oldest first.
struct OpenStreams {
    /// Their requests have not ended.
    private(set) var receiving = StreamList()
    /// The handler has them: not answered, or streaming.
    private(set) var waiting = StreamList()
    /// Their answers are known and on their way.
    private(set) var sending = StreamList()

    var count: Int { self.receiving.count + self.waiting.count + self.sending.count }

    /// Any of them.
    var first: StreamSlot? { self.receiving.first ?? self.waiting.first ?? self.sending.first }

    mutating func append(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.append(slot)
        case .waiting, .streaming: self.waiting.append(slot)
        case .sending: self.sending.append(slot)
        case .free: ()
        }
    }

    mutating func remove(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.remove(slot)
        case .waiting, .streaming: self.waiting.remove(slot)
        case .sending: self.sending.remove(slot)
        case .free: ()
        }
    }

    /// - Parameter now: monotonic milliseconds; the phase begins then.
    mutating func move(_ slot: StreamSlot, to phase: StreamState.Phase, now: Int64) {
        self.remove(slot)
        slot.state.phase = phase
        slot.state.since = now
        self.append(slot)
    }
}
