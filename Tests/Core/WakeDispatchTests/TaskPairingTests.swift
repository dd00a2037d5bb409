import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Pairing pushes, tasks and sessions with streams, at random", .timeLimit(.minutes(15)))
struct TaskPairingTests {
    @Test(
        "Nothing waits that a free slot could take, what came first goes first, and nothing blocks",
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

/// A random life of some devices and streams, each verb of which a model looks at.
private struct PairingRun {
    private static let deviceCount = 12
    private static let names = ["a.x", "a.y", "a.b.z", "b", "c.d"]
    private static let patterns = ["a.x", "a.*", "a.b.*", "b", "c.d", "c.*"]

    var model = PairingModel()
    private var generator: SeededGenerator
    private let rig: DispatchRig
    private var nextStream = 0
    /// Wakes in flight, in the order of their launches, and whether they are of pushes.
    private var wakes: [(id: WakeID, isPush: Bool)] = []
    private(set) var launches: [LaunchKind: Int] = [:]
    /// How much waited for a slot, summed over verbs.
    private(set) var waits = 0
    /// How much was launched that had waited.
    private(set) var queued = 0

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
        var configuration = EngineRig.openToTasks([
            ("launchInterval", 2), ("processingInterval", 3), ("dailyLaunches", 10_000), ("maxPenalty", 0),
            ("processingWindow", 60), ("refreshFlex", 0), ("continuedMax", 2),
        ])
        configuration.streamsPerDeviceMax = 0
        self.rig = DispatchRig(configuration, seed: seed, workPerStepMax: seed % 2 == 0 ? 3 : 4096)
        for device in 0..<Self.deviceCount { self.rig.rig.register(device) }
    }

    private mutating func below(_ bound: Int) -> Int { self.generator.number(below: bound) }

    private mutating func some(_ all: [String], _ most: Int) -> [String] {
        (0..<self.below(most + 1)).map { _ in self.generator.pick(all) }
    }

    /// One verb, and what is left of it.
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
        let stream = PairingModel.Stream(
            slots: 1 + self.below(2),
            takesPushes: self.below(3) > 0,
            tasks: self.some(Self.patterns, 3),
            sessions: self.some(Self.patterns, 3),
            resources: Set(self.some(["gpu", "npu"], 2)),
            devices: Set(devices)
        )
        self.nextStream += 1
        self.model.streams[self.nextStream] = stream
        let request = SubscriptionRequest(
            slots: stream.slots,
            takesPushes: stream.takesPushes,
            tasks: stream.tasks.map { IdentifierPattern($0) },
            sessions: stream.sessions.map { IdentifierPattern($0) },
            resources: stream.resources.sorted(),
            devices: devices.map { EngineRig.token($0) },
            stallsWhenSilent: false
        )
        _ = EngineRig.topicName(0).withByteView {
            self.rig.dispatcher.subscribed(DispatchRig.address(self.nextStream), topic: $0, request)
        }
    }

    private var given: [(item: PairingModel.Item, stream: Int)] = []

    /// Notes what streams were told.
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

    /// Shows the model all that waits for a slot.
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
        self.model.ended(self.rig.rig.instant, waiting: waiting, given: self.given)
        self.given = []
    }
}
