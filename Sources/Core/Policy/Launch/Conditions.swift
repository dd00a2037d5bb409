package import Wire

/// The conditions that a device reported, with defaults for conditions that it never reported.
package struct Conditions: Hashable, Sendable {
    package enum AppState: String, Sendable, CaseIterable {
        case background, active, forceQuit
    }

    package enum BackgroundRefresh: String, Sendable, CaseIterable {
        case available, denied, restricted
    }

    package enum ThermalState: String, Sendable, CaseIterable {
        case nominal, fair, serious, critical
    }

    package enum MemoryPressure: String, Sendable, CaseIterable {
        case normal, warning, critical
    }

    /// The battery charge, 0...1.
    package var batteryLevel = 1.0
    package var appState = AppState.background
    package var backgroundRefresh = BackgroundRefresh.available
    package var thermalState = ThermalState.nominal
    package var memoryPressure = MemoryPressure.normal
    package var charging = false
    package var lowPowerMode = false
    package var network = true

    package init() {}
}

/// A device's report of conditions. A field is nil if the report does not contain it.
package struct ConditionsReport: Hashable, Sendable {
    /// The battery charge, 0...1.
    package var batteryLevel: Double?
    package var appState: Conditions.AppState?
    package var backgroundRefresh: Conditions.BackgroundRefresh?
    package var thermalState: Conditions.ThermalState?
    package var memoryPressure: Conditions.MemoryPressure?
    package var charging: Bool?
    package var lowPowerMode: Bool?
    package var network: Bool?

    package init() {}
}

extension Conditions {
    /// Sets the conditions that `report` contains.
    package mutating func apply(_ report: ConditionsReport) {
        self.batteryLevel = report.batteryLevel ?? self.batteryLevel
        self.appState = report.appState ?? self.appState
        self.backgroundRefresh = report.backgroundRefresh ?? self.backgroundRefresh
        self.thermalState = report.thermalState ?? self.thermalState
        self.memoryPressure = report.memoryPressure ?? self.memoryPressure
        self.charging = report.charging ?? self.charging
        self.lowPowerMode = report.lowPowerMode ?? self.lowPowerMode
        self.network = report.network ?? self.network
    }
}

extension Conditions {
    /// Returns the fields that differ in `other`, with the values of `other`.
    package func changes(to other: Conditions) -> ConditionsReport {
        func changed<Value: Equatable>(_ field: KeyPath<Conditions, Value>) -> Value? {
            self[keyPath: field] == other[keyPath: field] ? nil : other[keyPath: field]
        }
        var report = ConditionsReport()
        report.batteryLevel = changed(\.batteryLevel)
        report.appState = changed(\.appState)
        report.backgroundRefresh = changed(\.backgroundRefresh)
        report.thermalState = changed(\.thermalState)
        report.memoryPressure = changed(\.memoryPressure)
        report.charging = changed(\.charging)
        report.lowPowerMode = changed(\.lowPowerMode)
        report.network = changed(\.network)
        return report
    }
}

/// The reason why a push or a task is held, in the order in which reasons are checked.
package enum Hold: UInt8, BitwiseCopyable, Sendable, CaseIterable {
    /// An operator has paused the topic.
    case paused
    case forceQuit, backgroundRefresh
    /// The device is in use.
    case active
    case network
    /// The task needs external power.
    case power
    case lowPower, thermal
    /// Memory pressure is critical. Pushes are not affected.
    case memory
    case battery
    /// The device was not used for `usageWindow`.
    case usage
    /// The push has a priority that never wakes a device.
    case priority
    /// The launch waits only for a free slot on a stream that accepts it.
    case worker

    /// The possible holds of a push, in order.
    package static let ofPushes: [Hold] = [
        .paused, .forceQuit, .backgroundRefresh, .network, .thermal, .battery, .priority, .worker,
    ]
    /// The possible holds of a task or a session, in order.
    package static let ofTasks: [Hold] = [
        .paused, .forceQuit, .backgroundRefresh, .active, .network, .power, .lowPower, .thermal, .memory, .battery,
        .usage, .worker,
    ]

    package var name: StaticString {
        switch self {
        case .paused: "paused"
        case .forceQuit: "forceQuit"
        case .backgroundRefresh: "backgroundRefresh"
        case .active: "active"
        case .network: "network"
        case .power: "power"
        case .lowPower: "lowPower"
        case .thermal: "thermal"
        case .memory: "memory"
        case .battery: "battery"
        case .usage: "usage"
        case .priority: "priority"
        case .worker: "worker"
        }
    }
}

