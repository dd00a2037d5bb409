import Engine

/// What transactions of a shared store do with groups.
extension StepGroup {
    /// Nothing of what it has is let out.
    func discard() {
        for effects in self.effects.loops where !effects.isEmpty { effects.removeAll() }
        if !self.effects.webhooks.isEmpty { self.effects.webhooks.removeAll() }
        self.history.removeAll()
        self.watched.removeAll()
        self.records.removeAll()
        self.forgetArrivals()
        self.hasLongList = false
    }
}
