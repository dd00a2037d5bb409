import Bytes
import LaunchPolicy

/// One row of the engine's table.
@safe
struct DeviceRecord {
    var state = DeviceState()
    var token: StoredDeviceToken
    var topic: TopicIndex
    /// When the window began in which its pushes are counted, in seconds of policy time. This and the count lie where
    /// alignment leaves room, so that they cost no memory.
    var rateWindowStart: UInt32 = 0
    /// When it registered last; after its removal, when it was removed.
    var registrationChangedAt: Instant
    /// The wake in flight; without meaning when there is none.
    var wake = WakeID(random: (0, 0))
    /// The wakes that ended last; made when the first one ends.
    var endedWakes = LazyMemory<Ring<EndedWake>>()
    /// The pushes that came last with an apns-id of their sender's; made when the first one comes.
    var answeredPushes = LazyMemory<Ring<AnsweredPush>>()
    /// The neighbours in its topic's queue of devices that wait for a slot.
    var previousReady = DeviceIndex.none
    var nextReady = DeviceIndex.none
    /// The hold it is counted under.
    var held: HoldCode?
    /// It is counted as a device with a pending push.
    var isPending = false
    /// Its push in flight is counted.
    var isInFlight = false
    var isRegistered = true
    /// It waits in its topic's queue for a slot.
    var isReady = false
    /// It is among the changes of the step.
    var isChanged = false
    /// The pushes of that window.
    var rateWindowCount: UInt16 = 0

    init(token: DeviceToken, topic: TopicIndex, registeredAt: Instant) {
        self.token = StoredDeviceToken(token)
        self.topic = topic
        self.registrationChangedAt = registeredAt
    }
}
