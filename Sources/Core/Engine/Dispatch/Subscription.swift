package import Policy
package import Wire

/// The parameters of a worker's subscription.
package struct SubscriptionRequest: Sendable {
    /// The maximum number of unanswered wakes per worker.
    package static let slotsMax = 4096
    /// The maximum number of resources per worker. The search for a task considers all combinations of resources.
    package static let resourcesMax = 8

    /// The maximum number of unanswered wakes of the stream.
    package var slots: Int
    package var takesPushes: Bool
    /// The identifiers of the tasks that the stream accepts.
    package var tasks: [IdentifierPattern]
    /// The names of the sessions that the stream accepts.
    package var sessions: [IdentifierPattern]
    /// The resources that the stream offers to tasks, each once, sorted by name.
    package var resources: [String] { didSet { self.resources = ResourceNames.sorted(self.resources) } }
    /// True if the worker receives condition changes of its devices.
    package var reportsConditions: Bool
    /// The devices whose wakes the stream accepts; empty for every device of the topic.
    package var devices: [DeviceToken]
    /// True if unanswered wakes stall the stream; false for webhooks, which rest after failures instead.
    package let stallsWhenSilent: Bool
    /// The name shown to operators; empty if the worker gave none.
    package var label: String

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

    /// True if the stream accepts tasks or sessions.
    package var takesTasks: Bool { !self.tasks.isEmpty || !self.sessions.isEmpty }

    /// A description for logs, such as `builder: 4 slots, pushes, tasks com.example.*`.
    var text: String {
        let lists = [
            ("tasks", self.tasks.map(\.text)), ("sessions", self.sessions.map(\.text)), ("resources", self.resources),
        ]
        let parts =
            ["\(self.slots) \(self.slots == 1 ? "slot" : "slots")"] + (self.takesPushes ? ["pushes"] : [])
            + lists.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.joined(separator: " "))" }
        return (self.label.isEmpty ? "" : "\(self.label): ") + parts.joined(separator: ", ")
    }

    /// Returns true if the stream accepts launches of this kind and name, and offers the resources that they need.
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

/// An unanswered wake of a stream.
package struct HeldWake {
    let givenAt: Instant
    /// The size of the payload in bytes.
    let bytes: UInt32
    let kind: LaunchKind
    /// True if the worker was warned that `deadline` is near.
    var isWarned = false
    /// The time of the last observed progress of a continued task; initially that of the launch.
    var advancedAt: Instant
    /// The deadline as of the last observed progress or the last warning.
    var deadline: Instant
}

/// The limits of all streams, which a reload of the configuration can change.
final class StreamBounds {
    /// The maximum bytes of unanswered payloads. A stream that has reached it gets no wakes.
    var wakeBytesMax: Int

    init(wakeBytesMax: Int) {
        self.wakeBytesMax = wakeBytesMax
    }
}

