/// A device's conditions in the words of a trace.
package struct DeviceFacts: Sendable {
    package var appState = "background"
    package var backgroundRefresh = "available"
    package var batteryLevel = 1.0
    package var charging = false
    package var lowPowerMode = false
    package var thermalState = "nominal"
    package var network = true

    package var isActive: Bool { self.appState == "active" }

    /// Whether the device may not be woken with `priority`.
    package func isHeld(_ priority: Int, criticalBattery: Double = 0.2) -> Bool {
        if self.isActive { return false }
        if self.appState == "forceQuit" || self.backgroundRefresh != "available" || !self.network { return true }
        if self.thermalState == "critical" || priority == 1 { return true }
        if priority == 10 { return false }
        return self.thermalState == "serious" || (self.batteryLevel < criticalBattery && !self.charging)
    }

    package init() {}
}
