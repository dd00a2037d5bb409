import Policy
import WakeGateTestKit
import Wire

/// One device with random events, including those that traces cannot express: removals, restarts of the gateway,
/// reloads, operator actions, extensions and progress.
///
/// The world keeps its own list of pending and running tasks from the reported outcomes, and records differences
/// between the list and the device.
struct LaneWorld {
    /// A request or a session in the world's list.
    struct Item {
        var name: TaskName
        var kind: TaskKind
        /// The order of submission.
        var number: Int
        var transfers: UInt64 = 0
        var attempts: UInt32 = 0
        var isSession: Bool { self.kind == .urlSession }
    }

    struct Flight {
        var item: Item
        var arrival: UInt64
        var launchedAt: Instant
        /// The maximum reported progress of a continued task.
        var progress: UInt64 = 0
        var isCancelled = false
        var isOfRemovedDevice = false
    }

    /// The numbers of requests or transfers that arrived and ended.
    struct ActivityCounters {
        var arrived: UInt64 = 0
        var replaced: UInt64 = 0
        var cancelled: UInt64 = 0
        var discarded: UInt64 = 0
        var ended: UInt64 = 0
    }

    private(set) var violations: [String] = []
    private(set) var sightings = Sightings()
    private var lanes = DeviceLanes()
    private var parameters = Parameters()
    private var random: SeededGenerator
    private var now = Instant(milliseconds: 1_000_000_000)
    private var numbers = 0
    private var lastPush: UInt64 = 0
    private var waiting: [Item] = []
    private var flights: [Flight] = []
    private var requests = ActivityCounters()
    private var transfers = ActivityCounters()

    private static let requestNames = (0..<12).map { TaskName(rawValue: $0) }
    private static let sessionNames = (8..<20).map { TaskName(rawValue: $0) }

    init(seed: UInt64) throws {
        self.random = SeededGenerator(seed: seed)
        for _ in 0..<120 {
            try self.step()
            self.settle()
            self.compare()
            guard self.violations.isEmpty else { return }
        }
        self.balance(self.requests, "requests", { $0.isSession ? 0 : 1 })
        self.balance(self.transfers, "transfers", \.transfers)
    }

    private mutating func broke(_ what: String) {
        self.violations.append("\(what) (at \(self.now.milliseconds) ms)")
    }

    private mutating func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds { self.broke(what()) }
    }
}

// MARK: - Events

extension LaneWorld {
    private mutating func step() throws {
        switch self.random.number(below: 100) {
        case 0..<24: self.submit()
        case 24..<32: self.finish()
        case 32..<37: self.push()
        case 37..<50: self.report()
        case 50..<54: self.cancel()
        case 54..<70: self.end()
        case 70..<73: self.restart()
        case 73..<76: self.remove()
        case 76..<79: try self.reload()
        case 79..<84: self.operate()
        case 84..<90: self.extend()
        default: self.wait()
        }
    }

    private mutating func wait() {
        let target = self.now + self.random.pick([1, 1000, 29_999, 60_000, 900_000, 3_600_000])
        while let next = self.lanes.nextMoment(from: self.now, self.parameters), next <= target {
            self.now = max(self.now, next)
            self.settle()
        }
        self.now = target
    }

    private mutating func submit() {
        let name = self.random.pick(Self.requestNames)
        let kinds: [TaskSubmission.Kind] = [
            .appRefresh, .processing([]), .processing(.externalPower), .continued(.queue), .continued(.fail),
        ]
        let earliest = self.random.chance(30) ? self.now + self.random.pick([0, 5000, 900_000]) : nil
        let submission = TaskSubmission(name: name, kind: self.random.pick(kinds), earliestBegin: earliest)
        let before = self.lanes
        let action = self.lanes.submitted(
            submission,
            at: self.now,
            isPermitted: self.random.chance(97),
            slotIsFree: self.random.chance(90),
            self.parameters
        )
        self.numbers += 1
        let item = Item(name: name, kind: submission.kind.taskKind, number: self.numbers)
        switch action {
        case .refused: self.expect(self.lanes == before, "a refusal changes something")
        case .waits(_, let replaced):
            self.arrived(item, replaced)
        case .launched(let wake, let replaced):
            self.arrived(item, replaced)
            self.launched(wake)
        }
    }

