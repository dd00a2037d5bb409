package import Policy

/// Topics that people have paused: nothing of them launches by itself, and whatever comes waits.
///
/// A pause changes nothing of a device: what is due and what waits for a slot is kept up as ever, so that pausing and
/// resuming a topic costs the same with a million devices. Whoever drives the engine claims nothing of a paused topic.
extension EmbeddedEngine {
    /// Whether nothing of the topic launches by itself.
    package func isPaused(_ topic: TopicIndex) -> Bool { self.topics.isPaused(topic) }

    /// The topics that are paused.
    package var pausedTopics: Set<TopicIndex> { self.topics.paused }

    /// Pauses or resumes a topic.
    ///
    /// - Returns: whether it was the other way before.
    package func setPaused(_ topic: TopicIndex, _ isPaused: Bool) -> Bool {
        let isChanged = self.topics.setPaused(topic, isPaused, at: self.now)
        // Where the store is shared, no step keeps it: it is kept before it is in force.
        if self.isShared { _ = self.topics.takeChanges() }
        if isChanged { self.notePaused(topic, isPaused) }
        return isChanged
    }

    /// The books of a topic as they are shown.
    package func booksShown(_ topic: TopicIndex) -> Books {
        let books = self.topics.books(topic)
        return self.isPaused(topic) ? books.paused : books
    }

    /// The books of all topics together as they are shown.
    package var totalsShown: Books {
        var totals = self.topics.totals
        for topic in self.topics.paused {
            let books = self.topics.books(topic)
            totals += books.paused - books
        }
        return totals
    }

    /// For how long a launch has waited for a slot since this moment, in milliseconds: a pause is no wait for a slot.
    func lateness(since moment: Instant, _ topic: TopicIndex) -> Int64 {
        let begin = max(moment, self.topics.resumedAt(topic))
        return begin == .distantPast ? .max : self.now.milliseconds - begin.milliseconds
    }
}

// MARK: - What people drop

extension EmbeddedEngine {
    /// Discards the push that waits on a device, whose due is done: `catchUp`.
    ///
    /// - Returns: whether one waited.
    package func cancelPending(_ device: DeviceIndex) -> Bool {
        guard let push = self.devices[device].state.pending?.handle else { return false }
        self.change(device) {
            _ = $0.pendingCancelled()
        } lanes: {
            _ = $0.pendingCancelled()
        }
        self.discard(push, .cancelled, device)
        self.reconcile(device)
        return true
    }

    /// The push that waits on a device, and its content; nil when none does.
    package func pendingPush(_ device: DeviceIndex) -> (push: PendingPush, content: PushContent)? {
        guard let push = self.devices[device].state.pending, let content = PushContent(push.handle) else { return nil }
        return (push, content)
    }
}
