package import Policy
package import Wire

/// A device as a store keeps it that several gateways share.
package struct SharedDevice: Sendable {
    package let token: DeviceToken
    /// What `DeviceRecord` stores.
    package let record: [UInt8]
    /// What `TaskRow` stores; empty when there is nothing.
    package let tasks: [UInt8]
    /// What follows from both, as of when they were last stored: `DerivedState`.
    package let derived: [UInt8]

    package init(token: DeviceToken, record: [UInt8], tasks: [UInt8], derived: [UInt8]) {
        self.token = token
        self.record = record
        self.tasks = tasks
        self.derived = derived
    }
}

/// What a step changed of one device.
package struct SharedDeviceChange: Sendable {
    /// A lane that waits for nothing but a slot.
    package struct ReadyLane: Hashable, Sendable {
        package let target: LaunchTarget
        package let since: Instant

        package init(target: LaunchTarget, since: Instant) {
            self.target = target
            self.since = since
        }
    }

    /// A moment that stays what it was, or does not.
    package enum Due: Hashable, Sendable {
        case unchanged
        /// nil when nothing is due at any time.
        case at(Instant?)
    }

    package let device: SharedDevice
    package let topic: TopicIndex
    /// The device was not there before.
    package let isNew: Bool
    package let due: Due
    /// All lanes of the device that wait for a slot; nil when they are those there were.
    package let ready: [ReadyLane]?
    /// Wakes that were launched, and their deadlines.
    package let launched: [(wake: WakeID, deadline: Instant)]
    /// Wakes that were in flight before, and are no more.
    package let ended: [WakeID]

    /// Whether something follows from it for others than the device: slots, wakes and moments.
    package var hasNews: Bool {
        self.due != .unchanged || self.ready != nil || !self.launched.isEmpty || !self.ended.isEmpty
    }

    package init(
        device: SharedDevice,
        topic: TopicIndex,
        isNew: Bool,
        due: Due,
        ready: [ReadyLane]?,
        launched: [(wake: WakeID, deadline: Instant)],
        ended: [WakeID]
    ) {
        self.device = device
        self.topic = topic
        self.isNew = isNew
        self.due = due
        self.ready = ready
        self.launched = launched
        self.ended = ended
    }
}
