/// Why a device's conditions hold a launch back, in the order in which they are looked at.
package enum Hold: String, Sendable, CaseIterable {
    case forceQuit, backgroundRefresh, network, thermal, battery, priority

    /// Every hold in the order in which they are looked at; kept, because every push asks.
    static let inOrder = Hold.allCases
}

extension Conditions {
    /// Whether `hold` applies to a push of `priority`. An active device is never held.
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
        Hold.inOrder.first { self.holds($0, priority, criticalBattery: criticalBattery) }
    }
}