/// A worker's open stream.
///
/// Changes of its state go through `StreamTable`, which updates its positions in queues and rotations.
package final class Subscription {
    /// The number of consecutive wakes that stall the stream if they expired unanswered or were given back.
    static let unansweredInARowMax = 3

    package let address: StreamAddress
    package let topic: TopicIndex
    package let request: SubscriptionRequest
    /// The current maximum number of unanswered wakes.
    package internal(set) var slots: Int
    /// The unanswered wakes of the stream.
    package private(set) var wakes = WakeMap<HeldWake>()
    /// The number of wakes that the stream has received.
    package private(set) var wakesGiven: Int64 = 0
    /// The bytes of the payloads of `wakes`. They are limited because a worker may not read them.
    private(set) var bytes = 0
    private let bounds: StreamBounds
    /// The sequence number of the stream.
    let opened: UInt64
    /// The positions among the streams that accept its tasks. `TaskRotations` maintains them.
    var taskPlaces: [TaskRotations.Place] = []
    /// The number of positions in `taskPlaces` at which the stream is not in the rotation.
    var taskPlacesOut = 0
    /// The number of the stream's last turn among the streams that accept tasks.
    var lastTurn: UInt64 = 0
    /// The read state of condition changes. `ConditionsLog` maintains it.
    var conditionsRead = ConditionsLog.ReadState()
    /// The wakes that expired since the last answer. A late answer to such a wake counts as an answer.
    package internal(set) var expiredInARow: [WakeID] = []
    /// The wakes that the worker gave back since the last answer; nil if there are none.
    var givenBack: WakesGivenBack?
    /// True if the peer does not read; nothing is sent until it reads again.
    var isPaused = false
    /// True if the stream gets no wakes until it answers a wake, because too many in a row expired or were given back.
    var isStalled = false
    /// True if the worker has ever answered or reported a wake of the stream.
    var hasResponded = false
    /// True if the stream is in its topic's rotation for pushes.
    var isInRotation = false
    /// True if the stream was free at its last change in `TaskRotations`. Maintained for streams with several
    /// resources.
    var wasFree = false
    var hasEnded = false
    /// True if the worker is stopping: the stream gets no new wakes, and ends after its last wake.
    var isDraining = false
    /// The number of wakes that the stream released in steps of a shared store that are not durable yet.
    var releasesInDoubt = 0
    /// The number of such releases in steps that wait for their commit. Other steps may not use their slots until the
    /// releases are durable.
    var releasesOfOpenSteps = 0
    /// The contribution to the free slots of its group. `OfferedSlots` maintains it.
    var share: OfferedSlots.Share?
    /// The durations of the stream's push wakes. `WakeDurations` maintains it.
    var durations: WakeDurations.Cell?
    /// The index in `request.devices` of the next device.
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

    /// Returns true if the stream is in the rotation of this place.
    func isInTurn(_ place: Int) -> Bool {
        place == StreamRotation.pushes ? self.isInRotation : self.taskPlaces[place].isInTurn
    }

    /// Notes that the stream was added to the rotation of this place, or removed from it.
    func setInTurn(_ place: Int, _ isInTurn: Bool) {
        guard place != StreamRotation.pushes else {
            self.isInRotation = isInTurn
            return
        }
        self.taskPlaces[place].isInTurn = isInTurn
        self.taskPlacesOut += isInTurn ? -1 : 1
    }

    /// Returns the named devices in turn, one per call, so that no device delays another.
    func nextDevice() -> DeviceToken {
        defer { self.deviceInTurn = (self.deviceInTurn + 1) % self.request.devices.count }
        return self.request.devices[self.deviceInTurn]
    }

    /// True if the worker has responded, and no wake has expired or been given back since it last answered one.
    var isClear: Bool { self.hasResponded && self.expiredInARow.isEmpty && self.givenBack == nil }

    /// True if the stream can receive one more wake.
    package var isFree: Bool {
        !self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled
            && self.wakes.count + self.releasesOfOpenSteps < self.slots
            && !self.isFull
    }

    /// The number of further wakes that the stream can receive.
    var freeSlots: Int { self.isFree ? self.slots - self.wakes.count - self.releasesOfOpenSteps : 0 }

    /// True if the stream accepts pushes of every device.
    var takesAnyPush: Bool { self.request.takesPushes && self.request.devices.isEmpty }

    /// True if the stream accepts pushes and can receive one more wake.
    var isFreeForPush: Bool { self.request.takesPushes && self.isFree }

    /// True if the payloads of the unanswered wakes have reached the limit of bytes.
    var isFull: Bool { self.bytes >= self.bounds.wakeBytesMax }

    /// Adds a wake with a payload of `bytes`.
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

    /// Returns true if this wake is an unanswered wake of the stream.
    package func holds(_ wake: WakeID) -> Bool { self.wakes[wake] != nil }

    /// Notes a deadline after a progress report. If the deadline is later than before, the task has advanced.
    func progressed(_ wake: WakeID, deadline: Instant, at now: Instant) {
        guard var held = self.wakes[wake], deadline > held.deadline else { return }
        held.deadline = deadline
        held.isWarned = false
        held.advancedAt = now
        self.wakes[wake] = held
    }

    /// Notes that the worker is being warned of this deadline of a wake.
    ///
    /// - Returns: false if the wake is not on the stream, or its worker was already warned of this deadline.
    func warned(_ wake: WakeID, of deadline: Instant) -> Bool {
        guard var held = self.wakes[wake], !held.isWarned || held.deadline != deadline else { return false }
        held.isWarned = true
        held.deadline = deadline
        self.wakes[wake] = held
        return true
    }

    /// Returns the number of the stream's continued tasks that have made no progress for `span` milliseconds.
    func stalledCount(at now: Instant, after span: Int64) -> Int {
        guard self.request.takesTasks else { return 0 }
        return self.wakes.all.count {
            $0.value.kind == .continued && now.milliseconds - $0.value.advancedAt.milliseconds >= span
        }
    }

    /// Restores the progress state that a wake had before a report, which is undone.
    func restore(_ wake: WakeID, _ before: HeldWake) {
        guard var held = self.wakes[wake] else { return }
        held.deadline = before.deadline
        held.isWarned = before.isWarned
        held.advancedAt = before.advancedAt
        self.wakes[wake] = held
    }

    /// - Returns: the removed wake; nil if it was not on the stream.
    func remove(_ wake: WakeID) -> HeldWake? {
        guard let held = self.wakes.remove(wake) else { return nil }
        self.bytes -= Int(held.bytes)
        return held
    }

    /// Removes a wake as if it had never been given.
    ///
    /// - Returns: true if the wake was on the stream.
    func takeBack(_ wake: WakeID) -> Bool {
        guard self.remove(wake) != nil else { return false }
        self.wakesGiven -= 1
        return true
    }

    /// Adds a wake again after its end was undone.
    func hold(_ wake: WakeID, _ held: HeldWake) {
        self.wakes[wake] = held
        self.bytes += Int(held.bytes)
    }
}

