import Engine
import Policy
import WakeGateTestKit
import Wire

/// Tracks the outcome of every request and of every finished transfer per device, from the outside.
///
/// It uses the answers to submissions, the delivered wakes and their outcomes, and computes replacements, retries and
/// drops.
struct RequestLedger {
    /// A request, or the finished transfers of a session.
    struct Item {
        /// The unique number of the arrival in the whole simulation.
        var number: Int
        let name: String
        let kind: TaskKind
        var needs: TaskNeeds = []
        var resources: [String] = []
        /// The earliest start.
        var notBefore = Instant.distantPast
        /// The number of finished transfers; 0 for a request.
        var transfers: UInt64 = 0
        var attempts = 0
        /// True for a continued task with the strategy `fail`.
        var isStrict = false
        /// True if pressure ended it while memory was critical.
        var waitsForMemory = false

        var isSession: Bool { self.kind == .urlSession }

        var target: LaunchTarget {
            LaunchTarget(kind: LaunchKind(self.kind), name: self.name, resources: self.resources)
        }

        func isNamesake(of other: Item) -> Bool { self.name == other.name && self.isSession == other.isSession }
    }

    struct Flight {
        var item: Item
        let wake: WakeID
        /// The holds that applied when an operator launched it, or when its device was removed.
        var tolerated: Set<Hold>
        var isCancelled = false
        var isOfRemovedDevice = false
    }

    struct Device {
        var waiting: [Item] = []
        var inFlight: [Flight] = []
    }

    enum End: Hashable {
        case replaced, cancelled
        case discarded(DiscardReason)
        case result(TaskOutcome)
    }

    private var devices: [DeviceToken: Device] = [:]
    /// The end of each request, by number.
    private(set) var ends: [Int: End] = [:]
    private var counts = ActivityCounters()
    private(set) var faults: [String] = []

    subscript(token: DeviceToken) -> Device { self.devices[token] ?? Device() }

    /// True if nothing is pending or in flight.
    var isDone: Bool { self.devices.values.allSatisfy { $0.waiting.isEmpty && $0.inFlight.isEmpty } }

    func flight(_ wake: WakeID, _ token: DeviceToken) -> Flight? { self[token].inFlight.first { $0.wake == wake } }

    /// Returns the pending request with this identifier.
    func request(_ name: String, _ token: DeviceToken) -> Item? {
        self[token].waiting.first { $0.name == name && !$0.isSession }
    }

    mutating func fail(_ what: String) { self.faults.append(what) }

    private mutating func end(_ item: Item, _ end: End) {
        if item.isSession {
            if case .discarded(let reason) = end { self.counts.sessions.discarded[reason] += Int64(item.transfers) }
            return
        }
        if let before = self.ends.updateValue(end, forKey: item.number) {
            self.fail("request \(item.name) ended as \(before) and as \(end)")
        }
        switch end {
        case .replaced: self.counts.requests.replaced += 1
        case .cancelled: self.counts.requests.cancelled += 1
        case .discarded(let reason): self.counts.requests.discarded[reason] += 1
        case .result: break
        }
    }

    private mutating func takeNamesake(of item: Item, _ token: DeviceToken) -> Item? {
        guard let index = self[token].waiting.firstIndex(where: { $0.isNamesake(of: item) }) else { return nil }
        return self.devices[token]?.waiting.remove(at: index)
    }
}

// MARK: - Arrivals

extension RequestLedger {
    /// Records an accepted request.
    mutating func submitted(
        _ item: Item,
        _ token: DeviceToken,
        _ disposition: TaskDisposition,
        deliveredAtOnce: Bool
    ) {
        self.counts.requests.submitted[item.kind] += 1
        let older = self.takeNamesake(of: item, token)
        if let older { self.end(older, .replaced) }
        self.devices[token, default: Device()].waiting.append(item)
        let expected: TaskDisposition = deliveredAtOnce ? .launched : older == nil ? .scheduled : .replaced
        if disposition != expected { self.fail("request \(item.name) is \(disposition), and not \(expected)") }
    }

