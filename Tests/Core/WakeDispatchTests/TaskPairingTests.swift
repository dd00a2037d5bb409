import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Pairing pushes, tasks and sessions with streams, at random", .timeLimit(.minutes(15)))
struct TaskPairingTests {
    @Test(
        "A free slot never waits while work fits it, the order is by second and last use, and nothing blocks",
        arguments: UInt64(1)...24
    )
    func random(seed: UInt64) {
        var run = PairingRun(seed: seed)
        for _ in 0..<700 {
            run.act()
            if !run.faults.isEmpty { break }
        }
        #expect(run.faults.isEmpty, "seed \(seed): \(run.faults.prefix(3))")
        for kind in LaunchKind.allCases { #expect(run.launches[kind, default: 0] > 0, "seed \(seed): \(kind)") }
        #expect(run.waits > 50 && run.queued > 10, "seed \(seed): \(run.waits) \(run.queued)")
    }
}

/// A random sequence of operations on devices and streams, each checked by models.
private struct PairingRun {
    private static let deviceCount = 12
    private static let topic = EngineRig.topicName(0)
    private static let continuedMax = 2
    private static let names = ["a.x", "a.y", "a.b.z", "b", "c.d", "a.", "ab.c", ".x"]
    private static let patterns = ["a.x", "a.*", "a.b.*", "b", "c.d", "c.*", "ab.c", ".*"]

    private var checker = WakeChecker()
    private var order = LaunchOrder()
    private var generator: SeededGenerator
    private let rig: DispatchRig
    private var nextStream = 0
    /// Wakes in flight in order of launch.
    private var wakes: [Delivery] = []
    private(set) var launches: [LaunchKind: Int] = [:]
    /// The number of launches that waited for a slot, summed over all operations.
    private(set) var waits = 0
    /// The number of launches that had waited.
    private(set) var queued = 0

    var faults: [String] { self.checker.faults + self.order.faults }

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
        var configuration = EngineRig.openToTasks([
            (.launchInterval, 2), (.processingInterval, 3), (.dailyLaunches, 10_000), (.maxPenalty, 0),
            (.processingWindow, 60), (.refreshFlex, 0), (.continuedMax, Double(Self.continuedMax)),
        ])
        configuration.streamsPerDeviceMax = 0
        self.rig = DispatchRig(configuration, seed: seed, workPerStepMax: seed % 2 == 0 ? 3 : 4096)
        for device in 0..<Self.deviceCount { self.rig.rig.register(device) }
    }

    private mutating func below(_ bound: Int) -> Int { self.generator.number(below: bound) }

    private mutating func some(_ all: [String], _ maximum: Int) -> [String] {
        (0..<self.below(maximum + 1)).map { _ in self.generator.pick(all) }
    }

