/// The open streams of one connection, by phase, each phase oldest first.
package struct OpenStreams {
    /// The streams whose requests have not ended.
    private(set) var receiving = StreamList()
    /// The streams that the handler has: not answered, or streaming.
    private(set) var waiting = StreamList()
    /// The streams whose answers are known and on their way.
    private(set) var sending = StreamList()
    /// The stream whose field block is being read, or whose data came last; nil when it is gone, or never was.
    var current: StreamSlot?
    /// Since when there has been none, in monotonic milliseconds; means nothing while there is one.
    package var idleSince: Int64

    /// - Parameter now: monotonic milliseconds.
    package init(now: Int64) {
        self.idleSince = now
    }

    package var count: Int { self.receiving.count + self.waiting.count + self.sending.count }

    /// Any open stream.
    package var first: StreamSlot? { self.receiving.first ?? self.waiting.first ?? self.sending.first }

    /// A stream, if it is one that is likely asked for; nil says nothing.
    @inline(__always)
    package func find(_ number: Int32) -> StreamSlot? {
        if let current = self.current, current.state.number == number { return current }
        // Bodies, answers and ends mostly come in the order of the requests.
        if let oldest = self.receiving.first, oldest.state.number == number { return oldest }
        if let oldest = self.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.sending.first, oldest.state.number == number { return oldest }
        return nil
    }

    /// A stream has begun, whose block is being read.
    package mutating func begin(_ slot: StreamSlot) {
        self.append(slot)
        self.current = slot
    }

    /// A stream has ended.
    ///
    /// - Parameters:
    ///   - slot: where it is, in the phase it was in.
    ///   - now: monotonic milliseconds.
    package mutating func end(_ slot: StreamSlot, now: Int64) {
        self.remove(slot)
        if self.current == slot { self.current = nil }
        if self.count == 0 { self.idleSince = now }
    }

    /// - Parameters:
    ///   - slot: an open stream.
    ///   - phase: the one that begins.
    ///   - now: monotonic milliseconds; the phase begins then.
    package mutating func move(_ slot: StreamSlot, to phase: StreamState.Phase, now: Int64) {
        self.remove(slot)
        slot.state.phase = phase
        slot.state.since = now
        self.append(slot)
    }

    private mutating func append(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.append(slot)
        case .waiting, .streaming: self.waiting.append(slot)
        case .sending: self.sending.append(slot)
        case .free: ()
        }
    }

    private mutating func remove(_ slot: StreamSlot) {
        switch slot.state.phase {
        case .receiving: self.receiving.remove(slot)
        case .waiting, .streaming: self.waiting.remove(slot)
        case .sending: self.sending.remove(slot)
        case .free: ()
        }
    }
}