extension Conditions {
    /// Returns true if `hold` applies to a push of `priority`. An active device has no holds.
    @inline(__always)
    package func holds(_ hold: Hold, _ priority: Priority, criticalBattery: Double) -> Bool {
        guard self.appState != .active else { return false }
        return switch hold {
        case .forceQuit: self.appState == .forceQuit
        case .backgroundRefresh: self.backgroundRefresh != .available
        case .network: !self.network
        case .thermal:
            self.thermalState == .critical || (self.thermalState == .serious && priority < .immediate)
        case .battery: self.batteryLevel < criticalBattery && !self.charging && priority < .immediate
        case .priority: priority == .passive
        case .paused, .active, .power, .lowPower, .memory, .usage, .worker: false
        }
    }

    /// Returns the first hold that applies to a push of `priority`; nil if it may launch.
    package func firstHold(_ priority: Priority, criticalBattery: Double) -> Hold? {
        // Unrolled, because this runs for every push, and a loop takes three times as long.
        if self.holds(.forceQuit, priority, criticalBattery: criticalBattery) { return .forceQuit }
        if self.holds(.backgroundRefresh, priority, criticalBattery: criticalBattery) { return .backgroundRefresh }
        if self.holds(.network, priority, criticalBattery: criticalBattery) { return .network }
        if self.holds(.thermal, priority, criticalBattery: criticalBattery) { return .thermal }
        if self.holds(.battery, priority, criticalBattery: criticalBattery) { return .battery }
        return self.holds(.priority, priority, criticalBattery: criticalBattery) ? .priority : nil
    }
}

/// A set of holds.
package struct Holds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package init(_ hold: Hold) {
        self.rawValue = Self.places.firstIndex(of: hold).map { 1 << UInt16($0) } ?? 0
    }

    /// The holds by bit number. Records store these bits.
    private static let places: [Hold] = [
        .forceQuit, .backgroundRefresh, .active, .network, .power, .lowPower, .thermal, .battery, .usage, .memory,
    ]
    package init(_ holds: [Hold]) {
        self = holds.reduce(into: []) { $0.insert(Holds($1)) }
    }

    /// The holds of tasks that depend on the conditions of a device.
    package static let ofTasks = Holds(rawValue: 1 << 10 - 1)
}

extension DeviceLanes {
    /// Returns the first hold that applies to `task` at `now`; nil if there is none.
    package func hold(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> Hold? {
        Hold.ofTasks.first { self.applies($0, to: task, at: now, parameters) }
    }

    /// Returns every hold that applies to `task` at `now`, in order.
    package func allHolds(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> [Hold] {
        Hold.ofTasks.filter { self.applies($0, to: task, at: now, parameters) }
    }

    private func applies(
        _ hold: Hold,
        to task: BackgroundTask,
        at now: Instant,
        _ parameters: Parameters
    ) -> Bool {
        let conditions = self.device.conditions
        switch task.kind {
        case .continued:
            // Under critical memory pressure, a new task may launch, but a task that pressure has ended may not.
            if hold == .memory { return task.waitsForMemory && conditions.memoryPressure == .critical }
            return hold == .thermal && conditions.thermalState == .critical
        case .urlSession:
            return conditions.holds(hold, .considerate, criticalBattery: parameters.criticalBattery)
        case .appRefresh, .processing:
            return switch hold {
            case .forceQuit: conditions.appState == .forceQuit
            case .backgroundRefresh: conditions.backgroundRefresh != .available
            case .active: conditions.appState == .active
            case .network: task.needs.contains(.network) && !conditions.network
            case .power: task.needs.contains(.externalPower) && !conditions.charging
            case .lowPower: task.kind == .processing && conditions.lowPowerMode
            case .thermal: conditions.thermalState == .critical || conditions.thermalState == .serious
            case .memory: conditions.memoryPressure == .critical
            case .battery: conditions.batteryLevel < parameters.criticalBattery && !conditions.charging
            case .usage: self.tasks.usage.isOver(parameters.usageWindow, at: now)
            case .paused, .priority, .worker: false
            }
        }
    }
}
