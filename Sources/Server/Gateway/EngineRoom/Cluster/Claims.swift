import Engine
import Policy
import Wire

/// Which topics may have something that waits for a slot, and what free slots here have asked for since.
///
/// Streams that take the same ask together: one claim at a time, so that slots that come free meanwhile are asked for
/// together, and several at a time while more waits than one takes and there are slots for more.
struct Claims {
    /// Streams that take the same, and ask together.
    struct Shape: Hashable {
        let topic: TopicIndex
        /// The number of what they take.
        private let number: UInt64

        init(_ slots: FreeSlots) {
            self.topic = slots.topic
            self.number = slots.number
        }
    }

    /// The most rows of one claim.
    static let countMax = 256
    /// The most claims of one shape that are open at a time.
    private static let openPerShapeMax = 4

    /// The claims of one shape that are open.
    private struct Open {
        var count = 0
        /// The slots that they may fill.
        var slots = 0
        /// How often something had been heard when the first of them began.
        var heard: UInt64 = 0
        /// Whether one of them has left something that it could have had.
        var hasLeft = false
    }

    /// How often it was heard that something of a topic may wait.
    private var heard: [TopicIndex: UInt64] = [:]
    /// Topics of which something was heard that was not asked for by all shapes yet.
    private var topics: Set<TopicIndex> = []
    /// Topics of which something waits, as far as is known, that no slot was free for.
    private var owed: Set<TopicIndex> = []
    /// As of when each shape has asked.
    private var asked: [Shape: UInt64] = [:]
    private var open: [Shape: Open] = [:]
    /// Shapes of which a claim found as much as it might take: more may wait than the next one takes.
    private var backlogs: Set<Shape> = []

    /// How many claims are open.
    private(set) var openCount = 0

    /// Whether something may wait for free slots.
    var isEmpty: Bool { self.topics.isEmpty }

    /// Something of a topic may wait for a slot.
    mutating func heard(_ topic: TopicIndex) {
        self.heard[topic, default: 0] += 1
        self.topics.insert(topic)
    }

