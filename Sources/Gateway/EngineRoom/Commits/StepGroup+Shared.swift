import DeviceEngine

/// What transactions of a shared store do with groups.
extension StepGroup {
    /// A push of the group left its loop at this moment, by the monotonic clock in microseconds.
    func note(leftAt: Int64) {
        if let last = self.arrivals.indices.last, self.arrivals[last].at == leftAt {
            self.arrivals[last] = PushArrival(at: leftAt, count: self.arrivals[last].count + 1)
        } else {
            self.arrivals.append(PushArrival(at: leftAt, count: 1))
        }
    }

    /// Nothing of what it has is let out.
    func discard() {
        for effects in self.effects.loops where !effects.isEmpty { effects.removeAll() }
        if !self.effects.webhooks.isEmpty { self.effects.webhooks.removeAll() }
        self.history.removeAll()
        self.watched.removeAll()
        self.records.removeAll()
        self.arrivals.removeAll(keepingCapacity: true)
        self.hasLongList = false
    }
}
