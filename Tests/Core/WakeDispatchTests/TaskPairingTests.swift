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
            if !run.model.faults.isEmpty { break }
        }
        #expect(run.model.faults.isEmpty, "seed \(seed): \(run.model.faults.prefix(3))")
        for kind in LaunchKind.allCases { #expect(run.launches[kind, default: 0] > 0, "seed \(seed): \(kind)") }
        #expect(run.waits > 50 && run.queued > 10, "seed \(seed): \(run.waits) \(run.queued)")
    }
}

/// A random sequence of operations on devices and streams, each checked by a model.
private struct PairingRun {
    private static let deviceCount = 12
    private static let names = ["a.x", "a.y", "a.b.z", "b", "c.d"]
    private static let patterns = ["a.x", "a.*", "a.b.*", "b", "c.d", "c.*"]

    var model = PairingModel()
    private var generator: SeededGenerator
    private let rig: DispatchRig
    private var nextStream = 0
    /// Wakes in flight in order of launch, with a flag for those of pushes.
    private var wakes: [(id: WakeID, isPush: Bool)] = []
    private(set) var launches: [LaunchKind: Int] = [:]
    /// The number of launches that waited for a slot, summed over all operations.
    private(set) var waits = 0
    /// The number of launches that had waited.
    private(set) var queued = 0

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
        var configuration = EngineRig.openToTasks([
            (.launchInterval, 2), (.processingInterval, 3), (.dailyLaunches, 10_000), (.maxPenalty, 0),
            (.processingWindow, 60), (.refreshFlex, 0), (.continuedMax, 2),
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
            self.model.streams[stream]?.isPaused.toggle()
            self.rig.pause(stream, self.model.streams[stream]?.isPaused ?? false)
        case 12:
            guard let stream = self.anyStream() else { break }
            let slots = 1 + self.below(3)
            self.model.streams[stream]?.slots = slots
            self.rig.dispatcher.slotsChanged(DispatchRig.address(stream), to: slots)
        case _:
            guard !self.wakes.isEmpty else { break }
            let wake = self.wakes.remove(at: self.below(self.wakes.count))
            if wake.isPush {
                self.rig.report([.newData, .failed][self.below(2)] as FetchResult, wake.id)
            } else {
                self.rig.report([.success, .failure][self.below(2)] as TaskResult, wake.id)
            }
        }
    }

    private mutating func anyStream() -> Int? {
        let open = self.model.streams.keys.sorted()
        return open.isEmpty ? nil : open[self.below(open.count)]
    }

    private mutating func changeStreams() {
        if self.model.streams.count >= 5, let stream = self.anyStream() {
            self.model.streams[stream] = nil
            self.rig.endStream(stream)
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
        self.model.streams[self.nextStream] = PairingModel.Stream(slots: slots, takes: takes, devices: Set(devices))
        self.rig.subscribe(
            self.nextStream,
            slots: slots,
            kinds: takes.isForPushes ? [.push] : [],
            tasks: takes.tasks,
            sessions: takes.sessions,
            resources: takes.resources.sorted(),
            devices: devices,
            stallsWhenSilent: false
        )
    }

    private var given: [(item: PairingModel.Item, stream: Int)] = []

    /// Passes the messages to streams to the model.
    private mutating func note() {
        for event in self.rig.output.take() {
            switch event {
            case .delivered(let delivery):
                let item = self.item(delivery)
                self.launches[delivery.kind, default: 0] += 1
                if self.model.waiting[item] != nil { self.queued += 1 }
                self.model.delivered(item, delivery.wake, to: delivery.stream.number)
                self.wakes.append((delivery.wake, item.isPush))
                if self.model.streams[delivery.stream.number]?.devices.isEmpty == true {
                    self.given.append((item, delivery.stream.number))
                }
            case .released(let wake, let stream):
                self.model.released(wake, stream.number)
                self.wakes.removeAll { $0.id == wake }
            case .expired, .drained, .conditions: break
            }
        }
    }

    private func item(_ delivery: Delivery) -> PairingModel.Item {
        PairingModel.Item(
            device: (0..<Self.deviceCount).first { EngineRig.token($0) == delivery.token } ?? -1,
            name: delivery.task?.name,
            isSession: delivery.kind == .urlSession,
            resources: delivery.task?.details.resources ?? [],
            arrival: delivery.task?.task.arrival ?? 0
        )
    }

    /// Passes all launches that wait for a slot to the model.
    private mutating func judge() {
        var waiting: [PairingModel.Item] = []
        for device in 0..<Self.deviceCount {
            let index = self.rig.rig.index(device)
            if self.rig.engine.snapshot(index).held.contains(.worker) {
                waiting.append(
                    PairingModel.Item(device: device, name: nil, isSession: false, resources: [], arrival: 0)
                )
            }
            for task in self.rig.engine.tasks(of: index) {
                guard case .waiting(_, let held, let laneIsFull) = task.state, held == [.worker], !laneIsFull else {
                    continue
                }
                waiting.append(
                    PairingModel.Item(
                        device: device,
                        name: task.name,
                        isSession: task.task.kind == .urlSession,
                        resources: task.details.resources,
                        arrival: task.task.arrival
                    )
                )
            }
        }
        self.waits += waiting.count
        let uses = (0..<Self.deviceCount).map { self.rig.engine.snapshot(self.rig.rig.index($0)).usage.last }
        self.model.ended(self.rig.rig.instant, waiting: waiting, given: self.given, uses: uses)
        self.given = []
    }
}

/// A model of pairing that searches all streams and all waiting launches. It uses no code of the dispatcher.
struct PairingModel {
    struct Stream {
        var slots: Int
        let takes: StreamTakes
        let devices: Set<Int>
        var isPaused = false
        var wakes: Set<WakeID> = []