    private mutating func arrived(_ item: Item, _ replaced: BackgroundTask?) {
        self.requests.arrived += 1
        let older = self.waiting.firstIndex { $0.name == item.name && !$0.isSession }
        self.expect((older != nil) == (replaced != nil), "\(item) replaces \(String(describing: replaced))")
        if let older {
            self.waiting.remove(at: older)
            self.requests.replaced += 1
        }
        self.waiting.append(item)
    }

    private mutating func finish() {
        let name = self.random.pick(Self.sessionNames)
        let count = UInt64(self.random.number(in: 1...3))
        let index = self.waiting.firstIndex { $0.name == name && $0.isSession }
        switch self.lanes.transfersFinished(name, count: count, at: self.now) {
        case .refused:
            self.expect(index == nil && self.waiting.count(where: \.isSession) >= 8, "a session is refused")
            return
        case .waits:
            self.expect(index == nil && self.waiting.count(where: \.isSession) < 8, "a session is not taken up")
            self.waiting.append(Item(name: name, kind: .urlSession, number: self.numbers, transfers: count))
        case .takenUp:
            guard let index else { return self.broke("nothing of the session waits") }
            self.waiting[index].transfers += count
        }
        self.transfers.arrived += count
    }

    private mutating func push() {
        self.lastPush += 1
        _ = self.lanes.pushReceived(
            PushHandle(rawValue: self.lastPush),
            self.random.pick([.considerate, .immediate]),
            .absent,
            at: self.now,
            workerIsFree: true,
            self.parameters
        )
    }

    private mutating func report() {
        var report = ConditionsReport()
        report.appState = self.random.pick([nil, .background, .background, .active, .active, .forceQuit])
        report.charging = self.random.pick([nil, nil, true, false])
        report.thermalState = self.random.pick([nil, nil, nil, .nominal, .critical])
        report.memoryPressure = self.random.pick([nil, nil, .warning, .normal, .critical])
        report.lowPowerMode = self.random.pick([nil, nil, nil, true, false, false])
        let before = self.lanes.device.conditions.appState
        let action = self.lanes.conditionsReported(report, at: self.now, self.parameters)
        let isQuit = report.appState == .forceQuit && before != .forceQuit
        let quit = isQuit ? self.waiting.filter { $0.kind == .continued } : []
        // A task that pressure ended keeps its position on the device, but is last in this list.
        let (dropped, expected) = (action.discarded.map(\.name.rawValue), quit.map(\.name.rawValue))
        self.expect(dropped.sorted() == expected.sorted(), "a force quit drops \(action.discarded)")
        self.requests.discarded += UInt64(quit.count)
        if isQuit { self.waiting.removeAll { $0.kind == .continued } }
        for wake in action.ended {
            self.expect([.processing, .continued].contains(wake.task.kind), "\(wake.task) is interrupted")
            if self.land(wake.task.arrival) != nil { self.requests.ended += 1 }
        }
    }

    private mutating func cancel() {
        let name = self.random.chance(70) ? self.random.pick(Self.requestNames) : nil
        let action = self.lanes.cancelled(name)
        func isMeant(_ item: Item) -> Bool { !item.isSession && (name == nil || item.name == name) }
        self.expect(action.discarded.count == self.waiting.count(where: isMeant), "cancelled: \(action.discarded)")
        self.requests.cancelled += UInt64(action.discarded.count)
        self.waiting.removeAll(where: isMeant)
        for index in self.flights.indices where isMeant(self.flights[index].item) {
            self.flights[index].isCancelled = true
        }
        let ended = self.flights.filter { $0.isCancelled && $0.item.kind == .continued }
        self.expect(ended.map(\.arrival) == action.ended.map(\.task.arrival), "a cancellation ends \(action.ended)")
        self.requests.ended += UInt64(ended.count)
        self.flights.removeAll { $0.isCancelled && $0.item.kind == .continued }
    }