/// Operations on sets of resource names, which are stored as sorted arrays.
enum ResourceNames {
    static func sorted(_ names: [String]) -> [String] {
        guard names.count > 1 else { return names }
        return Set(names).sorted()
    }

    /// Returns true if all needed resources are offered.
    static func isSatisfied(_ needed: [String], by offered: [String]) -> Bool {
        needed.allSatisfy { offered.contains($0) }
    }
}

extension DeviceEngine {
    /// The maximum number of subscription events that wait for a commit, parts of names included: about 1 MB. Further
    /// events are not logged.
    private static let subscriptionsMax = 16_384
    /// The maximum number of subscription events per second and topic, so that streams that open repeatedly do not
    /// displace the log of other topics. Further events are not logged.
    static let subscriptionsPerSecond = 64

    /// Reports to watchers and to the history that a stream opened, once for each device that the stream names.
    func noteSubscribed(_ topic: TopicIndex, _ request: SubscriptionRequest) {
        let (now, name) = (max(self.now, self.watchedAt), self.topics.name(topic))
        // Create the text only if it is needed.
        lazy var text = request.text
        lazy var isLong = text.utf8.count > NameParts.bytesMax
        // Two characters of three bytes must fit: a replacement for a cut character, and the ellipsis.
        lazy var kept = isLong ? String(decoding: text.utf8.prefix(NameParts.bytesMax - 5), as: UTF8.self) + "…" : text
        for device in request.devices.isEmpty ? [nil] : request.devices.map(Optional.some) {
            if self.subscriptions.count < Self.subscriptionsMax, self.mayLogSubscription(topic, now) {
                let number = HistoryEvent.streams(name, naming: device, self.historyKey)
                NameParts.append(kept, device: number, at: now, to: &self.subscriptions)
                self.subscriptions.append(HistoryEvent(device: number, at: now, kind: .subscribed))
            }
            guard let offset = self.watchOffset else { continue }
            self.watched.append(
                WatchedEvent(at: offset.wall(now), kind: .subscribed, topic: name, device: device, name: text)
            )
        }
    }

    /// Counts a subscription event. Returns false if the topic has reached the limit of this second.
    private func mayLogSubscription(_ topic: TopicIndex, _ now: Instant) -> Bool {
        let second = now.milliseconds / 1000
        if self.subscriptionSecond != second { (self.subscriptionSecond, self.subscriptionCounts) = (second, [:]) }
        guard self.subscriptionCounts[topic, default: 0] < Self.subscriptionsPerSecond else { return false }
        self.subscriptionCounts[topic, default: 0] += 1
        return true
    }
}
