import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Devices with random events. The explanation about a future push must match the reply to a dry run.
@Suite("The explanation of the next push, and a dry run of it", .timeLimit(.minutes(15)))
struct OutlookSimulationTests {
    @Test("Both agree in ten thousand states")
    func agreement() {
        let world = OutlookWorld(seed: 44)
        for _ in 0..<10_000 {
            world.move()
            world.compare()
        }
        // The random events have produced every verdict.
        #expect(world.verdicts.count == 5 && world.verdicts.values.allSatisfy { $0 > 20 }, "\(world.verdicts)")
        #expect(world.holds.count == 7 && world.holds.values.allSatisfy { $0 > 20 }, "\(world.holds)")
        #expect(world.severalHolds > 100)
    }
}

/// A few devices and workers, and the observations about them.
private final class OutlookWorld {
    /// The number of times that each verdict, and a refusal, occurred.
    private(set) var verdicts: [String: Int] = [:]
    /// The number of times that each hold decided.
    private(set) var holds: [Hold: Int] = [:]
    /// The number of times that several holds applied to a push.
    private(set) var severalHolds = 0
    private let rig: DispatchRig
    private var chance: SeededGenerator
    private var wakes: [WakeID] = []
    private var streams: Set<Int> = []
    private let devices = 6

    init(seed: UInt64) {
        var configuration = EngineRig.open([
            (.launchInterval, 60), (.executionWindow, 20), (.maxExtension, 30), (.dailyLaunches, 20),
            (.budgetWindow, 3600), (.criticalBattery, 0.05),
        ])
        configuration.permittedTasks = .all
        self.rig = DispatchRig(configuration, seed: seed)
        self.chance = SeededGenerator(seed: seed)
        for device in 1...self.devices { self.rig.rig.register(device) }
    }

    private var topic: TopicIndex { self.rig.engine.topic(of: self.rig.rig.index(1)) }

    /// Performs a random event.
    func move() {
        let device = self.chance.number(in: 1...self.devices)
        // The next event of a removed device is its registration.
        guard self.rig.rig.snapshot(device).isRegistered else { return self.turnRegistration(device) }
        switch self.chance.number(below: 12) {
        case 0: self.rig.advance(by: Int64(self.chance.number(in: 1...90_000)))
        case 1, 2: self.rig.conditions(device) { self.change(&$0) }
        case 3: self.rig.conditions(device) { Self.recover(&$0) }
        case 4: self.rig.push(device, self.chance.pick(Priority.allCases))
        case 5: self.rig.submit(device, "refresh")
        case 6, 7: self.answer()
        case 8: self.turnStream()
        case 9: self.turnRegistration(device)
        case 10: if self.chance.once(in: 8) { self.rig.dispatcher.setPaused(self.topic, self.chance.chance(30)) }
        default: _ = self.rig.dispatcher.cancelPending(self.rig.rig.index(device))
        }
        self.wakes += self.rig.takeDeliveries().map(\.wake)
    }

    private func change(_ report: inout ConditionsReport) {
        switch self.chance.number(below: 7) {
        case 6: report.memoryPressure = self.chance.pick(Conditions.MemoryPressure.allCases)
        case 0: report.appState = self.chance.pick([.background, .active, .forceQuit])
        case 1: report.backgroundRefresh = self.chance.pick([.available, .denied, .restricted])
        case 2: report.network = self.chance.chance(50)
        case 3: report.thermalState = self.chance.pick(Conditions.ThermalState.allCases)
        case 4: report.batteryLevel = self.chance.pick([0.01, 0.5])
        default: report.lowPowerMode = self.chance.chance(50)
        }
    }

    private static func recover(_ report: inout ConditionsReport) {
        report.appState = .background
        report.backgroundRefresh = .available
        report.network = true
        report.thermalState = .nominal
        report.memoryPressure = .normal
        report.batteryLevel = 1
    }

    private func answer() {
        guard !self.wakes.isEmpty else { return }
        let wake = self.wakes.remove(at: self.chance.number(below: self.wakes.count))
        // A wake that is not of the matching kind, or has ended: the report changes nothing.
        self.rig.report(self.chance.pick(FetchResult.allCases), wake)
        self.rig.report(TaskResult.success, wake)
    }

    private func turnStream() {
        let stream = self.chance.number(in: 1...3)
        guard self.streams.remove(stream) == nil else { return self.rig.endStream(stream) }
        self.streams.insert(stream)
        let devices = self.chance.chance(50) ? [] : [self.chance.number(in: 1...self.devices)]
        let kinds: [LaunchKind] = self.chance.chance(80) ? [.push] : []
        self.rig.subscribe(
            stream,
            slots: self.chance.number(in: 1...2),
            kinds: kinds,
            tasks: kinds.isEmpty || self.chance.chance(30) ? ["refresh"] : [],
            devices: devices
        )
    }

    private func turnRegistration(_ device: Int) {
        if self.chance.chance(30) { return self.rig.dispatcher.unregister(self.rig.rig.index(device)) }
        self.rig.rig.register(device)
    }

    /// Compares explanation and dry run for one device.
    func compare() {
        let device = self.chance.number(in: 1...self.devices)
        let (index, now) = (self.rig.rig.index(device), self.rig.engine.now)
        let answer = self.rig.push(device, isDryRun: true)
        let snapshot = self.rig.dispatcher.snapshot(index)
        let why = Reasoning(device: snapshot, offset: .ahead)
            .push(nil, self.rig.dispatcher.workerCounts(self.topic), at: now)
        let diagnosis = Diagnosis(
            device: snapshot,
            task: nil,
            webhook: nil,
            workers: self.rig.dispatcher.workerCounts(self.topic),
            now: now,
            offset: .ahead
        )
        let failures = diagnosis.checks.filter { !$0.isOK && !Diagnosis.harmless.contains($0.name) }.map(\.name)
        guard let answer else {
            self.verdicts["unregistered", default: 0] += 1
            #expect(!snapshot.isRegistered && diagnosis.verdict == "unregistered" && failures == ["registered"])
            return
        }
        #expect(failures.isEmpty == (answer.disposition == .launched), "\(failures) \(answer)")
        #expect(failures.contains { $0.hasPrefix("hold:") } == (answer.held.map { $0 != .worker } ?? false))
        let outlook = snapshot.outlook(at: now)
        self.verdicts[outlook.verdict.rawValue, default: 0] += 1
        if outlook.holds.count > 1 { self.severalHolds += 1 }
        #expect((answer.disposition == .launched) == (outlook.verdict == .ready), "\(outlook) \(answer)")
        #expect((answer.held != nil) == (outlook.verdict == .held), "\(outlook) \(answer)")
        if let hold = answer.held {
            self.holds[hold, default: 0] += 1
            #expect(hold == outlook.holds.first ?? .worker, "\(outlook) \(answer)")
        }
        #expect(answer.eligibleAt == outlook.answeredEligibleAt, "\(outlook) \(answer)")
        guard snapshot.state.pending == nil, snapshot.state.inFlight == nil else { return }
        #expect(why.hasPrefix("Nothing is pending, and \(Self.beginning(answer, outlook))"), "\(why) \(answer)")
    }

    /// Returns the start of the sentence that matches the reply to the dry run.
    private static func beginning(_ answer: PushAnswer, _ outlook: LaunchOutlook) -> String {
        let would = "a push of priority 5 that comes now would"
        if answer.disposition == .launched { return "the next push may launch at once." }
        switch answer.held {
        case .worker?: return "\(would) wait: "
        case .some: return "\(would) be held "
        case nil: return outlook.isInFlight ? "\(would) wait for " : "\(would) wait until "
        }
    }
}