    /// Ends a wake: its worker answers, or its stream is lost.
    private mutating func end() {
        if self.lanes.device.inFlight != nil, self.random.chance(50) {
            let outcome = self.random.chance(50) ? WakeOutcome.lost : self.random.pick([.newData, .failed])
            _ = self.lanes.pushEnded(outcome, at: self.now, self.parameters)
        }
        guard !self.flights.isEmpty else { return }
        let arrival = self.random.pick(self.flights).arrival
        switch self.random.number(below: 3) {
        case 0: self.ended(arrival, .success, self.lanes.taskEnded(arrival, .success, self.parameters))
        case 1: self.ended(arrival, .failure, self.lanes.taskEnded(arrival, .failure, self.parameters))
        default: self.ended(arrival, .lost, self.lanes.taskEnded(arrival, .lost, self.parameters))
        }
    }

    private mutating func restart() {
        let spacing = self.lanes.device.spacing
        if self.lanes.device.inFlight != nil {
            _ = self.lanes.pushEnded(.lost, at: self.now, takingBackAttempt: true, self.parameters)
        }
        for arrival in self.lanes.tasks.inFlight.map(\.task.arrival) {
            if let index = self.flights.firstIndex(where: { $0.arrival == arrival }) {
                self.flights[index].item.attempts -= 1
                self.sightings.saw("restart.lost")
            }
            let action = self.lanes.taskEnded(arrival, .lost, takingBackAttempt: true, self.parameters)
            self.ended(arrival, .lost, action)
        }
        self.expect(self.lanes.tasks.inFlight.isEmpty, "something is in flight after a restart")
        let isEarlier = self.lanes.device.spacing.lastLaunch <= spacing.lastLaunch
        self.expect(isEarlier, "a restart charges, and it should put back")
    }

    private mutating func remove() {
        let action = self.lanes.unregistered(at: self.now, self.parameters)
        self.expect(action.discarded.count == self.waiting.count, "a removal discards \(action.discarded)")
        for item in self.waiting {
            if item.isSession { self.transfers.discarded += item.transfers } else { self.requests.discarded += 1 }
        }
        self.waiting = []
        for index in self.flights.indices { self.flights[index].isOfRemovedDevice = true }
        let device = self.lanes.device
        let isFresh = device.spacing == Spacing() && device.penalty == 0 && device.conditions == Conditions()
        self.expect(isFresh && self.lanes.tasks.usage == Usage(), "a removed device is not fresh")
        self.expect(self.lanes.tasks.lastProcessing == .distantPast, "a removed device remembers its processing")
    }

    private mutating func reload() throws {
        try self.parameters.set(.continuedMax, to: self.random.pick([1, 2, 3]))
        try self.parameters.set(.processingInterval, to: self.random.pick([5, 3600]))
        try self.parameters.set(.maxAttempts, to: self.random.pick([1, 2, 3]))
        try self.parameters.set(.launchInterval, to: self.random.pick([5, 900]))
        try self.parameters.set(.maxExtension, to: self.random.pick([0, 5, 270]))
    }

    /// Launches or expires a task as an operator.
    private mutating func operate() {
        if self.random.chance(30), let flight = self.flights.first {
            let penalty = self.lanes.device.penalty
            self.ended(flight.arrival, .expired, self.lanes.taskEnded(flight.arrival, .expired, self.parameters))
            let isHarmless = flight.isOfRemovedDevice || flight.item.kind == .continued
            if isHarmless { self.expect(self.lanes.device.penalty == penalty, "\(flight.item) is held against it") }
            return
        }
        let name = self.random.pick(Self.requestNames)
        let spacing = self.lanes.device.spacing
        let isWaiting = self.waiting.contains { $0.name == name && !$0.isSession }
        switch self.lanes.taskLaunchForced(name, at: self.now, self.parameters) {
        case .notWaiting: self.expect(!isWaiting, "\(name) waits")
        case .laneIsFull: self.expect(isWaiting, "\(name) does not wait")
        case .launched(let wake):
            self.launched(wake)
            self.expect(self.lanes.device.spacing == spacing, "an operator's launch is charged")
            self.sightings.saw("operator.launched")
        }
    }

