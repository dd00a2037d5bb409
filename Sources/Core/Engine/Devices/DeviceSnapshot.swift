package import Policy
package import Wire

/// Everything the engine knows of one device, at one moment.
package struct DeviceSnapshot: Sendable {
    package let token: DeviceToken
    package let topic: String
    package let isTopicPaused: Bool
    package let isRegistered: Bool
    /// When the device registered last; after its removal, when it was removed.
    package let registrationChangedAt: Instant
    package let state: DeviceState
    package let parameters: Parameters
    /// The wake in flight.
    package let wake: WakeID?
    package let pendingID: APNsID?
    package let inFlightID: APNsID?
    /// Every hold that applies to the pending push, the deciding one first.
    package let held: [HoldCode]
    package let usage: Usage
    /// What waits, the longest waiting first, then what runs.
    package var tasks: [TaskSnapshot]
    /// The name of the worker on which the device's last wake expired, if nothing was ever received from that worker.
    package var silentWorker: String?
}

/// One topic, at one moment.
package struct TopicSnapshot: Sendable {
    package let index: TopicIndex
    package let name: String
    package let books: Books
    /// Nothing of it launches by itself.
    package let isPaused: Bool

    /// The books as they are shown.
    package var booksShown: Books { self.isPaused ? self.books.paused : self.books }
}

extension EmbeddedEngine {
    /// Everything that is known of a device.
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
        let isTopicPaused = self.isPaused(record.topic)
        if isTopicPaused, record.state.pending != nil { held = [.paused] + held.filter { $0 != .worker } }
        return DeviceSnapshot(
            token: record.token.token,
            topic: self.topics.name(record.topic),
            isTopicPaused: isTopicPaused,
            isRegistered: record.isRegistered,
            registrationChangedAt: record.registrationChangedAt,
            state: record.state,
            parameters: parameters,
            wake: record.state.inFlight == nil ? nil : record.wake,
            pendingID: record.state.pending.flatMap { PushContent($0.handle)?.apnsID },
            inFlightID: record.state.inFlight.flatMap { PushContent($0.push.handle)?.apnsID },
            held: held,
            usage: self.tasks[device]?.policy.usage ?? Usage(),
            tasks: self.tasks(of: device)
        )
    }
}
