import Engine
import Policy
package import Wire

/// Decides when this gateway claims devices that are waiting for a slot.
///
/// A claim is a transaction that selects waiting devices for the free slots of this gateway. Streams with the same
/// subscription claim together. Usually they have one open claim; slots that become free meanwhile are included in the
/// next claim. If more devices are waiting than fit in one claim, several claims are open at once.
struct Claims {
    /// A group of streams with the same subscription, which claim together.
    struct Shape: Hashable {
        let topic: TopicIndex
        /// The number that identifies the subscription.
        private let number: UInt64

        init(_ slots: FreeSlots) {
            self.topic = slots.topic
            self.number = slots.number
        }
    }

    /// The maximum number of rows in one claim.
    static let countMax = 256
    /// The maximum number of open claims per shape.
    private static let openPerShapeMax = 4

    /// The open claims of one shape.
    private struct Open {
        var count = 0
        /// The number of slots that the open claims may fill.
        var slots = 0
        /// The notification count of the topic when the first open claim began.
        var noticeCount: UInt64 = 0
        /// True if one of the claims may have left rows that it could have claimed.
        var hasLeft = false
    }

    /// The number of notifications about waiting devices, by topic.
    private var noticeCounts: [TopicIndex: UInt64] = [:]
    /// The topics for which some shape has not claimed since the last notification.
    private var topics: Set<TopicIndex> = []
    /// The topics that probably have waiting devices but had no free slot.
    private var owed: Set<TopicIndex> = []
    /// The notification count up to which each shape has claimed.
    private var asked: [Shape: UInt64] = [:]
    private var open: [Shape: Open] = [:]
    /// The shapes whose last claim was full. Further claims are needed.
    private var backlogs: Set<Shape> = []

    /// The topic of the last claim.
    private var lastTopic = UInt32.max

    /// The number of open claims.
    private(set) var openCount = 0

    /// True if no device is known to wait for a free slot.
    var isEmpty: Bool { self.topics.isEmpty }

    /// Records a notification that a device of a topic may be waiting for a slot.
    mutating func noticed(_ topic: TopicIndex) {
        self.noticeCounts[topic, default: 0] += 1
        self.topics.insert(topic)
    }

    /// Begins and returns the next claim; nil if there is none. The topics take turns, in the order of their numbers.
    ///
    /// - `freeSlots`: returns the free slots of a topic.
    /// - `devices`: returns the devices named by the streams with these slots; empty for every device.
    mutating func next(
        _ freeSlots: (TopicIndex) -> [FreeSlots],
        devices: (FreeSlots) -> [DeviceToken]
    ) -> (shape: Shape, plan: ReadyPlan)? {
        func turn(_ topic: TopicIndex) -> UInt32 { topic.rawValue &- self.lastTopic &- 1 }
        for topic in self.topics.sorted(by: { turn($0) < turn($1) }) {
            var isWaitedFor = false
            var isAnyFree = false
            for slots in freeSlots(topic) {
                isAnyFree = true
                let shape = Shape(slots)
                let noticeCount = self.noticeCounts[topic] ?? 0
                guard (self.asked[shape] ?? 0) < noticeCount else { continue }
                // An open claim may have missed the device of the last notification.
                isWaitedFor = true
                let count = min(self.slotsLeft(slots.count, shape), Self.countMax)
                guard count > 0 else { continue }
                self.begin(shape, count, noticeCount)
                self.lastTopic = topic.rawValue
                var plan = ReadyPlan(topic: topic, takesPushes: slots.takesPushes, countMax: count)
                plan.devices = devices(slots)
                plan.tasks = slots.tasks
                plan.sessions = slots.sessions
                plan.resources = slots.resources
                return (shape, plan)
            }
            if !isWaitedFor { self.topics.remove(topic) }
            if !isAnyFree { self.owed.insert(topic) }
        }
        return nil
    }

    /// Returns the number of free slots that another claim may fill.
    private func slotsLeft(_ free: Int, _ shape: Shape) -> Int {
        guard let open = self.open[shape] else { return free }
        let left = free - open.slots
        return self.backlogs.contains(shape) && open.count < Self.openPerShapeMax && left >= Self.countMax ? left : 0
    }

