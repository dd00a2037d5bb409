import Engine

/// Orders collected events by device; those of one device keep their order.
struct EventOrder {
    private var keys: [UInt64] = []

    /// Calls `body` with the place of every event in turn.
    mutating func forEach<Failure: Error>(
        _ events: [HistoryEvent],
        _ sorter: inout HalfWordSorter,
        _ body: (Int) throws(Failure) -> Void
    ) throws(Failure) {
        self.keys.removeAll(keepingCapacity: true)
        self.keys.reserveCapacity(events.count)
        for index in events.indices { self.keys.append(events[index].device & ~0xFFFF_FFFF | UInt64(index)) }
        sorter.sort(&self.keys)
        var start = 0
        while start < self.keys.count {
            let end = self.orderGroup(from: start, events)
            for key in start..<end { try body(Int(self.keys[key] & 0xFFFF_FFFF)) }
            start = end
        }
    }

    /// Orders the keys that have the upper half of the one at `start`, in which devices may differ still.
    ///
    /// - Returns: the index behind them.
    private mutating func orderGroup(from start: Int, _ events: [HistoryEvent]) -> Int {
        let first = self.keys[start]
        let device = events[Int(first & 0xFFFF_FFFF)].device
        var isUniform = true
        var end = start + 1
        while end < self.keys.count, self.keys[end] >> 32 == first >> 32 {
            isUniform = isUniform && events[Int(self.keys[end] & 0xFFFF_FFFF)].device == device
            end += 1
        }
        if !isUniform {
            self.keys[start..<end].sort {
                (events[Int($0 & 0xFFFF_FFFF)].device, $0) < (events[Int($1 & 0xFFFF_FFFF)].device, $1)
            }
        }
        return end
    }
}
