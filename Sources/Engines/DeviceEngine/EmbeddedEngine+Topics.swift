package import Bytes
import LaunchPolicy

extension EmbeddedEngine {
    /// The topic of this name, if any device, subscription or configuration ever named it.
    package func findTopic(_ name: ByteView) -> TopicIndex? { self.topicNames.find(name) }

    /// The topic of this name, made when it is new.
    package func topic(_ name: ByteView) -> TopicIndex {
        if let topic = self.topicNames.find(name) { return topic }
        let text = name.string
        let parameters = self.configuration.topicPolicies[text] ?? self.configuration.policy
        self.topics.append(Topic(name: text, parameters: parameters))
        let topic = self.topicNames.insert(name)
        // Kept at once: topics are numbered without gaps.
        self.count(topic) { _ in }
        return topic
    }

    /// Whether a subscription may make the topic of this name.
    package func mayAddTopic(_ name: ByteView) -> Bool {
        self.topicNames.find(name) != nil || self.topics.count < self.configuration.topicsMax
    }

    /// The most streams that may name one device; 0 is no limit.
    package var streamsPerDeviceMax: Int { self.configuration.streamsPerDeviceMax }

    package var topicCount: Int { self.topics.count }

    /// How long the device has waited that waits longest for a worker, or for the engine itself, in milliseconds; 0
    /// when nothing is due.
    package var oldestDueMilliseconds: Int64 {
        // Queues are in the order in which devices came to wait.
        let waiting = self.topics.lazy.filter { $0.firstReady != .none }.map {
            self.devices[$0.firstReady].readyMilliseconds(at: self.now)
        }
        // What was due before everything, as a first launch, is due since it can be told.
        let late = self.due.first.map { $0 == .distantPast ? 0 : self.now.milliseconds - $0.milliseconds } ?? 0
        return max(0, late, waiting.max() ?? 0)
    }

    /// Every topic, in the order of their making.
    package var topicSnapshots: [TopicSnapshot] {
        self.topics.indices.map { self.snapshot(TopicIndex(rawValue: UInt32($0))) }
    }

    /// The topics with the most pushes when there are more than `countMax`, and otherwise all, as they were made.
    package func topicSnapshots(countMax: Int) -> [TopicSnapshot] {
        guard self.topics.count > countMax else { return self.topicSnapshots }
        return Array(self.topics.indices).most(countMax) { Int(clamping: self.topics[$0].books.accepted) }.map {
            self.snapshot(TopicIndex(rawValue: UInt32($0)))
        }
    }

    package func snapshot(_ topic: TopicIndex) -> TopicSnapshot {
        let record = self.topics[Int(topic.rawValue)]
        return TopicSnapshot(index: topic, name: record.name, books: record.books)
    }

    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        // Looking at a device that has nothing left to do is no change that a store would have to keep.
        _ = self.catchUp(device)
        let record = self.devices[device]
        let parameters = self.parameters(record.topic)
        var held: [HoldCode] = []
        if let priority = record.state.pending?.priority {
            held = Hold.allCases.filter {
                record.state.conditions.holds($0, priority, criticalBattery: parameters.criticalBattery)
            }.map { HoldCode($0) }
        }
        if record.isReady { held.append(.worker) }
        return DeviceSnapshot(
            token: record.token.token,
            topic: self.topics[Int(record.topic.rawValue)].name,
            isRegistered: record.isRegistered,
            registrationChangedAt: record.registrationChangedAt,
            state: record.state,
            parameters: parameters,
            wake: record.state.inFlight == nil ? nil : record.wake,
            pendingID: record.state.pending.flatMap { PushContent($0.handle)?.apnsID },
            inFlightID: record.state.inFlight.flatMap { PushContent($0.push.handle)?.apnsID },
            held: held
        )
    }
}
