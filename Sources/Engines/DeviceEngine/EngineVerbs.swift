package import Bytes
package import LaunchPolicy

/// A push that passed every check that needs no state.
package struct IncomingPush {
    package let apnsID: APNsID
    /// Its sender chose the apns-id, and may repeat the push with it: it is then answered as before, and not accepted
    /// again.
    package let isNamedByClient: Bool
    package let priority: Priority
    package let expiration: ArrivingPush.Expiration
    /// Empty when there is none; valid during the call.
    package let collapseID: ByteView
    /// Valid during the call.
    package let payload: ByteView
    /// Whether `aps.content-available` is 1.
    package let wakes: Bool
    /// The trace it belongs to, as `PushTrace` keeps it; empty when there is none, valid during the call.
    package let trace: ByteView

    package init(
        apnsID: APNsID,
        isNamedByClient: Bool,
        priority: Priority,
        expiration: ArrivingPush.Expiration,
        collapseID: ByteView,
        payload: ByteView,
        wakes: Bool,
        trace: ByteView = ByteView()
    ) {
        self.apnsID = apnsID
        self.isNamedByClient = isNamedByClient
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
        self.wakes = wakes
        self.trace = trace
    }
}

/// Whether a push may be accepted for a token.
package enum Admission: Hashable, Sendable {
    case device(DeviceIndex)
    /// The token would be registered by this push, were it not a dry run; nil when its topic is new as well.
    case newcomer(TopicIndex?)
    case refused(Refusal)
}

/// Why a device does not take what was sent to it.
package enum Refusal: Error, Hashable, Sendable {
    /// The token was never registered.
    case unknown
    /// The token was removed at this moment.
    case unregistered(Instant)
    /// The token belongs to another topic.
    case otherTopic
    /// There are as many devices as there may be.
    case tooManyDevices
    /// The topic has as many devices as a topic may have.
    case tooManyDevicesOfTopic
    /// The topic is new, and there are as many as there may be.
    case tooManyTopics
    /// The pushes of all topics that wait take up as much memory as they may.
    case noMemory
    /// Those of its topic take up as much memory as a topic's may.
    case noMemoryForTopic
    /// The device has had as many pushes as it takes until this moment.
    case tooMany(until: Instant)
}

/// What is answered to an accepted push.
package struct PushAnswer: Hashable, Sendable {
    package let disposition: Disposition
    /// When it will be eligible, for `scheduled` and `coalesced` while nothing holds it.
    package let eligibleAt: Instant?
    /// The first hold that applies, for `scheduled` and `coalesced`.
    package let held: HoldCode?
    /// The wake it launched.
    package let wake: WakeID?
}

/// What a reported result did.
package enum ReportOutcome: Hashable, Sendable {
    /// It ended the wake.
    case ended
    /// The wake ended before, with this very result.
    case repeated
    /// The wake ended before, in another way.
    case endedOtherwise(WakeOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What a worker's wish for more time came to.
package enum ExtensionOutcome: Hashable, Sendable {
    /// The wake lasts until then.
    case lasts(Instant)
    /// The wake has all the time that its topic's policy gives; it ends then.
    case limitReached(Instant)
    /// The wake has ended.
    case ended(WakeOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What an operator's forced launch did.
package enum ForcedLaunch: Hashable, Sendable {
    case launched(WakeID)
    case wakeInFlight
}

/// A wake that was launched, as its worker is told of it.
package struct LaunchedWake {
    package let id: WakeID
    package let token: DeviceToken
    package let topic: String
    package let push: PendingPush
    package let deadline: Instant
    /// How long until the deadline, in milliseconds.
    package let timeLeft: Int64
    /// nil for an empty wake; valid during the call.
    package let content: PushContent?
}

/// Everything the engine knows of one device, at one moment.
package struct DeviceSnapshot: Sendable {
    package let token: DeviceToken
    package let topic: String
    package let isRegistered: Bool
    /// When it registered last; after its removal, when it was removed.
    package let registrationChangedAt: Instant
    package let state: DeviceState
    package let parameters: Parameters
    /// The wake in flight.
    package let wake: WakeID?
    package let pendingID: APNsID?
    package let inFlightID: APNsID?
    /// Every hold that applies to the pending push, the deciding one first.
    package let held: [HoldCode]
}

/// One topic, at one moment.
package struct TopicSnapshot: Sendable {
    package let index: TopicIndex
    package let name: String
    package let books: Books
}

/// How an engine is set up.
package struct EngineConfiguration: Sendable {
    /// The policy of topics that have none of their own.
    package var policy = Parameters()
    /// The policy of topics by name.
    package var topicPolicies: [String: Parameters] = [:]
    /// Whether the first push registers an unknown token.
    package var openRegistration = false
    /// The most tokens kept, removed ones included; ten million take 3 GB idle, and 9 GB with a push
    /// waiting on each.
    package var devicesMax = 10_000_000
    /// The most of them in one topic; all, as a gateway may serve one app alone.
    package var devicesPerTopicMax = 10_000_000
    /// The most topics kept; ten thousand, as a topic is an app.
    package var topicsMax = 10_000
    /// The most streams of workers that name one device; 0 is no limit.
    package var streamsPerDeviceMax = 64
    /// The most bytes of pushes that wait or are in flight.
    package var pendingBytesMax = Int.max
    /// The most of them in one topic.
    package var pendingBytesPerTopicMax = Int.max
    /// How many pushes one device takes.
    package var pushRate = PushRate()

    package init() {}
}