    mutating func refused(_ refusal: TaskRefusal) { self.counts.requests.refused[refusal] += 1 }

    /// Records finished transfers of a session.
    mutating func finished(_ item: Item, _ token: DeviceToken) {
        self.counts.sessions.finished += Int64(item.transfers)
        if let index = self[token].waiting.firstIndex(where: { $0.isNamesake(of: item) }) {
            self.devices[token]?.waiting[index].transfers += item.transfers
        } else {
            self.devices[token, default: Device()].waiting.append(item)
        }
    }

    mutating func refusedTransfers(_ count: UInt64) { self.counts.sessions.refused += Int64(count) }
}

// MARK: - Wakes

extension RequestLedger {
    /// Records a delivered wake.
    mutating func launched(_ delivery: Delivery, tolerated: Set<Hold>) {
        guard let task = delivery.task else { return }
        let (token, name) = (delivery.token, "wake \(delivery.wake) of \(task.name)")
        let index = self[token].waiting.firstIndex { $0.name == task.name && $0.kind == task.task.kind }
        guard let index, var item = self.devices[token]?.waiting.remove(at: index) else {
            return self.fail("\(name) has no pending request")
        }
        item.attempts += 1
        item.waitsForMemory = false
        self.counts.tasks.launched[item.kind] += 1
        if item.attempts != Int(task.task.attempts) { self.fail("\(name) says attempt \(task.task.attempts)") }
        if item.transfers != task.task.transfers { self.fail("\(name) says \(task.task.transfers) transfers") }
        if item.resources != task.details.resources { self.fail("\(name) has other resources") }
        self.devices[token]?.inFlight.append(Flight(item: item, wake: delivery.wake, tolerated: tolerated))
    }

    /// - Parameter takingBackAttempt: true if the gateway restarted, or the wake never reached its worker.
    mutating func ended(
        _ wake: WakeID,
        _ token: DeviceToken,
        _ outcome: TaskOutcome,
        attemptsMax: Int,
        takingBackAttempt: Bool = false
    ) {
        guard let index = self[token].inFlight.firstIndex(where: { $0.wake == wake }),
            let flight = self.devices[token]?.inFlight.remove(at: index)
        else { return self.fail("wake \(wake) ended as \(outcome), and is not in flight") }
        var item = flight.item
        self.counts.tasks[item.kind][outcome] += 1
        if takingBackAttempt { item.attempts -= 1 }
        if item.isSession, outcome == .success {
            self.counts.sessions.completed += Int64(item.transfers)
        } else if item.isSession || outcome == .lost {
            self.retry(item, flight, token, attemptsMax: attemptsMax)
        } else {
            self.end(item, .result(outcome))
        }
    }

    /// Records a wake that pressure ends. Its request is pending until memory is no longer critical.
    mutating func pressed(_ wake: WakeID, _ token: DeviceToken, isCritical: Bool) {
        guard let index = self[token].inFlight.firstIndex(where: { $0.wake == wake }) else { return }
        self.devices[token]?.inFlight[index].item.waitsForMemory = isCritical
    }

    private mutating func retry(_ item: Item, _ flight: Flight, _ token: DeviceToken, attemptsMax: Int) {
        if flight.isCancelled { return self.end(item, .discarded(.cancelled)) }
        if flight.isOfRemovedDevice { return self.end(item, .discarded(.unregistered)) }
        if let index = self[token].waiting.firstIndex(where: { $0.isNamesake(of: item) }) {
            let other = self[token].waiting[index]
            if item.isSession {
                self.devices[token]?.waiting[index].transfers += item.transfers
                return
            }
            if other.number > item.number { return self.end(item, .replaced) }
            self.devices[token]?.waiting.remove(at: index)
            self.end(other, .replaced)
        }
        if item.attempts >= attemptsMax { return self.end(item, .discarded(.exhausted)) }
        self.devices[token]?.waiting.append(item)
    }
}

// MARK: - Cancellation and removal

