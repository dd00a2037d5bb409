/// What a device has reported of itself; what it never reported has the value given here.
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

    /// The charge, 0...1.
    package var batteryLevel = 1.0
    package var appState = AppState.background
    package var backgroundRefresh = BackgroundRefresh.available
    package var thermalState = ThermalState.nominal
    package var charging = false
    package var lowPowerMode = false
    package var network = true

    package init() {}
}

/// A report of a device: the fields it names; nil for those it does not.
package struct ConditionsReport: Hashable, Sendable {
    /// The charge, 0...1.
    package var batteryLevel: Double?
    package var appState: Conditions.AppState?
    package var backgroundRefresh: Conditions.BackgroundRefresh?
    package var thermalState: Conditions.ThermalState?
    package var charging: Bool?
    package var lowPowerMode: Bool?
    package var network: Bool?

    package init() {}
}

extension Conditions {
    /// Takes over the fields that `report` names.
    package mutating func apply(_ report: ConditionsReport) {
        self.batteryLevel = report.batteryLevel ?? self.batteryLevel
        self.appState = report.appState ?? self.appState
        self.backgroundRefresh = report.backgroundRefresh ?? self.backgroundRefresh
        self.thermalState = report.thermalState ?? self.thermalState
        self.charging = report.charging ?? self.charging
        self.lowPowerMode = report.lowPowerMode ?? self.lowPowerMode
        self.network = report.network ?? self.network
    }
}

/// Why a device's conditions hold a launch back, in the order in which they are looked at.
package enum Hold: String, Sendable, CaseIterable {
    case forceQuit, backgroundRefresh, network, thermal, battery, priority
}

extension Conditions {
    /// Whether `hold` applies to a push of `priority`. An active device is never held.
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
        }
    }

    /// The first hold that applies to a push of `priority`, or nil when it may launch.
    package func firstHold(_ priority: Priority, criticalBattery: Double) -> Hold? {
        // One by one, as every push asks, and a loop over them takes three times as long.
        if self.holds(.forceQuit, priority, criticalBattery: criticalBattery) { return .forceQuit }
        if self.holds(.backgroundRefresh, priority, criticalBattery: criticalBattery) { return .backgroundRefresh }
        if self.holds(.network, priority, criticalBattery: criticalBattery) { return .network }
        if self.holds(.thermal, priority, criticalBattery: criticalBattery) { return .thermal }
        if self.holds(.battery, priority, criticalBattery: criticalBattery) { return .battery }
        return self.holds(.priority, priority, criticalBattery: criticalBattery) ? .priority : nil
    }
}