    /// The next claim, which is open from now on; nil when there is none.
    ///
    /// - `freeSlots`: those of a topic.
    /// - `devices`: those that the streams name which have such slots; empty for every device.
    mutating func next(
        _ freeSlots: (TopicIndex) -> [FreeSlots],
        devices: (FreeSlots) -> [DeviceToken]
    ) -> (shape: Shape, plan: ReadyPlan)? {
        for topic in self.topics.sorted(by: { $0.rawValue < $1.rawValue }) {
            var isWaitedFor = false
            var isAnyFree = false
            for slots in freeSlots(topic) {
                isAnyFree = true
                let shape = Shape(slots)
                let heard = self.heard[topic] ?? 0
                guard (self.asked[shape] ?? 0) < heard else { continue }
                // What is open may have been asked before the last was heard.
                isWaitedFor = true
                let count = min(self.slotsLeft(slots.count, shape), Self.countMax)
                guard count > 0 else { continue }
                self.begin(shape, count, heard)
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

    /// How many of the free slots another claim may fill.
    private func slotsLeft(_ free: Int, _ shape: Shape) -> Int {
        guard let open = self.open[shape] else { return free }
        let left = free - open.slots
        return self.backlogs.contains(shape) && open.count < Self.openPerShapeMax && left >= Self.countMax ? left : 0
    }

    private mutating func begin(_ shape: Shape, _ slots: Int, _ heard: UInt64) {
        var open = self.open[shape] ?? Open(heard: heard)
        open.count += 1
        open.slots += slots
        self.open[shape] = open
        self.openCount += 1
        // Of what is known to be more the next one asks as well.
        if !self.backlogs.contains(shape) { self.asked[shape] = heard }
    }

    /// - Returns: how often something had been heard when the first open claim of the shape began; nil when one of them
    ///   has left something, of which another one's finding no more says nothing.
    private mutating func end(_ shape: Shape, _ slots: Int, again: Bool = false) -> UInt64? {
        guard var open = self.open.removeValue(forKey: shape) else { return 0 }
        open.count -= 1
        open.slots -= slots
        if again { open.hasLeft = true }
        if open.count > 0 { self.open[shape] = open }
        self.openCount -= 1
        return open.hasLeft ? nil : open.heard
    }

    /// Slots of a topic have come free: what has waited for any may wait for them.
    mutating func slotsFreed(_ topic: TopicIndex) {
        if self.owed.remove(topic) != nil { self.topics.insert(topic) }
    }

    /// Streams of some topic have slots again.
    mutating func lookAgain() {
        self.topics.formUnion(self.heard.keys)
    }

    /// A claim has ended.
    ///
    /// - `slots`: those it might fill.
    /// - `again`: there may be more that it could have had.
    mutating func ended(_ shape: Shape, slots: Int, again: Bool) {
        let heard = self.end(shape, slots, again: again)
        self.topics.insert(shape.topic)
        if again {
            self.backlogs.insert(shape)
            self.asked[shape] = nil
        } else if self.backlogs.remove(shape) != nil {
            self.asked[shape] = heard
        }
        // Shapes come and go with their streams.
        guard self.asked.count + self.backlogs.count > 4096, self.open.isEmpty else { return }
        self.asked = [:]
        self.backlogs = []
    }

    /// A claim came to nothing, and is made again when something is heard.
    mutating func failed(_ shape: Shape, slots: Int) {
        let heard = self.end(shape, slots)
        if self.backlogs.remove(shape) != nil { self.asked[shape] = heard }
    }
}

/// When something of the store's devices is due: this gateway does it, unless another one is faster.
struct DueDriver {
    /// The most moments that are kept; the latest are left to the view of each second.
    private static let momentsMax = 4096

    /// Moments at which something is due.
    private var moments = MomentQueue<Void>()
    /// A transaction does what is due.
    var isOpen = false
    /// A second has passed, or there was more than a transaction takes: look, whatever is known.
    var isForced = true

    /// The earliest moment that is known.
    var next: Instant? { self.moments.first.map { Instant(milliseconds: $0.moment) } }

    func isDue(at now: Instant) -> Bool {
        !self.isOpen && (self.isForced || self.next.map { $0 <= now } ?? false)
    }

    /// Something will be due.
    mutating func note(_ moment: Instant) {
        guard moment != self.next, self.moments.count < Self.momentsMax else { return }
        self.moments.insert((), at: moment.milliseconds)
    }

    /// A transaction begins that does what is due.
    mutating func begun() {
        self.isOpen = true
        self.isForced = false
    }

    /// A transaction has ended, and what was due by `now` is done, unless others do it.
    mutating func ended(at now: Instant?, hasMore: Bool) {
        self.isOpen = false
        if hasMore { self.isForced = true }
        guard let now else { return }
        while self.moments.popDue(now.milliseconds) != nil {}
    }
}

/// All devices are judged anew by policies that have just begun: some may launch earlier than their rows say, and
/// nobody would look at them before that moment.
///
/// The gateway that begins the policies reads the rows in the order of their tokens, a piece at a time after everything
/// else, and has each piece judged by a transaction on its devices. When it ends in the middle, the devices behind are
/// judged when something happens to them.
struct PolicySweep {
    /// What is to be done next.
    enum Step: Hashable {
        /// Devices behind this one are read.
        case read(after: DeviceToken?)
        /// Devices that were read are judged.
        case judge([DeviceToken])
    }

    /// The rows of a piece.
    static let rowsMax = 256

    /// Nil when nothing is left.
    private var step: Step?
    private var isLast = false
    private var isOpen = false
    /// Policies have begun since the open step did.
    private var isStartedAgain = false
    /// A step has failed: the next second goes on.
    private var isPaused = false

    /// What to do now, if anything.
    var next: Step? { self.isOpen || self.isPaused ? nil : self.step }

    /// Policies have begun.
    mutating func start() {
        self.step = .read(after: nil)
        self.isStartedAgain = self.isOpen
    }

    mutating func begun() { self.isOpen = true }

    /// A piece was read.
    mutating func read(_ tokens: [DeviceToken], hasMore: Bool) {
        guard !self.endsForNothing() else { return }
        self.step = tokens.isEmpty ? nil : .judge(tokens)
        self.isLast = !hasMore
    }

    /// A piece is judged.
    mutating func judged() {
        guard case .judge(let tokens) = self.step, !self.endsForNothing() else {
            self.isOpen = false
            return
        }
        self.step = self.isLast ? nil : .read(after: tokens.last)
    }

    /// A step came to nothing, and is taken again.
    mutating func failed() {
        self.isPaused = !self.endsForNothing()
    }

    mutating func secondPassed() { self.isPaused = false }

    /// The open step is over.
    ///
    /// - Returns: whether the sweep has begun anew meanwhile.
    private mutating func endsForNothing() -> Bool {
        defer { self.isStartedAgain = false }
        self.isOpen = false
        return self.isStartedAgain
    }
}

/// The wakes that streams of this gateway hold, of which device each is, when its worker may have to be warned, and
/// when somebody has to look whether one has ended elsewhere: its slot would stay taken if the notice of that was lost.
struct HeldWakes {
    private struct Held {
        let device: DeviceToken
        /// When to look for it.
        var lookAt: Instant
        /// When to read its row again, to warn its worker if the deadline is near.
        var warnAt: Instant = .distantFuture
    }

    /// How long after its deadline a wake is looked for, and after that each time, in milliseconds.
    private static let patience: Int64 = 5000
    /// For how long warnings are put in order in advance, in milliseconds: until after the next second has passed.
    private static let foresight: Int64 = 2000

    /// Wakes whose workers may have to be warned before `foreseen`. Others, which are the most, end long before that.
    private var warnings = MomentQueue<WakeID>()
    private var foreseen = Instant.distantPast
    private var wakes: [WakeID: Held] = [:]

    /// The device of a wake that a stream here holds.
    func device(of wake: WakeID) -> DeviceToken? { self.wakes[wake]?.device }

    mutating func insert(_ wake: WakeID, of device: DeviceToken, deadline: Instant) {
        self.wakes[wake] = Held(device: device, lookAt: deadline + Self.patience)
    }

    mutating func remove(_ wake: WakeID) { self.wakes[wake] = nil }

    mutating func removeAll() {
        self.wakes = [:]
        self.warnings = MomentQueue()
    }

    /// Sets the moment at which the gateway reads whether it must warn the worker of a wake.
    mutating func look(_ wake: WakeID, at moment: Instant) {
        guard self.wakes[wake] != nil else { return }
        self.wakes[wake]?.warnAt = moment
        if moment < self.foreseen { self.warnings.insert(wake, at: moment.milliseconds) }
    }

    /// Policies have changed, and with them the times of warnings: every wake is looked at again.
    mutating func policyChanged(at now: Instant) {
        self.warnings = MomentQueue()
        for wake in self.wakes.keys.sorted(by: { ($0.first, $0.second) < ($1.first, $1.second) }) {
            self.wakes[wake]?.warnAt = now
            self.warnings.insert(wake, at: now.milliseconds)
        }
    }

    /// The next moment at which a worker may have to be warned.
    var nextWarning: Instant? { self.warnings.first.map { Instant(milliseconds: $0.moment) } }

    /// Takes wakes whose workers may have to be warned: their deadlines may have moved.
    mutating func expiring(at now: Instant, countMax: Int) -> [WakeID] {
        var expiring: [WakeID] = []
        while expiring.count < countMax, let entry = self.warnings.popDue(now.milliseconds) {
            guard self.wakes[entry.value]?.warnAt.milliseconds == entry.moment else { continue }
            self.wakes[entry.value]?.warnAt = .distantFuture
            expiring.append(entry.value)
        }
        return expiring
    }

    /// A second has passed: puts in order who may have to be warned next.
    mutating func foresee(from now: Instant) {
        let (before, foreseen) = (self.foreseen, now + Self.foresight)
        guard foreseen > before else { return }
        self.foreseen = foreseen
        for (wake, held) in self.wakes where held.warnAt >= before && held.warnAt < foreseen {
            self.warnings.insert(wake, at: held.warnAt.milliseconds)
        }
    }

    /// Wakes that should have ended, each again only after a while.
    mutating func overdue(at now: Instant, countMax: Int) -> [WakeID] {
        var overdue: [WakeID] = []
        for (wake, held) in self.wakes where held.lookAt <= now {
            overdue.append(wake)
            if overdue.count == countMax { break }
        }
        for wake in overdue { self.wakes[wake]?.lookAt = now + Self.patience }
        // In an order that does not hang on the process.
        return overdue.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
    }
}

/// Devices that others have changed, each once until it is taken, in the order in which that was heard.
///
/// After a read that failed, the next one begins after a pause, which doubles with each failure, and is about half as
/// many devices.
struct ChangedDevices {
    /// The most devices that are taken at a time.
    private static let countMax = Claims.countMax
    /// The shortest and the longest pause, in milliseconds.
    private static let pauses: ClosedRange<Int64> = 1000...32_000
    /// After so many failures devices are read one by one.
    private static let failureCountMax = 8

    private var tokens: [DeviceToken] = []
    private var known: Set<DeviceToken> = []
    /// The number of reads that have failed since one succeeded.
    private var failureCount = 0
    private var pausedUntil: Int64 = .min

    var isEmpty: Bool { self.tokens.isEmpty }

    /// True if the last read failed.
    var hasFailed: Bool { self.failureCount > 0 }

    /// Returns true until the pause after a failed read is over.
    ///
    /// - Parameter now: in milliseconds since the machine started.
    func isPaused(at now: Int64) -> Bool { now < self.pausedUntil }

    /// Appends a device, unless it waits already, or as many as may.
    mutating func append(_ token: DeviceToken, countMax: Int) {
        guard self.tokens.count < countMax, self.known.insert(token).inserted else { return }
        self.tokens.append(token)
    }

    /// Takes the first ones.
    mutating func take() -> [DeviceToken] {
        let taken = Array(self.tokens.prefix(max(1, Self.countMax >> self.failureCount)))
        self.tokens.removeFirst(taken.count)
        self.known.subtract(taken)
        return taken
    }

    /// A read of devices that were taken has succeeded.
    mutating func succeeded() {
        self.failureCount = max(0, self.failureCount - 1)
        self.pausedUntil = .min
    }

    /// A read of devices that were taken has failed. They are read again after all others. A single one whose read goes
    /// on to fail is given up: others wait for it.
    mutating func failed(_ taken: [DeviceToken], at now: Int64) {
        let isGivenUp = taken.count == 1 && self.failureCount == Self.failureCountMax
        self.pausedUntil = now + min(Self.pauses.lowerBound << self.failureCount, Self.pauses.upperBound)
        self.failureCount = min(self.failureCount + 1, Self.failureCountMax)
        guard !isGivenUp else { return }
        for token in taken where self.known.insert(token).inserted { self.tokens.append(token) }
    }
}
