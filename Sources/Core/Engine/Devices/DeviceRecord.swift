package import Policy
package import Wire

/// One row of the engine's table.
///
/// A million of them are most of a gateway's memory: what few devices have is kept elsewhere and made when it is needed
/// (`LazyMemory`), and the rest lies in the order in which alignment wastes the fewest bytes.
@safe
package struct DeviceRecord {
    var state = DeviceState()
    /// The hold it is counted under.
    var held: HoldCode?
    private var marks: Marks = .isRegistered
    var topic: TopicIndex
    /// The token of the device.
    package internal(set) var token: StoredDeviceToken
    /// The pushes of the window in which they are counted.
    var rateWindowCount: UInt16 = 0
    /// When that window began, in seconds of policy time.
    var rateWindowStart: UInt32 = 0
    /// When it registered last; after its removal, when it was removed.
    var registrationChangedAt: Instant
    /// The wakes of the device; made when the first one is launched.
    private var wakes = LazyMemory<DeviceWakes>()
    /// The pushes that came last with an apns-id of their sender's; made when the first one comes.
    var answeredPushes = LazyMemory<Ring<AnsweredPush>>()
    /// The neighbours in its topic's queue of devices that wait for a slot.
    var previousReady = DeviceIndex.none
    var nextReady = DeviceIndex.none
    /// When it came to wait in its topic's queue, in milliseconds of policy time without those above 32 bits.
    var readySince: UInt32 = 0

    /// A device that registered at `registeredAt` for the topic, and has no pushes.
    package init(token: DeviceToken, topic: TopicIndex, registeredAt: Instant) {
        self.token = StoredDeviceToken(token)
        self.topic = topic
        self.registrationChangedAt = registeredAt
    }
}

/// What is known of a device's wakes besides what the policy knows.
private struct DeviceWakes {
    /// The wake in flight; without meaning when there is none.
    var inFlight = WakeID(random: (0, 0))
    /// The wakes that ended last.
    var ended = Ring<EndedWake>()
}

extension DeviceRecord {
    /// Frees what the record owns; whoever lets go of one calls it.
    func deallocate() {
        self.state.pending.flatMap { PushContent($0.handle) }?.deallocate()
        self.state.inFlight.flatMap { PushContent($0.push.handle) }?.deallocate()
        self.token.deallocate()
        self.wakes.deallocate()
        self.answeredPushes.deallocate()
    }
}

// MARK: - Wakes

extension DeviceRecord {
    /// The wake in flight; without meaning when there is none. Copies of the record say what the record says now.
    var wake: WakeID { self.wakes.value?.inFlight ?? WakeID(random: (0, 0)) }

    /// A wake with this id is in flight.
    mutating func launched(_ wake: WakeID) {
        self.wakes.change(from: DeviceWakes()) { $0.inFlight = wake }
    }

    /// The wakes that ended last; nil when none was ever launched.
    var endedWakes: Ring<EndedWake>? { self.wakes.value?.ended }

    /// Remembers a wake that has ended.
    ///
    /// - Returns: the one that made room for it.
    mutating func ended(_ wake: EndedWake) -> EndedWake? {
        self.wakes.change(from: DeviceWakes()) { $0.ended.append(wake) }
    }

    /// The wake with this id, if the device ended it and it is remembered.
    func endedWake(_ id: WakeID) -> EndedWake? {
        self.wakes.value?.ended.last { $0.id == id }
    }

    /// Forgets its oldest ended wake if that ended by `horizon`.
    mutating func forgetEndedWake(endedBy horizon: Instant) -> EndedWake? {
        guard let oldest = self.wakes.value?.ended.first, oldest.at <= horizon else { return nil }
        return self.wakes.change(from: DeviceWakes()) { $0.ended.popFirst { _ in true } }
    }
}

// MARK: - Marks

extension DeviceRecord {
    /// What is true or false of a device, in one byte: five of them would cost every device eight bytes more.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let isPending = Marks(rawValue: 1 << 0)
        static let isInFlight = Marks(rawValue: 1 << 1)
        static let isRegistered = Marks(rawValue: 1 << 2)
        static let isReady = Marks(rawValue: 1 << 3)
        static let isChanged = Marks(rawValue: 1 << 4)
        static let hasTasks = Marks(rawValue: 1 << 5)
    }

    /// Whether the device is counted as one with a pending push.
    var isPending: Bool {
        get { self.marks.contains(.isPending) }
        set { self.mark(.isPending, newValue) }
    }

    /// Whether the device's push in flight is counted.
    var isInFlight: Bool {
        get { self.marks.contains(.isInFlight) }
        set { self.mark(.isInFlight, newValue) }
    }

    var isRegistered: Bool {
        get { self.marks.contains(.isRegistered) }
        set { self.mark(.isRegistered, newValue) }
    }

    /// Whether the device waits in its topic's queue for a slot.
    var isReady: Bool {
        get { self.marks.contains(.isReady) }
        set { self.mark(.isReady, newValue) }
    }

    /// Whether the device is among the changes of the step.
    var isChanged: Bool {
        get { self.marks.contains(.isChanged) }
        set { self.mark(.isChanged, newValue) }
    }

    /// Whether the device has a row for its requests, sessions and habits.
    var hasTasks: Bool {
        get { self.marks.contains(.hasTasks) }
        set { self.mark(.hasTasks, newValue) }
    }

    /// The device came to wait in its topic's queue.
    mutating func becameReady(at moment: Instant) {
        self.isReady = true
        self.readySince = UInt32(truncatingIfNeeded: moment.milliseconds)
    }

    /// How long it has waited in its topic's queue, in milliseconds; whole spans of 49 days are left out.
    func readyMilliseconds(at now: Instant) -> Int64 {
        Int64(UInt32(truncatingIfNeeded: now.milliseconds) &- self.readySince)
    }

    private mutating func mark(_ mark: Marks, _ isSet: Bool) {
        if isSet { self.marks.insert(mark) } else { self.marks.remove(mark) }
    }
}