extension RequestLedger {
    /// Records the cancellation of requests with this identifier, or of all.
    ///
    /// - Returns: the wakes that end because of it.
    mutating func cancelled(_ name: String?, _ token: DeviceToken) -> Set<WakeID> {
        func isMeant(_ item: Item) -> Bool { !item.isSession && (name == nil || item.name == name) }
        for item in self[token].waiting where isMeant(item) { self.end(item, .cancelled) }
        self.devices[token]?.waiting.removeAll(where: isMeant)
        for index in self[token].inFlight.indices where isMeant(self[token].inFlight[index].item) {
            self.devices[token]?.inFlight[index].isCancelled = true
        }
        return Set(self[token].inFlight.filter { $0.isCancelled && $0.item.kind == .continued }.map(\.wake))
    }

    /// Records that the device became `forceQuit`, which discards pending continued tasks.
    mutating func quit(_ token: DeviceToken) {
        for item in self[token].waiting where item.kind == .continued { self.end(item, .discarded(.forceQuit)) }
        self.devices[token]?.waiting.removeAll { $0.kind == .continued }
    }

    /// Records the removal of the device.
    ///
    /// - Parameter holds: returns the holds of a task in flight on a newly created device.
    mutating func unregistered(_ token: DeviceToken, _ holds: (Item) -> Set<Hold>) {
        for item in self[token].waiting { self.end(item, .discarded(.unregistered)) }
        self.devices[token]?.waiting = []
        for index in self[token].inFlight.indices {
            self.devices[token]?.inFlight[index].isOfRemovedDevice = true
            let tolerated = holds(self[token].inFlight[index].item)
            self.devices[token]?.inFlight[index].tolerated.formUnion(tolerated)
        }
    }
}

/// The properties of a request or session that the ledger can compare.
private struct ReportedItem: Hashable {
    let kind: TaskKind
    let name: String
    let attempts: Int
    let transfers: UInt64
    /// The wake; nil while it is pending.
    var wake: WakeID?

    init(_ item: RequestLedger.Item, wake: WakeID? = nil) {
        self.kind = item.kind
        self.name = item.name
        self.attempts = item.attempts
        self.transfers = item.transfers
        self.wake = wake
    }

    init(_ snapshot: TaskSnapshot) {
        self.kind = snapshot.task.kind
        self.name = snapshot.name
        self.attempts = Int(snapshot.task.attempts)
        self.transfers = UInt64(snapshot.task.transfers)
        if case .running(let wake, _, _, _) = snapshot.state { self.wake = wake }
    }
}

extension RequestLedger {
    /// Compares with the snapshots of a device's requests and sessions.
    mutating func compare(_ token: DeviceToken, _ snapshots: [TaskSnapshot]) {
        let device = self[token]
        // Fast path for most devices, as this runs for each device after every step.
        if snapshots.isEmpty, device.waiting.isEmpty, device.inFlight.isEmpty { return }
        let mine =
            device.waiting.map { ReportedItem($0) } + device.inFlight.map { ReportedItem($0.item, wake: $0.wake) }
        let theirs = snapshots.map { ReportedItem($0) }
        // The items of a device are distinct.
        if mine.count != theirs.count || Set(mine) != Set(theirs) {
            self.fail("there is \(theirs), and should be \(mine)")
        }
    }

    /// Compares with the counters of the gateway.
    mutating func compare(_ counters: ActivityCounters) {
        var mine = self.counts
        for device in self.devices.values {
            for item in device.waiting {
                if item.isSession {
                    mine.sessions.waiting += Int64(item.transfers)
                } else {
                    mine.requests.waiting[item.kind] += 1
                }
            }
            for item in device.inFlight.map(\.item) {
                if item.isSession {
                    mine.sessions.inFlight += Int64(item.transfers)
                } else {
                    mine.requests.inFlight[item.kind] += 1
                }
            }
        }
        // The ledger does not count these.
        mine.requests.held = counters.requests.held
        mine.sessions.wakes = counters.sessions.wakes
        self.compare(mine.requests, counters.requests)
        self.compare(mine.sessions, counters.sessions)
        self.compare(mine.tasks, counters.tasks)
    }

