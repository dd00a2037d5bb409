package import Policy
package import Wire

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
    /// Something changed since `takeStep` was last called. Progress that is told is a change a little later, so that
    /// reports cost a store no more the more there are.
    package var hasChanges: Bool {
        self.devices.hasChanges || self.tasks.hasChanges(at: self.now) || self.topics.hasChanges
    }

    /// When progress that was told is a change; nil when there is none that is not one yet.
    package var progressDue: Instant? { self.tasks.progressDue }

    /// Progress that was told is a change from here on: for whoever steps no more.
    package func hurryProgress() { self.tasks.hurryProgress() }

    /// Takes the changes since the last call: what a store has to make durable.
    package func takeStep() -> EngineStep {
        self.tasks.progressPassed(self.now)
        return EngineStep(now: self.now, devices: self.devices.takeChanges(), topics: self.topics.takeChanges())
    }

    /// Takes the changes since the last call as records, in `batch`: each device and topic as it is now.
    package func takeStep(into batch: inout RecordBatch) {
        self.tasks.progressPassed(self.now)
        self.topics.takeChanges(into: &batch)
        self.devices.takeChanges(into: &batch, at: self.now)
        self.tasks.takeChanges(into: &batch)
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
            guard self.topics.restore(key.index, content) else { throw .unreadable("topic \(key.index)") }
        case .device:
            guard let record = DeviceRecord(stored: content), self.devices.place(record, at: key.index) else {
                throw .unreadable("device \(key.index)")
            }
        case .tasks:
            guard self.tasks.restore(DeviceIndex(rawValue: key.index), content) else {
                throw .unreadable("the tasks of device \(key.index)")
            }
        }
    }

    /// The names of the topics that records have told of, by their numbers; empty after `finishRestoring`.
    package var restoredTopics: [String] { self.topics.restoredNames }

    /// Every record has been handed over: brings up to date what follows from them, and goes on at `now`. Wakes that
    /// were in flight still are: records do not tell whether their workers are there.
    ///
    /// - Throws: `StoreError` when records are missing.
    package func finishRestoring(now: Instant) throws(StoreError) {
        self.now = now
        try self.topics.finishRestoring(self.configuration)
        self.makeRoomForTopics()
        guard self.devices.finishPlacing() else { throw .unreadable("a device, which is missing") }
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let record = self.devices[device]
            guard Int(record.topic.rawValue) < self.topics.count else {
                throw .unreadable("device \(number): its topic is missing")
            }
            if record.isRegistered { self.count(record.topic) { $0.registered += 1 } }
            self.topics.countDevices(record.topic, 1)
            for push in [record.state.pending, record.state.inFlight?.push] {
                if let content = push.flatMap({ PushContent($0.handle) }) { self.memory.hold(content, record.topic) }
            }
            if self.tasks[device] != nil { self.devices[device].hasTasks = true }
            guard self.wakes.restore(device, inFlight: self.wakesInFlight(device), in: self.devices) else {
                throw .unreadable("device \(number): it has the wake of another")
            }
            let isAtRest = record.state.pending == nil && record.state.inFlight == nil
            if !isAtRest || self.devices[device].hasTasks { self.derive(device) }
        }
        guard self.tasks.isOfDevices(below: self.devices.count) else {
            throw .unreadable("the tasks of a device, which is missing")
        }
        self.topics.beginSteps()
    }

    /// Loses every wake in flight and takes its attempt back: for whoever knows that no worker holds one, as the only
    /// user of a store does that has just started on it. A deadline that has passed does not go before that.
    package func loseEveryWake() {
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let isPushInFlight = self.devices[device].state.inFlight != nil
            let tasks = self.tasks[device]?.policy.inFlight ?? []
            guard isPushInFlight || !tasks.isEmpty else { continue }
            if isPushInFlight { self.losePush(device, takingBackAttempt: true) }
            for wake in tasks { self.loseTask(wake.task.arrival, device, takingBackAttempt: true) }
            self.settle(device)
        }
    }
}

extension StoreError {
    /// What was found in records does not hold together.
    static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}
