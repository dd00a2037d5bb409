package import Bytes
package import LaunchPolicy

/// All devices in memory, stepped by one thread: states, due moments, queues of those that wait for a slot, books.
///
/// It decides nothing: `DeviceState` does. It has no clock: whoever drives it says with `advance` what time it is. It
/// knows no worker: whoever drives it says whether a slot is free, and claims devices that are ready for one.
package final class EmbeddedEngine {
    /// How long ended wakes are remembered, in milliseconds.
    static let endedWakeMemory: Int64 = 600_000

    /// Policy time: the moment of the current step.
    package internal(set) var now: Instant
    var configuration: EngineConfiguration
    /// Makes the numbers by which events name devices, and by which they are found.
    package let historyKey: HashKey
    /// The device that was found or had an event last, and its number: what is asked of one device is asked several
    /// times in a row.
    var lastNumbered: (device: DeviceIndex, number: UInt64) = (.none, 0)
    let random: () -> (UInt64, UInt64)
    var devices: DeviceTable
    var topics: [Topic] = []
    var topicNames: TopicNames
    var due = DueIndex()
    /// The devices of wakes in flight and of ended ones that are remembered.
    var wakes = WakeTable<DeviceIndex>()
    /// When each device's oldest ended wake is forgotten: a place for each device, however many wakes it ends.
    var forgetting = DueIndex()
    /// Devices that came to wait for a slot and were not yet offered to a driver.
    var newlyReady: [DeviceIndex] = []
    private var firstNewlyReady = 0
    /// Wakes whose deadline passed and whose slot was not yet taken back by a driver.
    var expiredWakes: [WakeID] = []
    private var firstExpiredWake = 0
    /// The first device that was not yet looked at under a policy that has changed; nil when all were.
    var firstUnjudged: Int?
    /// The books of all topics together.
    package internal(set) var totals = Books()
    /// The memory of all pushes that wait or are in flight.
    package internal(set) var contentBytes = 0
    /// The moment of what time alone has brought about and is being done; nil while somebody else's doing is.
    var dueMoment: Instant?
    /// How long launches were waited for, and wakes took.
    package var times = WakeTimes()
    /// Where traces are put together.
    var joinedTrace = ByteBuffer()
    var changed: [DeviceIndex] = []
    var changedTopics: [TopicIndex] = []
    /// What happened and was not yet taken by a driver.
    var events: [HistoryEvent] = []
    /// Topics by number, until all records are there.
    var restoredTopics: [UInt32: (name: [UInt8], books: Books)] = [:]

    /// An engine without devices.
    ///
    /// - `now`: policy time at the start.
    /// - `historyKey`: the key of the history that its events go to.
    /// - `random`: 128 unpredictable bits at each call; wake ids are made of them.
    package init(
        configuration: EngineConfiguration,
        now: Instant,
        historyKey: HashKey,
        random: @escaping () -> (UInt64, UInt64)
    ) {
        self.configuration = configuration
        self.now = now
        self.historyKey = historyKey
        self.random = random
        self.devices = DeviceTable(key: historyKey)
        self.topicNames = TopicNames(key: HashKey(random()))
    }
}

// MARK: - Time

extension EmbeddedEngine {
    /// Goes on to `now`, and ends and expires what is due by then.
    ///
    /// - `devicesMax`: the most devices looked at, so that a step is bounded.
    /// - Returns: whether everything that is due was looked at.
    package func advance(to now: Instant, devicesMax: Int) -> Bool {
        self.now = max(self.now, now)
        let isForgotten = self.forgetEndedWakes(devicesMax: devicesMax)
        defer { self.dueMoment = nil }
        for _ in 0..<devicesMax {
            self.dueMoment = self.due.first
            guard let device = self.due.popDue(self.now) else {
                return self.judge(devicesMax: devicesMax) && isForgotten
            }
            self.settle(device)
        }
        return isForgotten && self.firstUnjudged == nil && self.due.first.map { $0 > self.now } ?? true
    }

    /// The next moment at which `advance` has something to do.
    package var nextDue: Instant? { self.due.first }

    /// Takes one wake that ended because its deadline passed, the first first.
    package func popExpiredWake() -> WakeID? {
        guard self.firstExpiredWake < self.expiredWakes.count else {
            self.expiredWakes.removeAll(keepingCapacity: true)
            self.firstExpiredWake = 0
            return nil
        }
        defer { self.firstExpiredWake += 1 }
        return self.expiredWakes[self.firstExpiredWake]
    }

    /// Whether a device came to wait for a slot that was not taken yet.
    package var hasNewlyReady: Bool { self.firstNewlyReady < self.newlyReady.count }

    /// Takes one device that came to wait for a slot; it may have ceased to.
    package func popNewlyReady() -> DeviceIndex? {
        guard self.firstNewlyReady < self.newlyReady.count else {
            self.newlyReady.removeAll(keepingCapacity: true)
            self.firstNewlyReady = 0
            return nil
        }
        defer { self.firstNewlyReady += 1 }
        return self.newlyReady[self.firstNewlyReady]
    }

    /// Forgets the wakes that ended long enough ago, of so many devices at most.
    ///
    /// - Returns: whether all of them are forgotten.
    private func forgetEndedWakes(devicesMax: Int) -> Bool {
        let horizon = self.now - Self.endedWakeMemory
        for _ in 0..<devicesMax {
            guard let device = self.forgetting.popDue(self.now) else { return true }
            while let forgotten = self.devices[device].forgetEndedWake(endedBy: horizon) {
                self.wakes[forgotten.id] = nil
            }
            self.noteWhenForgotten(device)
        }
        return self.forgetting.first.map { $0 > self.now } ?? true
    }

    /// Remembers a wake that has ended; a device's oldest makes room for its newest.
    func rememberEnded(_ wake: EndedWake, _ device: DeviceIndex) {
        let forgotten = self.devices[device].endedWakes.change(from: Ring()) { $0.append(wake) }
        if let forgotten { self.wakes[forgotten.id] = nil }
        self.noteWhenForgotten(device)
    }

    func noteWhenForgotten(_ device: DeviceIndex) {
        let oldest = self.devices[device].endedWakes.value?.first
        self.forgetting.set(device, to: oldest.map { $0.at + Self.endedWakeMemory })
    }

    /// How many wakes are known by their ids, in flight or ended, and how many devices have ended ones.
    package var wakesKnown: (ids: Int, devicesWithEnded: Int) { (self.wakes.count, self.forgetting.count) }
}