        var isFree: Bool { !self.isPaused && self.wakes.count < self.slots }

        func takes(_ item: Item) -> Bool {
            guard self.devices.isEmpty || self.devices.contains(item.device) else { return false }
            // Streams do not distinguish the kinds of requests.
            let kind: LaunchKind = item.isPush ? .push : item.isSession ? .urlSession : .processing
            return self.takes.takes(LaunchTarget(kind: kind, name: item.name ?? "", resources: item.resources))
        }
    }

    /// A launch that waits for a slot, or has one.
    struct Item: Hashable {
        let device: Int
        /// The name; nil for a push.
        let name: String?
        let isSession: Bool
        let resources: [String]
        /// The arrival number on the device.
        let arrival: UInt64

        var isPush: Bool { self.name == nil }
    }

    var streams: [Int: Stream] = [:]
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

    /// Records a wake of a stream.
    mutating func delivered(_ item: Item, _ wake: WakeID, to number: Int) {
        guard let stream = self.streams[number] else { return self.faults.append("\(number) has ended") }
        if !stream.takes(item) { self.faults.append("\(number) did not ask for \(item)") }
        if !stream.isFree { self.faults.append("\(number) was not free for \(item)") }
        let naming = self.streams.values.filter { $0.isFree && !$0.devices.isEmpty && $0.takes(item) }
        if let fewest = naming.map(\.wakes.count).min(), stream.devices.isEmpty || stream.wakes.count != fewest {
            self.faults.append("\(number) went before a stream that names \(item)")
        }
        self.streams[number]?.wakes.insert(wake)
    }

    mutating func released(_ wake: WakeID, _ number: Int) { self.streams[number]?.wakes.remove(wake) }

    /// Checks the state after an operation at this time.
    ///
    /// - `waiting`: all launches that wait for a slot now.
    /// - `given`: the launches on streams that name no device during the operation.
    /// - `uses`: the last use of each device.
    mutating func ended(
        _ moment: Instant,
        waiting now: [Item],
        given: [(item: Item, stream: Int)],
        uses: [Instant]
    ) {
        self.verb += 1
        for item in now {
            for (number, stream) in self.streams where stream.isFree && stream.takes(item) {
                self.faults.append("verb \(self.verb): \(item) waits, and \(number) is free for it")
            }
        }
        self.checkOrder(Set(now), given)
        let from = self.moment
        self.moment = moment
        let waiting = now.map { item in
            let since = Since(verb: self.verb, from: from, moment: moment, lastUse: uses[item.device])
            return (item, self.waiting[item] ?? since)
        }
        self.waiting = Dictionary(uniqueKeysWithValues: waiting)
    }

    /// Checks that a stream gets the earliest second first and, within a second, the most recently used device first.
    private mutating func checkOrder(_ now: Set<Item>, _ given: [(item: Item, stream: Int)]) {
        for (item, number) in given {
            guard let since = self.waiting[item], let stream = self.streams[number] else { continue }
            for (other, before) in self.waiting where before.launchesBefore(since) && now.contains(other) {
                guard stream.takes(other) else { continue }
                // The order of a push and a task that began to wait in the same millisecond is not checked.
                func mayPrecede(_ one: Item, _ since: Since) -> Bool {
                    !before.launchesBefore(since) || (one.isPush != other.isPush && since.from <= before.moment)
                }
                // By its device's policy, it may have replaced another launch of that device.
                let isInPlace = self.waiting.contains {
                    $0.key.device == item.device && mayPrecede($0.key, $0.value) && stream.takes($0.key)
                }
                if !isInPlace { self.faults.append("verb \(self.verb): \(item) went before \(other) to \(number)") }
            }
        }
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
