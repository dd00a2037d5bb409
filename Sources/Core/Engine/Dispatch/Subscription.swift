package import Policy
package import Wire

/// What a worker asks for when it subscribes.
package struct SubscriptionRequest: Sendable {
    /// The most unanswered wakes a worker may hold.
    package static let slotsMax = 4096
    /// The most resources that a worker may offer: what it can take is found by looking at their combinations.
    package static let resourcesMax = 8

    /// How many unanswered wakes the stream may hold.
    package let slots: Int
    package let takesPushes: Bool
    /// The identifiers of the tasks that it takes.
    package let tasks: [IdentifierPattern]
    /// The names of the sessions that it takes.
    package let sessions: [IdentifierPattern]
    /// What a task may need that goes to it: in the order of their names, each once.
    package let resources: [String]
    /// Whether it is told when conditions of its devices change.
    package let reportsConditions: Bool
    /// The devices it takes wakes of; empty for every device of the topic.
    package let devices: [DeviceToken]
    /// Whether wakes that expire unanswered keep new ones from it; a webhook's driver sees to that itself.
    package let stallsWhenSilent: Bool
    /// What operators know it by; empty when it gave no name.
    package let label: String

    package init(
        slots: Int,
        takesPushes: Bool = true,
        tasks: [IdentifierPattern] = [],
        sessions: [IdentifierPattern] = [],
        resources: [String] = [],
        reportsConditions: Bool = false,
        devices: [DeviceToken],
        stallsWhenSilent: Bool = true,
        label: String = ""
    ) {
        self.slots = slots
        self.takesPushes = takesPushes
        self.tasks = tasks
        self.sessions = sessions
        self.resources = ResourceNames.sorted(resources)
        self.reportsConditions = reportsConditions
        self.devices = devices
        self.stallsWhenSilent = stallsWhenSilent
        self.label = label
    }

    /// Whether it takes anything but pushes.
    package var takesTasks: Bool { !self.tasks.isEmpty || !self.sessions.isEmpty }

    /// Whether it asked for wakes of this kind with this name, and offers what they need.
    package func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: self.takesPushes
        case .urlSession: self.sessions.contains { $0.matches(target.name) }
        case .appRefresh, .processing, .continued:
            ResourceNames.isSatisfied(target.resources, by: self.resources)
                && self.tasks.contains { $0.matches(target.name) }
        }
    }
}

/// A wake that a stream holds.
package struct HeldWake {
    let givenAt: Instant
    /// The bytes of its payload.
    let bytes: UInt32
    let kind: LaunchKind
    /// True if its worker was warned that `deadline` is near.
    var isWarned = false
    /// When it was seen last that a continued task advanced; its launch at first.
    var advancedAt: Instant
    /// Until when a continued task lasted then, or the deadline that the worker was warned of.
    var deadline: Instant
}

/// What all streams may hold, now and after a reload.
final class StreamBounds {
    /// The bytes of unanswered payloads: a stream gets wakes until it has as many.
    var wakeBytesMax: Int

    init(wakeBytesMax: Int) {
        self.wakeBytesMax = wakeBytesMax
    }
}

