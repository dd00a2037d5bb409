package import Bytes
package import LaunchPolicy

/// What one step of the engine changed.
package struct EngineStep: Sendable {
    /// Policy time at the step.
    package let now: Instant
    /// The devices whose state changed, each once.
    package let devices: [DeviceIndex]
    /// The topics whose counters changed, each once.
    package let topics: [TopicIndex]

    package var isEmpty: Bool { self.devices.isEmpty && self.topics.isEmpty }
}

// MARK: - Keeping

extension EmbeddedEngine {
    /// Something changed since `takeStep` was last called.
    package var hasChanges: Bool { !self.changed.isEmpty || !self.changedTopics.isEmpty }

    /// Takes the changes since the last call: what a store has to make durable.
    package func takeStep() -> EngineStep {
        for device in self.changed { self.devices[device].isChanged = false }
        for topic in self.changedTopics { self.topics[Int(topic.rawValue)].isChanged = false }
        defer {
            self.changed.removeAll(keepingCapacity: true)
            self.changedTopics.removeAll(keepingCapacity: true)
        }
        return EngineStep(now: self.now, devices: self.changed, topics: self.changedTopics)
    }

    /// Takes the changes since the last call as records, in `batch`: each device and topic as it is now.
    package func takeStep(into batch: inout RecordBatch) {
        for topic in self.changedTopics {
            self.topics[Int(topic.rawValue)].isChanged = false
            batch.append(RecordKey(.topic, topic.rawValue)) { self.topics[Int(topic.rawValue)].store(to: &$0) }
        }
        for device in self.changed {
            self.devices[device].isChanged = false
            batch.append(RecordKey(.device, device.rawValue)) {
                self.devices[device].store(to: &$0, at: self.now)
            }
        }
        self.changed.removeAll(keepingCapacity: true)
        self.changedTopics.removeAll(keepingCapacity: true)
    }
}

// MARK: - Restoring

extension EmbeddedEngine {
    /// Takes one record of a topic or a device; others are not the engine's. Only before its first step.
    ///
    /// - Throws: `StoreError` when the record is not one that `takeStep` wrote.
    package func restore(_ key: RecordKey, _ content: ByteView) throws(StoreError) {
        switch key.kind {
        case .clock, .origin, .rejections, .policies, .events: break
        case .topic:
            guard let stored = Topic.read(stored: content) else { throw Self.unreadable("topic \(key.index)") }
            self.restoredTopics[key.index] = stored
        case .device:
            guard let record = DeviceRecord(stored: content), self.devices.place(record, at: key.index) else {
                throw Self.unreadable("device \(key.index)")
            }
        }
    }

    /// Every record has been handed over: brings up to date what follows from them, and goes on at `now`. Wakes that
    /// were in flight still are: records do not tell whether their workers are there.
    ///
    /// - Throws: `StoreError` when records are missing.
    package func finishRestoring(now: Instant) throws(StoreError) {
        self.now = now
        for number in 0..<UInt32(self.restoredTopics.count) {
            guard let stored = self.restoredTopics[number] else {
                throw Self.unreadable("topic \(number), which is missing")
            }
            let topic = stored.name.withByteView { self.topic($0) }
            guard topic.rawValue == number else { throw Self.unreadable("topic \(number), which is there twice") }
            self.topics[Int(number)].books = stored.books
        }
        self.restoredTopics = [:]
        guard self.devices.finishPlacing() else { throw Self.unreadable("a device, which is missing") }
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let record = self.devices[device]
            guard Int(record.topic.rawValue) < self.topics.count else {
                throw Self.unreadable("device \(number): its topic is missing")
            }
            if record.isRegistered { self.count(record.topic) { $0.registered += 1 } }
            self.topics[Int(record.topic.rawValue)].deviceCount += 1
            for push in [record.state.pending, record.state.inFlight?.push] {
                if let content = push.flatMap({ PushContent($0.handle) }) { self.hold(content, record.topic) }
            }
            var wakes = record.endedWakes.value?.elements.map(\.id) ?? []
            if record.state.inFlight != nil { wakes.append(record.wake) }
            for wake in wakes {
                guard self.wakes[wake] == nil else {
                    throw Self.unreadable("device \(number): it has the wake of another")
                }
                self.wakes[wake] = device
            }
            self.noteWhenForgotten(device)
            if record.state.pending != nil || record.state.inFlight != nil { self.derive(device) }
        }
        self.totals = self.topics.reduce(into: Books()) { $0 += $1.books }
        self.changed.removeAll(keepingCapacity: true)
        self.changedTopics.removeAll(keepingCapacity: true)
        for topic in self.topics.indices { self.topics[topic].isChanged = false }
    }

    /// Loses every wake in flight and takes its attempt back: for whoever knows that no worker holds one, as the only
    /// user of a store does that has just started on it. A deadline that has passed does not go before that.
    package func loseEveryWake() {
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let record = self.devices[device]
            guard record.state.inFlight != nil else { continue }
            let action = self.devices[device].state.wakeLost(
                at: self.now,
                takingBackAttempt: true,
                self.parameters(record.topic)
            )
            self.noteEnd(device, record, .lost, action)
            self.settle(device)
        }
    }

    private static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}