    private mutating func begin(_ shape: Shape, _ slots: Int, _ noticeCount: UInt64) {
        var open = self.open[shape] ?? Open(noticeCount: noticeCount)
        open.count += 1
        open.slots += slots
        self.open[shape] = open
        self.openCount += 1
        // With a backlog, the shape claims again, so the notifications remain unprocessed.
        if !self.backlogs.contains(shape) { self.asked[shape] = noticeCount }
    }

    /// Ends a claim.
    ///
    /// - Returns: the notification count when the first open claim of the shape began. Nil if a claim has left rows: an
    ///   empty result of another claim then does not prove that no device is waiting.
    private mutating func end(_ shape: Shape, _ slots: Int, hasMore: Bool = false) -> UInt64? {
        guard var open = self.open.removeValue(forKey: shape) else { return 0 }
        open.count -= 1
        open.slots -= slots
        if hasMore { open.hasLeft = true }
        if open.count > 0 { self.open[shape] = open }
        self.openCount -= 1
        return open.hasLeft ? nil : open.noticeCount
    }

    /// Records that slots of a topic have become free.
    mutating func slotsFreed(_ topic: TopicIndex) {
        if self.owed.remove(topic) != nil { self.topics.insert(topic) }
    }

    /// Examines all topics again, because streams that accepted no wakes have free slots again.
    mutating func recheckAll() {
        self.topics.formUnion(self.noticeCounts.keys)
    }

    /// Ends a successful claim.
    ///
    /// - `slots`: the number of slots that the claim could fill.
    /// - `hasMore`: true if the claim may have left rows that it could have claimed.
    mutating func ended(_ shape: Shape, slots: Int, hasMore: Bool) {
        let noticeCount = self.end(shape, slots, hasMore: hasMore)
        self.topics.insert(shape.topic)
        if hasMore {
            self.backlogs.insert(shape)
            self.asked[shape] = nil
        } else if self.backlogs.remove(shape) != nil {
            self.asked[shape] = noticeCount
        }
        // Delete old entries at times, because shapes disappear with their streams.
        guard self.asked.count + self.backlogs.count > 4096, self.open.isEmpty else { return }
        self.asked = [:]
        self.backlogs = []
    }

    /// Ends a failed claim, which is repeated after the topic's next notification.
    mutating func failed(_ shape: Shape, slots: Int) {
        let noticeCount = self.end(shape, slots)
        if self.backlogs.remove(shape) != nil { self.asked[shape] = noticeCount }
    }
}

/// The times at which devices in the store become due. This gateway processes due devices unless another gateway is
/// faster.
struct DueDriver {
    /// The maximum number of known times. Further times are ignored; the view, which is read every second, includes
    /// them.
    private static let momentsMax = 4096

    /// The known due times.
    private var moments = MomentQueue<Void>()
    /// True while a transaction processes due devices.
    private var isOpen = false
    /// True if a transaction must begin even if no known time has passed. Either a second has passed, or the last
    /// transaction left due devices.
    private var isForced = true
    /// True from a refusal by the store until the next second, so that a store that refuses everything is not asked
    /// all the time.
    private var isPaused = false

    private var earliest: Instant? { self.moments.first.map { Instant(milliseconds: $0.moment) } }

    /// The earliest known due time at which a transaction may begin; nil if none may begin now.
    var next: Instant? { self.isOpen || self.isPaused ? nil : self.earliest }

    func isDue(at now: Instant) -> Bool {
        !self.isOpen && !self.isPaused && (self.isForced || self.earliest.map { $0 <= now } ?? false)
    }

    mutating func secondPassed() {
        self.isForced = true
        self.isPaused = false
    }

    /// Records that the store has refused the transaction.
    mutating func refused() { self.isPaused = true }

    /// Records a due time.
    mutating func note(_ moment: Instant) {
        guard moment != self.earliest, self.moments.count < Self.momentsMax else { return }
        self.moments.insert((), at: moment.milliseconds)
    }

    /// Records that a transaction for due devices begins.
    mutating func begun() {
        self.isOpen = true
        self.isForced = false
    }