    /// Performs one operation and all work that it leaves to later steps.
    mutating func act() {
        if self.below(3) > 0 {
            self.rig.advance(by: 1)
            self.note()
            self.judge()
        }
        self.perform(self.below(16), self.below(Self.deviceCount))
        self.note()
        while self.rig.dispatcher.isBehind {
            _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: 100)
            self.note()
        }
        self.judge()
    }

    private mutating func perform(_ verb: Int, _ device: Int) {
        let name = Self.names[self.below(Self.names.count)]
        switch verb {
        case 0: self.rig.submit(device, name)
        case 1: self.rig.submit(device, name, .processing([]))
        case 2, 3: self.rig.submit(device, name, .continued(.queue), resources: self.some(["gpu", "npu"], 2))
        case 4: self.rig.finish(device, name)
        case 5, 6: self.rig.push(device, self.below(2) == 0 ? .immediate : .considerate)
        case 7: self.rig.dispatcher.cancelTask(name, self.rig.rig.index(device))
        case 8:
            let state = [Conditions.AppState.background, .active, .active, .forceQuit][self.below(4)]
            self.rig.conditions(device) { $0.appState = state }
        case 9: self.rig.advance(by: Int64(1 + self.below(4000)))
        case 10: self.changeStreams()
        case 11:
            guard let stream = self.anyStream() else { break }
            self.checker.streams[stream]?.isPaused.toggle()
            self.rig.dispatcher.streamPaused(stream, self.checker.streams[stream]?.isPaused ?? false)
        case 12:
            guard let stream = self.anyStream() else { break }
            let slots = 1 + self.below(3)
            self.checker.streams[stream]?.slots = slots
            self.rig.dispatcher.slotsChanged(stream, to: slots)
        case _:
            guard !self.wakes.isEmpty else { break }
            let wake = self.wakes.remove(at: self.below(self.wakes.count))
            if wake.kind == .push {
                self.rig.report([.newData, .failed][self.below(2)] as FetchResult, wake.wake)
            } else {
                self.rig.report([.success, .failure][self.below(2)] as TaskResult, wake.wake)
            }
        }
    }

    private mutating func anyStream() -> StreamAddress? {
        let open = self.checker.streams.keys.sorted { $0.number < $1.number }
        return open.isEmpty ? nil : open[self.below(open.count)]
    }

    private mutating func changeStreams() {
        if self.checker.streams.count >= 5, let stream = self.anyStream() {
            _ = self.checker.ended(stream)
            self.rig.dispatcher.streamEnded(stream)
            return
        }
        let devices = self.below(3) == 0 ? (0..<3).map { _ in self.below(Self.deviceCount) } : []
        let slots = 1 + self.below(2)
        let takes = StreamTakes(
            isForPushes: self.below(3) > 0,
            tasks: self.some(Self.patterns, 3),
            sessions: self.some(Self.patterns, 3),
            resources: Set(self.some(["gpu", "npu"], 2))
        )
        self.nextStream += 1
        self.checker.streams[DispatchRig.address(self.nextStream)] = WakeChecker.Stream(
            topic: Self.topic,
            slots: slots,
            devices: Set(devices.map { EngineRig.token($0) }),
            takes: takes
        )
        self.rig.subscribe(self.nextStream, slots: slots, takes, devices: devices, stallsWhenSilent: false)
    }

    private var given: [(item: LaunchOrder.Item, stream: WakeChecker.Stream)] = []

    /// Passes the messages to streams to the models.
    private mutating func note() {
        for event in self.rig.output.take() {
            switch event {
            case .delivered(let delivery):
                let (item, laneMax) = (LaunchOrder.Item(delivery), delivery.kind == .continued ? Self.continuedMax : 1)
                self.launches[delivery.kind, default: 0] += 1
                if self.order.waiting[item] != nil { self.queued += 1 }
                let fewest = self.checker.naming(delivery).map(\.open.count).min()
                if let fewest, self.checker.streams[delivery.stream]?.open.count != fewest {
                    self.order.fail("\(item) passed a stream that names its device and has fewer wakes")
                }
                self.checker.delivered(delivery, at: self.rig.rig.instant, laneMax: laneMax)
                self.wakes.append(delivery)
                if let stream = self.checker.streams[delivery.stream], stream.devices.isEmpty {
                    self.given.append((item, stream))
                }
            case .released(let wake, _):
                _ = self.checker.lost(wake)
                self.wakes.removeAll { $0.wake == wake }
            case .expired, .drained, .conditions: break
            }
        }
    }

    /// Passes all launches that wait for a slot to the models.
    private mutating func judge() {
        var waiting: [LaunchOrder.Item: Instant] = [:]
        for device in 0..<Self.deviceCount {
            let snapshot = self.rig.engine.snapshot(self.rig.rig.index(device))
            if snapshot.held.contains(.worker) {
                waiting[LaunchOrder.Item(token: snapshot.token, target: .push, arrival: 0)] = snapshot.usage.last
            }
            for task in snapshot.tasks {
                guard case .waiting(_, [.worker], false) = task.state else { continue }
                let arrival = task.task.arrival
                let item = LaunchOrder.Item(token: snapshot.token, target: task.target, arrival: arrival)
                waiting[item] = snapshot.usage.last
            }
        }
        self.waits += waiting.count
        self.order.ended(self.rig.rig.instant, waiting: waiting, given: self.given)
        for item in waiting.keys where self.checker.couldTake(item.token, topic: Self.topic, item.target) {
            self.order.fail("\(item) waits, and a stream is free for it")
        }
        self.given = []
    }
}

/// A model of the order of launches that wait for a slot. It uses no code of the dispatcher.
struct LaunchOrder {
    /// A launch that waits for a slot, or has one.
    struct Item: Hashable {
        let token: DeviceToken
        let target: LaunchTarget
        /// The arrival number on the device; 0 for a push.
        let arrival: UInt64

        var isPush: Bool { self.target.kind == .push }
    }

    /// The first observation of a waiting launch.
    struct Since {
        let verb: Int
        /// The time of the previous operation: the launch began to wait between the two.
        let from: Instant
        let moment: Instant
        /// The last use of its device by then.
        let lastUse: Instant

