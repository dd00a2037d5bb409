/// What a random trace contains, in milliseconds, for the checkers: nothing here comes from the code under test.
struct TraceFacts {
    /// The parameters, as the table of the rules has them.
    struct Limits {
        var launchInterval: Int64 = 900_000
        var dailyLaunches: Int64 = 96
        var budgetWindow: Int64 = 86_400_000
        var immediateBurst: Int64 = 3
        var immediateRefill: Int64 = 900_000
        var executionWindow: Int64 = 30_000
        var maxAttempts: Int64 = 3
        var maxPenalty: Int64 = 4
        var maxInterval: Int64 = 14_400_000
        var defaultTTL: Int64 = 2_592_000_000
        var criticalBattery = 0.2

        /// The least time between launches.
        func interval(penalty: Int64, priority: Int, _ device: DeviceFacts) -> Int64 {
            var interval = self.launchInterval
            for _ in 0..<penalty { interval *= 2 }
            if device.lowPowerMode && priority < 10 { interval *= 2 }
            return min(interval, max(self.launchInterval, self.maxInterval))
        }
    }

    struct Push {
        var moment: Int64
        var priority: Int
        /// As in the trace: 0 is now or never.
        var expiration: Int64?
    }

    /// The conditions of a device from a moment on.
    struct Report {
        var moment: Int64
        var device: DeviceFacts
    }

    var limits = Limits()
    /// The pushes by apns-id.
    var pushes: [String: Push] = [:]
    var reports: [String: [Report]] = [:]
    /// The last push of each device, after which nothing holds it; empty when the trace stops early.
    var finalPushes: [String: String] = [:]
    /// Whether every wake is answered in time, and well.
    var isWorkerGood = false

    /// Every state the device was in at some point of the millisecond `moment`, the earliest first.
    func states(of device: String, at moment: Int64) -> [DeviceFacts] {
        let reports = self.reports[device] ?? []
        let before = reports.last { $0.moment < moment }?.device ?? DeviceFacts()
        return [before] + reports.filter { $0.moment == moment }.map(\.device)
    }
}

/// A device's conditions in the words of a trace.
struct DeviceFacts {
    var appState = "background"
    var backgroundRefresh = "available"
    var batteryLevel = 1.0
    var charging = false
    var lowPowerMode = false
    var thermalState = "nominal"
    var network = true

    var isActive: Bool { self.appState == "active" }

    /// Whether the device may not be woken with `priority`.
    func isHeld(_ priority: Int, criticalBattery: Double = 0.2) -> Bool {
        if self.isActive { return false }
        if self.appState == "forceQuit" || self.backgroundRefresh != "available" || !self.network { return true }
        if self.thermalState == "critical" || priority == 1 { return true }
        if priority == 10 { return false }
        return self.thermalState == "serious" || (self.batteryLevel < criticalBattery && !self.charging)
    }
}