    private mutating func compare<Counters: Equatable>(_ mine: Counters, _ theirs: Counters) {
        if mine != theirs { self.fail("there is \(theirs), and should be \(mine)") }
    }
}

/// The simulation's own knowledge of requests, sessions and their devices.
struct TaskModels {
    var ledger = RequestLedger()
    private(set) var conditions: [DeviceToken: Conditions] = [:]
    /// The last time at which a use of each device began or ended.
    private var lastUses: [DeviceToken: Instant] = [:]
    private var lastProcessing: [DeviceToken: Instant] = [:]
    /// The value of `lastProcessing` before a launch, for wakes whose loss restores it.
    private var lastBefore: [WakeID: Instant?] = [:]
    /// The ids of session events of each device, the oldest first.
    private(set) var eventIDs: [DeviceToken: [String]] = [:]
    /// The ids that each device had before it started afresh, which may be used again.
    private(set) var formerEventIDs: [DeviceToken: [String]] = [:]
    private(set) var faults: [String] = []

    var allFaults: [String] { self.faults + self.ledger.faults }

    mutating func remember(_ id: String, _ token: DeviceToken) {
        self.eventIDs[token] = Array(((self.eventIDs[token] ?? []) + [id]).suffix(16))
    }
}

// MARK: - Devices

extension TaskModels {
    /// Records a conditions report.
    ///
    /// - Returns: all conditions of the device now.
    mutating func reported(_ report: ConditionsReport, _ token: DeviceToken, at now: Instant) -> Conditions {
        let before = self.conditions[token] ?? Conditions()
        var after = before
        after.appState = report.appState ?? after.appState
        after.backgroundRefresh = report.backgroundRefresh ?? after.backgroundRefresh
        after.thermalState = report.thermalState ?? after.thermalState
        after.memoryPressure = report.memoryPressure ?? after.memoryPressure
        after.batteryLevel = report.batteryLevel ?? after.batteryLevel
        after.charging = report.charging ?? after.charging
        after.lowPowerMode = report.lowPowerMode ?? after.lowPowerMode
        after.network = report.network ?? after.network
        self.conditions[token] = after
        if (before.appState == .active) != (after.appState == .active) { self.lastUses[token] = now }
        if after.appState == .forceQuit, before.appState != .forceQuit { self.ledger.quit(token) }
        return after
    }

    /// Records that a device was removed or registered again, and starts afresh.
    mutating func startedAfresh(_ token: DeviceToken, at now: Instant, _ parameters: Parameters) {
        self.conditions[token] = nil
        self.lastUses[token] = nil
        self.lastProcessing[token] = nil
        if let former = self.eventIDs.removeValue(forKey: token) { self.formerEventIDs[token] = former }
        for flight in self.ledger[token].inFlight { self.lastBefore[flight.wake] = nil }
        let models = self
        self.ledger.unregistered(token) { models.holds($0, token, at: now, parameters) }
    }

    /// Returns true if the device has reported critical memory pressure.
    func isShortOfMemory(_ token: DeviceToken) -> Bool { self.conditions[token]?.memoryPressure == .critical }

    /// Returns the holds of a request or a session of the device.
    func holds(
        _ item: RequestLedger.Item,
        _ token: DeviceToken,
        at now: Instant,
        _ parameters: Parameters
    ) -> Set<Hold> {
        let state = self.conditions[token] ?? Conditions()
        let isHot = state.thermalState == .critical
        let isShort = state.memoryPressure == .critical
        guard item.kind != .continued else {
            return Set((isHot ? [.thermal] : []) + (isShort && item.waitsForMemory ? [.memory] : []))
        }
        if item.isSession, state.appState == .active { return [] }
        var holds: Set<Hold> = []
        func add(_ hold: Hold, when applies: Bool) { if applies { holds.insert(hold) } }
        add(.forceQuit, when: state.appState == .forceQuit)
        add(.backgroundRefresh, when: state.backgroundRefresh != .available)
        add(.active, when: state.appState == .active)
        let needsNetwork = item.kind != .processing || item.needs.contains(.network)
        add(.network, when: needsNetwork && !state.network)
        add(.power, when: item.needs.contains(.externalPower) && !state.charging)
        add(.lowPower, when: item.kind == .processing && state.lowPowerMode)
        add(.thermal, when: isHot || state.thermalState == .serious)
        add(.memory, when: isShort && !item.isSession)
        add(.battery, when: state.batteryLevel < parameters.criticalBattery && !state.charging)
        if !item.isSession, let last = self.lastUses[token], parameters.usageWindow > 0 {
            add(.usage, when: now >= last + parameters.usageWindow)
        }
        return holds
    }