    /// Records the end of a transaction that processed the devices due by `now`; nil if the transaction failed.
    mutating func ended(at now: Instant?, hasMore: Bool) {
        self.isOpen = false
        guard let now else { return }
        if hasMore { self.isForced = true }
        while self.moments.popDue(now.milliseconds) != nil {}
    }
}

/// Applies new policies to all devices, because a device may now launch earlier than the time in its row says.
///
/// The gateway that introduces the policies reads all rows in the order of their tokens, in batches and after all other
/// work. It processes each batch in a transaction. If it stops before the end, the new policies apply to each remaining
/// device at that device's next event.
struct PolicySweep {
    /// A step of the sweep.
    enum Step: Hashable {
        /// Read the devices after this one.
        case read(after: DeviceToken?)
        /// Apply the policies to these devices.
        case judge([DeviceToken], isLast: Bool)
    }

    /// The number of rows per batch.
    static let rowsMax = 256

    /// The next step, or the open step; nil if the sweep is complete.
    private var step: Step?
    private var isOpen = false
    /// True from a failed step until the next second.
    private var isPaused = false

    /// The step to begin now; nil if there is none.
    var next: Step? { self.isOpen || self.isPaused ? nil : self.step }

    /// Starts the sweep, because new policies are in effect.
    mutating func start() { self.step = .read(after: nil) }

    mutating func begun() { self.isOpen = true }

    /// Ends a step. Ignores its result if the sweep was restarted during the step.
    ///
    /// - `found`: the devices that were read. If `hasMore` is false, no others follow.
    mutating func ended(_ ended: Step, found: [DeviceToken], hasMore: Bool) {
        self.isOpen = false
        guard self.step == ended else { return }
        switch ended {
        case .read: self.step = found.isEmpty ? nil : .judge(found, isLast: !hasMore)
        case .judge(let tokens, let isLast): self.step = isLast ? nil : .read(after: tokens.last)
        }
    }

    /// Ends a failed step, which is repeated after the current second.
    mutating func failed() {
        self.isOpen = false
        self.isPaused = true
    }

    mutating func secondPassed() { self.isPaused = false }
}

/// The wakes in flight on this gateway's streams, each with its device and the time at which its row is read.
///
/// A read warns the worker if the deadline is near, and finds out if the wake has ended at another gateway. Otherwise,
/// a lost notification would leave a slot occupied forever.
struct HeldWakes {
    private struct Held {
        let device: DeviceToken
        /// The time from which a wake that its row no longer has counts as ended. Until then, the notification may
        /// still arrive, which also has the reason.
        let endsAt: Instant
        /// The time at which the row is read.
        var lookAt: Instant
    }

    /// The time from a deadline until a notification of the end must have arrived, and between further reads, in
    /// milliseconds.
    static let gracePeriod: Int64 = 5000
    /// The period for which reads are queued in advance, in milliseconds. It is longer than the second between calls of
    /// `foresee`.
    private static let foresight: Int64 = 2000

    /// The wakes whose rows are read before `foreseen`. Most wakes end long before and are never queued.
    private var looks = MomentQueue<WakeID>()
    private var foreseen = Instant.distantPast
    private var wakes: [WakeID: Held] = [:]

    /// Returns the device of a wake that is in flight on a stream here.
    func device(of wake: WakeID) -> DeviceToken? { self.wakes[wake]?.device }

    /// Returns the time from which a wake that its row no longer has counts as ended.
    func end(of wake: WakeID) -> Instant { self.wakes[wake]?.endsAt ?? .distantPast }

    mutating func insert(_ wake: WakeID, of device: DeviceToken, deadline: Instant) {
        let end = deadline + Self.gracePeriod
        self.wakes[wake] = Held(device: device, endsAt: end, lookAt: end)
        self.look(wake, at: end)
    }

    mutating func remove(_ wake: WakeID) { self.wakes[wake] = nil }

    /// Sets the time at which the gateway reads the row of a wake.
    mutating func look(_ wake: WakeID, at moment: Instant) {
        guard self.wakes[wake] != nil else { return }
        self.wakes[wake]?.lookAt = moment
        if moment < self.foreseen { self.looks.insert(wake, at: moment.milliseconds) }
    }

