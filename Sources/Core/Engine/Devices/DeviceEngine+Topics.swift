package import Policy
package import Wire

extension DeviceEngine {
    /// Returns the topic of this name; nil if it does not exist.
    package func findTopic(_ name: ByteView) -> TopicIndex? { self.topics.find(name) }

    /// Returns the topic of this name, created if it is new.
    package func topic(_ name: ByteView) -> TopicIndex {
        if let topic = self.topics.find(name) { return topic }
        let topic = self.topics.insert(name, self.configuration)
        self.makeRoomForTopics()
        return topic
    }

    /// Grows the queues and memory accounts of topics.
    func makeRoomForTopics() {
        self.ready.grow(topicCount: self.topics.count)
        self.memory.grow(topicCount: self.topics.count)
        self.taskMemory.grow(topicCount: self.topics.count)
    }

    /// Returns true if the topic of this name exists or may be created by a subscription.
    package func mayAddTopic(_ name: ByteView) -> Bool {
        self.topics.find(name) != nil || self.topics.count < self.configuration.topicsMax
    }

    package var topicCount: Int { self.topics.count }

    /// The longest time for which a due launch has waited for a worker or for the engine, in milliseconds; 0 if nothing
    /// is due. Launches of paused topics do not count.
    package var oldestDueMilliseconds: Int64 {
        // The due time of a first launch is `.distantPast`; it counts as on time.
        let late = self.schedule.first.map { $0 == .distantPast ? 0 : self.now.milliseconds - $0.milliseconds } ?? 0
        let waits = self.ready.longestMilliseconds(at: self.now, in: self.devices) { topic in
            self.isPaused(topic) ? nil : self.lateness(since: .distantPast, topic)
        }
        return max(0, late, waits ?? 0)
    }

    /// Every topic, in order of creation.
    package var topicSnapshots: [TopicSnapshot] {
        self.topics.indices.map { self.snapshot($0) }
    }

    /// Returns all topics in order of creation if there are at most `countMax`; otherwise the topics with the most
    /// pushes.
    package func topicSnapshots(countMax: Int) -> [TopicSnapshot] {
        guard self.topics.count > countMax else { return self.topicSnapshots }
        return self.topics.indices.top(countMax) { Int(clamping: self.topics.counters($0).accepted) }.map {
            self.snapshot($0)
        }
    }

    package func snapshot(_ topic: TopicIndex) -> TopicSnapshot {
        TopicSnapshot(
            index: topic,
            name: self.topics.name(topic),
            counters: self.topics.counters(topic),
            isPaused: self.isPaused(topic)
        )
    }
}

/// Paused topics. A paused topic launches nothing, and its new pushes and requests stay pending.
///
/// A pause does not change the devices of the topic, their due times or queues, so its cost does not depend on their
/// number. The caller must not launch devices of a paused topic.
extension DeviceEngine {
    /// Returns true if the topic is paused.
    package func isPaused(_ topic: TopicIndex) -> Bool { self.topics.isPaused(topic) }

    package var pausedTopics: Set<TopicIndex> { self.topics.paused }

    /// Pauses or resumes a topic.
    ///
    /// - Returns: true if that changed the topic.
    package func setPaused(_ topic: TopicIndex, _ isPaused: Bool) -> Bool {
        let isChanged = self.topics.setPaused(topic, isPaused, at: self.now)
        // With a shared store, the pause was stored before this call, so the step must not store it.
        if self.isShared { _ = self.topics.takeChanges() }
        if isChanged { self.notePaused(topic, isPaused) }
        return isChanged
    }

    /// Returns the counters of a topic as users see them, which reflect a pause.
    package func countersShown(_ topic: TopicIndex) -> ActivityCounters {
        let counters = self.topics.counters(topic)
        return self.isPaused(topic) ? counters.paused : counters
    }

    /// The counters of all topics together as users see them, which reflect pauses.
    package var totalsShown: ActivityCounters {
        var totals = self.topics.totals
        for topic in self.topics.paused {
            let counters = self.topics.counters(topic)
            totals += counters.paused - counters
        }
        return totals
    }

    /// Returns the time in milliseconds for which a launch has waited for a slot. The wait starts at `moment` or, if
    /// that is later, when the topic was resumed.
    func lateness(since moment: Instant, _ topic: TopicIndex) -> Int64 {
        let begin = max(moment, self.topics.resumedAt(topic))
        return begin == .distantPast ? .max : self.now.milliseconds - begin.milliseconds
    }
}

// MARK: - Manual cancellation

extension DeviceEngine {
    /// Discards the pending push of a device. Call `catchUp` for the device first.
    ///
    /// - Returns: true if one was pending.
    package func cancelPending(_ device: DeviceIndex) -> Bool {
        guard let pending = self.devices[device].state.pending,
            let push = self.devices[device].state.pendingCancelled()
        else { return false }
        self.discard(push, .cancelled, device, self.waited(device, pending, isLaunched: false))
        self.reconcile(device)
        return true
    }

    /// Returns the pending push of a device and its content; nil if there is none.
    package func pendingPush(_ device: DeviceIndex) -> (push: PendingPush, content: PushContent)? {
        guard let push = self.devices[device].state.pending, let content = PushContent(push.handle) else { return nil }
        return (push, content)
    }
}

/// Queries of the dispatcher.
extension DeviceEngine {
    /// Returns the device of this topic whose push is the next to get a slot.
    package func longestReady(_ topic: TopicIndex) -> DeviceIndex? {
        self.ready.first(topic, at: self.now, in: self.devices)
    }

    package func conditions(of device: DeviceIndex) -> Conditions { self.devices[device].state.conditions }

    package func topicName(_ topic: TopicIndex) -> String { self.topics.name(topic) }
}

extension Array {
    /// Returns the `countMax` elements with the largest amounts, in descending order. Takes one pass, and a sort of
    /// twice as many elements for each `countMax` that were larger than those found before.
    package consuming func top(_ countMax: Int, by amount: (Element) -> Int) -> [Element] {
        guard countMax > 0 else { return [] }
        var found: [(amount: Int, place: Int)] = []
        var least = Int.min
        func shorten() {
            found.sort { ($1.amount, $0.place) < ($0.amount, $1.place) }
            found.removeLast(Swift.max(0, found.count - countMax))
        }
        for place in self.indices {
            let amount = amount(self[place])
            guard amount > least else { continue }
            found.append((amount, place))
            guard found.count == 2 * countMax else { continue }
            shorten()
            least = found[countMax - 1].amount
        }
        shorten()
        return found.map { self[$0.place] }
    }
}
