/// The parameters of pushes, as the table of the rules has them, in milliseconds.
package struct TraceLimits: Sendable {
    package var launchInterval: Int64 = 900_000
    package var dailyLaunches: Int64 = 96
    package var budgetWindow: Int64 = 86_400_000
    package var immediateBurst: Int64 = 3
    package var immediateRefill: Int64 = 900_000
    package var executionWindow: Int64 = 30_000
    package var maxAttempts: Int64 = 3
    package var maxPenalty: Int64 = 4
    package var maxInterval: Int64 = 14_400_000
    package var defaultTTL: Int64 = 2_592_000_000
    package var criticalBattery = 0.2

    /// The least time between launches.
    package func interval(penalty: Int64, priority: Int, _ device: DeviceFacts) -> Int64 {
        var interval = self.launchInterval
        for _ in 0..<penalty { interval *= 2 }
        if device.lowPowerMode && priority < 10 { interval *= 2 }
        return min(interval, max(self.launchInterval, self.maxInterval))
    }

    package init() {}
}