    /// Makes every wake due for reading, because new policies change the times of warnings.
    mutating func policyChanged(at now: Instant) {
        self.looks = MomentQueue()
        for wake in self.wakes.keys.sorted(by: { ($0.first, $0.second) < ($1.first, $1.second) }) {
            self.wakes[wake]?.lookAt = now
            self.looks.insert(wake, at: now.milliseconds)
        }
    }

    /// The next time at which a row is read.
    var nextLook: Instant? { self.looks.first.map { Instant(milliseconds: $0.moment) } }

    /// Removes and returns wakes whose rows must be read. Other gateways may have moved their deadlines.
    mutating func due(at now: Instant, countMax: Int) -> [WakeID] {
        var due: [WakeID] = []
        while due.count < countMax, let entry = self.looks.popDue(now.milliseconds) {
            guard self.wakes[entry.value]?.lookAt.milliseconds == entry.moment else { continue }
            self.wakes[entry.value]?.lookAt = .distantFuture
            due.append(entry.value)
        }
        return due
    }

    /// Queues the reads of the next seconds. Called every second.
    mutating func foresee(from now: Instant) {
        let (before, foreseen) = (self.foreseen, now + Self.foresight)
        guard foreseen > before else { return }
        self.foreseen = foreseen
        for (wake, held) in self.wakes where held.lookAt >= before && held.lookAt < foreseen {
            self.looks.insert(wake, at: held.lookAt.milliseconds)
        }
    }
}

/// The devices that other gateways have changed, each once, in the order of the notifications.
///
/// Each failed read doubles the pause before the next read and halves the number of devices in it.
package struct ChangedDevices {
    /// The maximum number of devices in one read.
    private static let countMax = Claims.countMax
    /// The minimum and the maximum pause, in milliseconds.
    private static let pauses: ClosedRange<Int64> = 1000...32_000
    /// The number of failures after which each read has one device.
    private static let failureCountMax = 8

    private var tokens: [DeviceToken] = []
    private var known: Set<DeviceToken> = []
    /// The devices whose last read failed.
    private var failed: Set<DeviceToken> = []
    /// The number of failed reads minus the number of successful reads, at least 0.
    private var failureCount = 0
    private var pausedUntil: Int64 = .min

    package init() {}

    var isEmpty: Bool { self.tokens.isEmpty }

    /// True if the last read of at least one device failed.
    package var hasFailed: Bool { !self.failed.isEmpty }

    /// Returns true during the pause after a failed read.
    ///
    /// - Parameter now: milliseconds since the start of the machine.
    func isPaused(at now: Int64) -> Bool { now < self.pausedUntil }

    /// Appends a device, unless it is already queued or the queue has `countMax` devices.
    package mutating func append(_ token: DeviceToken, countMax: Int) {
        guard self.tokens.count < countMax, self.known.insert(token).inserted else { return }
        self.tokens.append(token)
    }

    /// Removes and returns the devices of the next read.
    package mutating func take() -> [DeviceToken] {
        let taken = Array(self.tokens.prefix(max(1, Self.countMax >> self.failureCount)))
        self.tokens.removeFirst(taken.count)
        self.known.subtract(taken)
        return taken
    }

    /// Records a successful read.
    package mutating func succeeded(_ taken: [DeviceToken]) {
        self.failed.subtract(taken)
        self.failureCount = max(0, self.failureCount - 1)
        self.pausedUntil = .min
    }

    /// Records a failed read, and puts its devices at the end of the queue. Drops a device whose read alone fails
    /// repeatedly, because it delays the others.
    package mutating func failed(_ taken: [DeviceToken], at now: Int64) {
        let isGivenUp = taken.count == 1 && self.failureCount == Self.failureCountMax
        self.pausedUntil = now + min(Self.pauses.lowerBound << self.failureCount, Self.pauses.upperBound)
        self.failureCount = min(self.failureCount + 1, Self.failureCountMax)
        guard !isGivenUp else { return self.failed.subtract(taken) }
        self.failed.formUnion(taken)
        for token in taken where self.known.insert(token).inserted { self.tokens.append(token) }
    }
}