    /// Returns the refusal of a submission that does not depend on streams; nil if there is none.
    func refusal(_ item: RequestLedger.Item, _ token: DeviceToken, isPermitted: Bool) -> TaskRefusal? {
        let state = self.conditions[token] ?? Conditions()
        if !isPermitted { return .notPermitted }
        if item.kind != .continued, state.backgroundRefresh != .available { return .unavailable }
        if item.kind == .continued, state.appState != .active { return .notForeground }
        let others = self.ledger[token].waiting.count { $0.kind == item.kind && $0.name != item.name }
        return others >= (item.kind == .appRefresh ? 1 : 10) ? .tooManyPendingTaskRequests : nil
    }
}

// MARK: - Wakes

extension TaskModels {
    /// Records a delivered wake.
    ///
    /// - Parameter isForced: true if an operator requested it.
    mutating func launched(_ delivery: Delivery, at now: Instant, isForced: Bool, _ parameters: Parameters) {
        let token = delivery.token
        let waiting = self.ledger[token].waiting.first {
            $0.name == delivery.task?.name && LaunchKind($0.kind) == delivery.kind
        }
        guard let waiting else { return self.ledger.launched(delivery, tolerated: []) }
        let holds = self.holds(waiting, token, at: now, parameters)
        self.ledger.launched(delivery, tolerated: isForced ? holds : [])
        guard !isForced else { return }
        if !holds.isEmpty { self.faults.append("\(waiting.name) was launched in spite of \(holds)") }
        if now < waiting.notBefore { self.faults.append("\(waiting.name) was launched before \(waiting.notBefore)") }
        guard delivery.kind == .processing else { return }
        if let last = self.lastProcessing[token], now < last + parameters.processingInterval {
            self.faults.append("two processing tasks were launched too close to each other")
        }
        self.lastBefore[delivery.wake] = .some(self.lastProcessing[token])
        self.lastProcessing[token] = now
    }

    mutating func ended(
        _ delivery: Delivery,
        _ outcome: TaskOutcome,
        _ parameters: Parameters,
        takingBackAttempt: Bool
    ) {
        if outcome == .lost, let before = self.lastBefore[delivery.wake] {
            self.lastProcessing[delivery.token] = before
        }
        self.lastBefore[delivery.wake] = nil
        self.ledger.ended(
            delivery.wake,
            delivery.token,
            outcome,
            attemptsMax: Int(parameters.maxAttempts),
            takingBackAttempt: takingBackAttempt
        )
    }

    /// Checks that no task is running that conditions must interrupt.
    mutating func checkHolds(_ token: DeviceToken, at now: Instant, _ parameters: Parameters) {
        for flight in self.ledger[token].inFlight where self.isInterrupted(flight, token, at: now, parameters) {
            self.faults.append("\(flight.item.name) continues in spite of conditions")
        }
    }

    /// Returns true if a change of conditions must end it.
    func isInterrupted(
        _ flight: RequestLedger.Flight,
        _ token: DeviceToken,
        at now: Instant,
        _ parameters: Parameters
    ) -> Bool {
        guard flight.item.kind == .processing || flight.item.kind == .continued else { return false }
        let holds = self.holds(flight.item, token, at: now, parameters)
        return !holds.subtracting(flight.tolerated).subtracting([.usage]).isEmpty
    }
}