        /// The second in which it began to wait; nil if that is not known.
        private var second: Int64? {
            let (first, last) = (self.from.milliseconds / 1000, self.moment.milliseconds / 1000)
            return first == last ? first : nil
        }

        /// Returns true if it certainly goes first.
        func launchesBefore(_ other: Since) -> Bool {
            if self.moment.milliseconds / 1000 < other.from.milliseconds / 1000 { return true }
            guard let second = self.second, second == other.second else { return false }
            return self.lastUse == other.lastUse ? self.verb < other.verb : self.lastUse > other.lastUse
        }
    }

    /// The launches that wait for a slot.
    private(set) var waiting: [Item: Since] = [:]
    private var verb = 0
    private var moment = Instant.distantPast
    private(set) var faults: [String] = []

    mutating func fail(_ what: String) { self.faults.append("verb \(self.verb): \(what)") }

    /// Checks the state after an operation at this time.
    ///
    /// - `waiting`: all launches that wait for a slot now, with the last use of their devices.
    /// - `given`: the launches on streams that name no device during the operation.
    mutating func ended(
        _ moment: Instant,
        waiting now: [Item: Instant],
        given: [(item: Item, stream: WakeChecker.Stream)]
    ) {
        self.verb += 1
        self.checkOrder(now, given)
        let from = self.moment
        self.moment = moment
        let waiting = now.map { item, lastUse in
            (item, self.waiting[item] ?? Since(verb: self.verb, from: from, moment: moment, lastUse: lastUse))
        }
        self.waiting = Dictionary(uniqueKeysWithValues: waiting)
    }

    /// Checks that a stream gets the earliest second first and, within a second, the most recently used device first.
    private mutating func checkOrder(_ now: [Item: Instant], _ given: [(item: Item, stream: WakeChecker.Stream)]) {
        for (item, stream) in given {
            func isTaken(_ item: Item) -> Bool { stream.takes(item.token, topic: stream.topic, item.target) }
            guard let since = self.waiting[item] else { continue }
            for (other, before) in self.waiting
            where before.launchesBefore(since) && now[other] != nil && isTaken(other) {
                // The order of a push and a task that began to wait in the same millisecond is not checked.
                func mayPrecede(_ one: Item, _ since: Since) -> Bool {
                    !before.launchesBefore(since) || (one.isPush != other.isPush && since.from <= before.moment)
                }
                // By its device's policy, it may have replaced another launch of that device.
                let isInPlace = self.waiting.contains {
                    $0.key.token == item.token && mayPrecede($0.key, $0.value) && isTaken($0.key)
                }
                if !isInPlace { self.fail("\(item) went before \(other)") }
            }
        }
    }
}

extension LaunchOrder.Item {
    init(_ delivery: Delivery) {
        self.init(token: delivery.token, target: delivery.target, arrival: delivery.task?.task.arrival ?? 0)
    }
}

/// The parameters of a stream, which determine the launches it takes.
struct StreamTakes {
    static let pushes = StreamTakes()

    var isForPushes = true
    /// Identifiers, or prefixes with `.*`.
    var tasks: [String] = []
    var sessions: [String] = []
    var resources: Set<String> = []
    var receivesConditions = false

    func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: self.isForPushes
        case .urlSession: Self.matches(self.sessions, target.name)
        case .appRefresh, .processing, .continued:
            Self.matches(self.tasks, target.name) && self.resources.isSuperset(of: target.resources)
        }
    }

    /// Returns true if one of the patterns matches the name.
    private static func matches(_ patterns: [String], _ name: String) -> Bool {
        patterns.contains { pattern in
            guard pattern.hasSuffix(".*") else { return pattern == name }
            let beginning = pattern.dropLast()
            return name.hasPrefix(beginning) && name.count > beginning.count
        }
    }
}

extension DispatchRig {
    /// Subscribes a worker to these launches of `devices`, or of all devices of the topic.
    func subscribe(
        _ stream: Int,
        topic: Int = 0,
        slots: Int,
        _ takes: StreamTakes,
        devices: [Int],
        stallsWhenSilent: Bool = true
    ) {
        self.subscribe(
            stream,
            topic: topic,
            slots: slots,
            kinds: takes.isForPushes ? [.push] : [],
            tasks: takes.tasks,
            sessions: takes.sessions,
            resources: takes.resources.sorted(),
            reportsConditions: takes.receivesConditions,
            devices: devices,
            stallsWhenSilent: stallsWhenSilent
        )
    }
}
