import Bytes
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
    let random: () -> (UInt64, UInt64)
    var devices: DeviceTable
    var topics: [Topic] = []
    var topicNames: TopicNames
    var due = DueIndex()
    /// The devices of wakes in flight and of ended ones that are remembered.
    var wakes: [WakeID: DeviceIndex] = [:]
    /// Ended wakes in the order in which they are forgotten; those before `firstEnded` have been.
    var ended: [(id: WakeID, device: DeviceIndex, at: Instant)] = []
    var firstEnded = 0
    /// Devices that came to wait for a slot and were not yet offered to a driver.
    var newlyReady: [DeviceIndex] = []
    private var firstNewlyReady = 0
    /// Wakes whose deadline passed and whose slot was not yet taken back by a driver.
    var expiredWakes: [WakeID] = []
    private var firstExpiredWake = 0
    /// The first device that was not yet looked at under a policy that has changed; nil when all were.
    var firstUnjudged: Int?
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
    /// - `random`: 128 unpredictable bits at each call; wake ids are made of them.
    package init(configuration: EngineConfiguration, now: Instant, random: @escaping () -> (UInt64, UInt64)) {
        self.configuration = configuration
        self.now = now
        self.random = random
        self.devices = DeviceTable(seed: random().0)
        self.topicNames = TopicNames(seed: random().0)
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
        self.forgetEndedWakes()
        defer { self.dueMoment = nil }
        for _ in 0..<devicesMax {
            self.dueMoment = self.due.first
            guard let device = self.due.popDue(self.now) else { return self.judge(devicesMax: devicesMax) }
            self.settle(device)
        }
        return self.firstUnjudged == nil && self.due.first.map { $0 > self.now } ?? true
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

    private func forgetEndedWakes() {
        let horizon = self.now - Self.endedWakeMemory
        while self.firstEnded < self.ended.count, self.ended[self.firstEnded].at <= horizon {
            let oldest = self.ended[self.firstEnded]
            self.firstEnded += 1
            let forgotten = self.devices[oldest.device].endedWakes.change(from: Ring()) { ended in
                ended.popFirst { $0.id == oldest.id }
            }
            if forgotten != nil { self.wakes[oldest.id] = nil }
        }
        if self.firstEnded > 1024, self.firstEnded * 2 > self.ended.count {
            self.ended.removeFirst(self.firstEnded)
            self.firstEnded = 0
        }
    }
}
