package import Policy
package import Wire

extension EmbeddedEngine {
    /// The topic of this name, if any device, subscription or configuration ever named it.
    package func findTopic(_ name: ByteView) -> TopicIndex? { self.topics.find(name) }

    /// The topic of this name, made when it is new.
    package func topic(_ name: ByteView) -> TopicIndex {
        if let topic = self.topics.find(name) { return topic }
        let topic = self.topics.insert(name, self.configuration)
        self.makeRoomForTopics()
        return topic
    }

    /// Has place for each topic wherever something is kept by topic.
    func makeRoomForTopics() {
        self.ready.grow(topicCount: self.topics.count)
        self.memory.grow(topicCount: self.topics.count)
        self.taskMemory.grow(topicCount: self.topics.count)
    }

    /// Whether a subscription may make the topic of this name.
    package func mayAddTopic(_ name: ByteView) -> Bool {
        self.topics.find(name) != nil || self.topics.count < self.configuration.topicsMax
    }

    /// The most streams that may name one device; 0 is no limit.
    package var streamsPerDeviceMax: Int { self.configuration.streamsPerDeviceMax }

    package var topicCount: Int { self.topics.count }

    /// How long the device has waited that waits longest for a worker, or for the engine itself, in milliseconds; 0
    /// when nothing is due. What a pause keeps back is not due.
    package var oldestDueMilliseconds: Int64 {
        // What was due before everything, as a first launch, is due since it can be told.
        let late = self.schedule.first.map { $0 == .distantPast ? 0 : self.now.milliseconds - $0.milliseconds } ?? 0
        let waits = self.ready.longestMilliseconds(at: self.now, in: self.devices) { topic in
            self.isPaused(topic) ? nil : self.lateness(since: .distantPast, topic)
        }
        return max(0, late, waits ?? 0)
    }

    /// Every topic, in the order of their making.
    package var topicSnapshots: [TopicSnapshot] {
        self.topics.indices.map { self.snapshot($0) }
    }

    /// The topics with the most pushes when there are more than `countMax`, and otherwise all, as they were made.
    package func topicSnapshots(countMax: Int) -> [TopicSnapshot] {
        guard self.topics.count > countMax else { return self.topicSnapshots }
        return self.topics.indices.most(countMax) { Int(clamping: self.topics.books($0).accepted) }.map {
            self.snapshot($0)
        }
    }

    package func snapshot(_ topic: TopicIndex) -> TopicSnapshot {
        TopicSnapshot(
            index: topic,
            name: self.topics.name(topic),
            books: self.topics.books(topic),
            isPaused: self.isPaused(topic)
        )
    }
}

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
        guard let push = self.devices[device].state.pendingCancelled() else { return false }
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

/// What whoever drives the engine looks at.
extension EmbeddedEngine {
    /// The device whose push goes first to a slot of this topic.
    package func longestReady(_ topic: TopicIndex) -> DeviceIndex? {
        self.ready.first(topic, at: self.now, in: self.devices)
    }

    /// The device's conditions.
    package func conditions(of device: DeviceIndex) -> Conditions { self.devices[device].state.conditions }

    /// The name of a topic.
    package func topicName(_ topic: TopicIndex) -> String { self.topics.name(topic) }
}

extension Array {
    /// The elements of which there is most, at most `countMax`, that with the most first: one pass, with a few steps of
    /// a heap for each.
    package consuming func most(_ countMax: Int, by amount: (Element) -> Int) -> [Element] {
        guard countMax > 0 else { return [] }
        // The least of those that are listed is first: the one to leave for a greater one.
        var heap: [(amount: Int, place: Int)] = []
        for place in self.indices {
            let amount = amount(self[place])
            if heap.count < countMax {
                heap.append((amount, place))
                var child = heap.count - 1
                while child > 0, heap[child].amount < heap[(child - 1) >> 1].amount {
                    heap.swapAt(child, (child - 1) >> 1)
                    child = (child - 1) >> 1
                }
            } else if amount > heap[0].amount {
                heap[0] = (amount, place)
                var parent = 0
                while true {
                    var least = parent
                    for child in parent * 2 + 1...parent * 2 + 2
                    where child < heap.count && heap[child].amount < heap[least].amount {
                        least = child
                    }
                    guard least != parent else { break }
                    heap.swapAt(parent, least)
                    parent = least
                }
            }
        }
        return heap.sorted { ($1.amount, $0.place) < ($0.amount, $1.place) }.map { self[$0.place] }
    }
}
