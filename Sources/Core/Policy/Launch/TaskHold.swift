/// Why a task is held back, in the order in which reasons are looked at.
package enum TaskHold: String, Sendable, CaseIterable {
    case forceQuit, backgroundRefresh
    /// The device is in use.
    case active
    case network
    /// The task needs external power.
    case power
    case lowPower, thermal, battery
    /// Nobody used the device for `usageWindow`.
    case usage

    /// Every hold in the order in which they are looked at.
    static let inOrder = TaskHold.allCases
}

/// Some of the holds.
package struct TaskHolds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package init(_ hold: TaskHold) {
        let place: UInt16 =
            switch hold {
            case .forceQuit: 0
            case .backgroundRefresh: 1
            case .active: 2
            case .network: 3
            case .power: 4
            case .lowPower: 5
            case .thermal: 6
            case .battery: 7
            case .usage: 8
            }
        self.rawValue = 1 << place
    }
}

extension DeviceLanes {
    /// The first hold that keeps `task` back at `now`, or nil.
    package func hold(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> TaskHold? {
        TaskHold.inOrder.first { self.applies($0, to: task, at: now, parameters) }
    }

    /// Every hold that keeps `task` back at `now`, the first first.
    package func allHolds(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> [TaskHold] {
        TaskHold.inOrder.filter { self.applies($0, to: task, at: now, parameters) }
    }

    /// Every hold that keeps `task` back at `now`.
    package func holds(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> TaskHolds {
        TaskHold.inOrder.reduce(into: []) { holds, hold in
            if self.applies(hold, to: task, at: now, parameters) { holds.insert(TaskHolds(hold)) }
        }
    }

    private func applies(
        _ hold: TaskHold,
        to task: BackgroundTask,
        at now: Instant,
        _ parameters: Parameters
    ) -> Bool {
        let conditions = self.device.conditions
        switch task.kind {
        case .continued:
            return hold == .thermal && conditions.thermalState == .critical
        case .urlSession:
            guard let hold = Hold(rawValue: hold.rawValue) else { return false }
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
            case .battery: conditions.batteryLevel < parameters.criticalBattery && !conditions.charging
            case .usage: self.tasks.usage.isOver(parameters.usageWindow, at: now)
            }
        }
    }
}