/// A worker's open stream.
///
/// Whatever changes its state is said to `StreamTable`, which keeps it where that puts it.
package final class Subscription {
    /// The wakes in a row that may expire unanswered, or be given back, before the stream gets no more.
    static let unansweredInARowMax = 3

    package let address: StreamAddress
    package let topic: TopicIndex
    package let request: SubscriptionRequest
    /// How many unanswered wakes it may hold now.
    package internal(set) var slots: Int
    /// The wakes it holds.
    package private(set) var wakes = WakeMap<HeldWake>()
    /// How many it was given since it was opened.
    package private(set) var wakesGiven: Int64 = 0
    /// The bytes of all of them: no more can wait for a worker that does not read.
    private(set) var bytes = 0
    private let bounds: StreamBounds
    /// The place in the order in which all streams came.
    let opened: UInt64
    /// The place in the order in which the naming streams of its topic came.
    var number: UInt64 = 0
    /// Where it stands among the streams that name its devices; `NamingStreams` keeps it.
    var places: [NamingStreams.Place] = []
    /// The places of the stream among those that take its tasks; `TaskRotations` keeps them.
    var taskPlaces: [TaskRotations.Place] = []
    /// The number of its places in which it does not stand in the rotation.
    var taskPlacesOut = 0
    /// The number of its last turn among the streams that take tasks.
    var lastTurn: UInt64 = 0
    /// True if the stream was free when `TaskRotations` last heard of a change; kept for those with several resources.
    var wasFree = false
    /// What it has heard of conditions; `ConditionsLog` keeps it.
    var hearing = ConditionsLog.Hearing()
    /// The wakes that expired since one was last answered; a late answer to one of them counts as an answer.
    package internal(set) var expiredInARow: [WakeID] = []
    /// Whether the peer does not read: nothing more is sent.
    var isPaused = false
    /// True if the stream gets no wake until it answers one: too many in a row expired or were given back.
    var isStalled = false
    /// True once the worker has said anything about a wake of the stream.
    var hasBeenHeard = false
    /// True if the worker's last word was an answer, and nothing has expired or been given back since.
    var isClear = false
    /// True if the stream stands in its topic's rotation for pushes.
    var isInRotation = false
    var hasEnded = false
    /// Whether the worker stops: the stream gets no new wake, and ends after its last.
    var isDraining = false
    /// How many of its wakes were released by steps of a shared store that may yet turn out not to have happened.
    var releasesInDoubt = 0
    /// How many of these steps that were taken have released: until one is durable, its slots are no other step's.
    var releasesOfOpenSteps = 0
    /// What it adds to the free slots of streams that take the same; `OfferedSlots` keeps it.
    var share: OfferedSlots.Share?
    /// The place in `request.devices` of the device that is next.
    private var deviceInTurn = 0

    init(
        address: StreamAddress,
        topic: TopicIndex,
        request: SubscriptionRequest,
        bounds: StreamBounds,
        opened: UInt64 = 0
    ) {
        self.bounds = bounds
        self.opened = opened
        self.address = address
        self.topic = topic
        self.request = request
        self.slots = request.slots
    }

    /// The devices it names, one at each call, in turn: none that is always due keeps the others waiting.
    func nextDevice() -> DeviceToken {
        defer { self.deviceInTurn = (self.deviceInTurn + 1) % self.request.devices.count }
        return self.request.devices[self.deviceInTurn]
    }

    /// Whether the stream can take one more wake.
    package var isFree: Bool {
        !self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled
            && self.wakes.count + self.releasesOfOpenSteps < self.slots
            && !self.isFull
    }

    /// How many more wakes it can take.
    var freeSlots: Int { self.isFree ? self.slots - self.wakes.count - self.releasesOfOpenSteps : 0 }

    /// Whether it asked for pushes of every device.
    var takesAnyPush: Bool { self.request.takesPushes && self.request.devices.isEmpty }

    /// Whether the stream can take one more wake of a push, and asked for such.
    var isFreeForPush: Bool { self.request.takesPushes && self.isFree }

    /// The wakes it holds are as large as they may be.
    var isFull: Bool { self.bytes >= self.bounds.wakeBytesMax }

    /// The stream got a wake, whose payload has so many bytes.
    func add(_ wake: WakeID, _ kind: LaunchKind, bytes: Int, at now: Instant, deadline: Instant) {
        self.wakes[wake] = HeldWake(
            givenAt: now,
            bytes: UInt32(clamping: bytes),
            kind: kind,
            advancedAt: now,
            deadline: deadline
        )
        self.bytes += bytes
        self.wakesGiven += 1
    }

    /// Whether it holds this wake.
    package func holds(_ wake: WakeID) -> Bool { self.wakes[wake] != nil }

    /// A continued task lasts until then by its progress: when that is later than before, it has advanced.
    func progressed(_ wake: WakeID, deadline: Instant, at now: Instant) {
        guard var held = self.wakes[wake], deadline > held.deadline else { return }
        held.deadline = deadline
        held.isWarned = false
        held.advancedAt = now
        self.wakes[wake] = held
    }

    /// Notes that the worker is warned of this deadline of a wake.
    ///
    /// - Returns: false when the stream does not hold the wake, or its worker was warned of that deadline before.
    func warned(_ wake: WakeID, of deadline: Instant) -> Bool {
        guard var held = self.wakes[wake], !held.isWarned || held.deadline != deadline else { return false }
        held.isWarned = true
        held.deadline = deadline
        self.wakes[wake] = held
        return true
    }

    /// How many of its continued tasks have not advanced for so many milliseconds.
    func stalledCount(at now: Instant, after span: Int64) -> Int {
        guard self.request.takesTasks else { return 0 }
        return self.wakes.all.count {
            $0.value.kind == .continued && now.milliseconds - $0.value.advancedAt.milliseconds >= span
        }
    }

    /// What was seen of a continued task's progress was not so: it is as it was before.
    func restore(_ wake: WakeID, _ before: HeldWake) {
        guard var held = self.wakes[wake] else { return }
        held.deadline = before.deadline
        held.isWarned = before.isWarned
        held.advancedAt = before.advancedAt
        self.wakes[wake] = held
    }

    /// A wake has ended.
    ///
    /// - Returns: whether the stream held it.
    func remove(_ wake: WakeID) -> Bool {
        guard let held = self.wakes.remove(wake) else { return false }
        self.bytes -= Int(held.bytes)
        return true
    }

    /// A wake was never given.
    ///
    /// - Returns: whether the stream held it.
    func takeBack(_ wake: WakeID) -> Bool {
        guard self.remove(wake) else { return false }
        self.wakesGiven -= 1
        return true
    }

    /// A wake has not ended after all.
    func hold(_ wake: WakeID, _ held: HeldWake) {
        self.wakes[wake] = held
        self.bytes += Int(held.bytes)
    }
}

/// Resources as sets of names are compared: in their order, each once.
enum ResourceNames {
    static func sorted(_ names: [String]) -> [String] {
        guard names.count > 1 else { return names }
        return Set(names).sorted()
    }

    /// Whether all that is needed is offered.
    static func isSatisfied(_ needed: [String], by offered: [String]) -> Bool {
        needed.allSatisfy { offered.contains($0) }
    }
}
