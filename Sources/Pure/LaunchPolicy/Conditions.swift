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
