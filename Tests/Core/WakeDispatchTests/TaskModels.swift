import Engine
import Policy
import WakeGateTestKit
import Wire

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