    /// Requests an extension or reports progress as a worker.
    private mutating func extend() {
        guard !self.flights.isEmpty else { return }
        let index = self.random.number(below: self.flights.count)
        let flight = self.flights[index]
        let before = self.deadline(flight.arrival)
        if flight.item.kind == .continued {
            let completed = UInt64(self.random.number(below: 5))
            _ = self.lanes.progressReported(flight.arrival, completed: completed, at: self.now, self.parameters)
            let isAdvance = completed > flight.progress
            let expected = isAdvance ? self.now + self.parameters.progressWindow : before
            self.expect(self.deadline(flight.arrival) == expected, "\(flight.item) is at \(completed)")
            self.flights[index].progress = max(flight.progress, completed)
        } else {
            let until = self.now + self.random.pick([1000, 60_000, 10_000_000])
            _ = self.lanes.taskExtensionRequested(flight.arrival, until: until, self.parameters)
            let isProcessing = flight.item.kind == .processing
            let window = isProcessing ? self.parameters.processingWindow : self.parameters.executionWindow
            let most = max(before, flight.launchedAt + window + self.parameters.maxExtension)
            self.expect(self.deadline(flight.arrival) <= most, "\(flight.item) got too much time")
        }
        self.expect(self.deadline(flight.arrival) >= before, "the deadline of \(flight.item) moves back")
        if self.deadline(flight.arrival) > before { self.sightings.saw("deadline.moved") }
    }

    private func deadline(_ arrival: UInt64) -> Instant {
        self.lanes.tasks.inFlight.first { $0.task.arrival == arrival }?.deadline ?? .distantPast
    }
}

// MARK: - Effects

extension LaneWorld {
    /// Lets the device apply everything that is due.
    private mutating func settle() {
        while true {
            switch self.lanes.timePassed(self.now, self.parameters) {
            case .pushExpired, .pendingExpired: continue
            case .taskExpired(let wake, let action):
                self.expect(wake.deadline <= self.now, "\(wake.task) expires too early")
                self.ended(wake.task.arrival, .expired, action)
                continue
            case .taskPressed(let wake, let outcome, let action):
                self.pressed(wake, outcome, action)
                continue
            case .nothing: break
            }
            switch self.lanes.nextLaunch(at: self.now, self.parameters, hasSlot: { _ in true }) {
            case nil: return
            case .push: self.lanes.pushLaunched(at: self.now, self.parameters)
            case .task(let task):
                self.launched(self.lanes.taskLaunched(task.arrival, at: self.now, self.parameters))
            }
        }
    }

    private mutating func pressed(_ wake: TaskWake, _ outcome: TaskOutcome, _ action: TaskEndedAction) {
        let running = self.flights.filter { $0.item.kind == .continued }
        let isExcess = running.count > Int(self.parameters.continuedMax)
        let isShort = self.lanes.device.conditions.memoryPressure == .critical
        self.expect(isExcess || isShort, "\(wake.task) ends under no pressure")
        self.expect(wake.task.kind == .continued, "\(wake.task) ends under pressure")
        // No report in this world has a total, so all progress counts as zero.
        self.expect(running.last?.arrival == wake.task.arrival, "\(wake.task) is not the one that launched last")
        let penalty = self.lanes.device.penalty
        if let index = self.flights.firstIndex(where: { $0.arrival == wake.task.arrival }), outcome == .lost {
            self.flights[index].item.attempts -= 1
        }
        self.ended(wake.task.arrival, outcome, action)
        self.expect(self.lanes.device.penalty == penalty, "pressure brings a penalty")
        self.sightings.saw(isExcess ? "pressure.reload" : "pressure.memory")
    }

    private mutating func launched(_ wake: TaskWake) {
        let isSession = wake.task.kind == .urlSession
        guard let index = self.waiting.firstIndex(where: { $0.name == wake.task.name && $0.isSession == isSession })
        else { return self.broke("\(wake.task) launches and does not wait") }
        var item = self.waiting.remove(at: index)
        item.attempts += 1
        self.expect(item.attempts == wake.task.attempts, "\(wake.task) is at attempt \(item.attempts)")
        self.expect(item.transfers == wake.task.transfers, "\(wake.task) stands for \(item.transfers)")
        self.flights.append(Flight(item: item, arrival: wake.task.arrival, launchedAt: self.now))
        let lane = item.kind.lane
        var inLane = self.flights.count { $0.item.kind.lane == lane }
        if lane == .short, self.lanes.device.inFlight != nil { inLane += 1 }
        let most = lane == .continued ? Int(self.parameters.continuedMax) : 1
        self.expect(inLane <= most, "\(inLane) are in flight in a lane")
    }

    private mutating func land(_ arrival: UInt64) -> Flight? {
        guard let index = self.flights.firstIndex(where: { $0.arrival == arrival }) else {
            self.broke("\(arrival) is not in flight")
            return nil
        }
        return self.flights.remove(at: index)
    }

    private mutating func ended(_ arrival: UInt64, _ outcome: TaskOutcome, _ action: TaskEndedAction) {
        guard let flight = self.land(arrival) else { return }
        let item = flight.item
        let isRetried = item.isSession ? outcome != .success : outcome == .lost
        let twin = self.waiting.firstIndex { $0.name == item.name && $0.isSession == item.isSession }
        switch action {
        case .ended:
            self.expect(!isRetried, "\(item) has ended, and should not have: \(outcome)")
            if item.isSession { self.transfers.ended += item.transfers } else { self.requests.ended += 1 }
        case .waits(_, let replaced):
            let isBarred = flight.isCancelled || flight.isOfRemovedDevice
            self.expect(isRetried && !isBarred, "\(flight) waits again after \(outcome)")
            self.expect(item.attempts < self.parameters.maxAttempts, "\(item) waits after its last attempt")
            self.replace(twin, replaced)
            self.waiting.append(item)
        case .replaced:
            self.expect(twin.map { self.waiting[$0].number > item.number } == true, "\(item) is replaced by nothing")
            self.sightings.saw("twin.replaced")
            self.requests.replaced += 1
        case .takenUp:
            guard let twin else { return self.broke("\(item) is taken up by nothing") }
            self.waiting[twin].transfers += item.transfers
        case .discarded(_, let reason, let replaced):
            self.replace(twin, replaced)
            var expected: DiscardReason?
            if item.attempts >= self.parameters.maxAttempts { expected = .exhausted }
            if flight.isOfRemovedDevice { expected = .unregistered }
            if flight.isCancelled { expected = .cancelled }
            self.expect(isRetried && reason == expected, "\(flight) is discarded: \(reason)")
            self.sightings.saw("discard.\(reason)")
            if item.isSession { self.transfers.discarded += item.transfers } else { self.requests.discarded += 1 }
        }
    }

    /// Applies a replacement: a lost request that is retried may replace an older one. Requests dropped otherwise
    /// replace none.
    private mutating func replace(_ twin: Int?, _ replaced: BackgroundTask?) {
        guard replaced != nil else { return }
        guard let twin else { return self.broke("the replaced request is missing") }
        self.waiting.remove(at: twin)
        self.requests.replaced += 1
    }

    /// Compares the device with the world's list.
    private mutating func compare() {
        func names(_ items: [Item]) -> [String] { items.map { "\($0.name.rawValue) \($0.kind)" }.sorted() }
        let waiting = self.lanes.tasks.waiting.map { Item(name: $0.name, kind: $0.kind, number: 0) }
        let inFlight = self.lanes.tasks.inFlight.map { Item(name: $0.task.name, kind: $0.task.kind, number: 0) }
        let (known, flying) = (self.waiting, self.flights.map(\.item))
        self.expect(names(waiting) == names(known), "waiting: the device has \(waiting), the world \(known)")
        self.expect(names(inFlight) == names(flying), "in flight: the device has \(inFlight), the world \(flying)")
        let next = self.lanes.nextMoment(from: self.now, self.parameters)
        self.expect(next.map { $0 > self.now } ?? true, "a device that settled has something left to do")
        let arrivals = self.lanes.tasks.waiting.map(\.arrival)
        self.expect(arrivals == arrivals.sorted(), "the waiting requests are not in the order of arrival")
    }

    private mutating func balance(_ counters: ActivityCounters, _ what: String, _ weight: (Item) -> UInt64) {
        let open = (self.waiting + self.flights.map(\.item)).map(weight).reduce(0, +)
        let gone = counters.replaced + counters.cancelled + counters.discarded + counters.ended
        self.expect(
            counters.arrived == gone + open,
            "the counters of \(what) do not balance: \(counters), \(open) open"
        )
    }
}
