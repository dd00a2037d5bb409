extension Parameters {
    /// One parameter, in the unit in which `set` takes it: durations in seconds.
    package func value(_ name: Name) -> Double {
        switch name {
        case .launchInterval: Self.seconds(self.launchInterval)
        case .dailyLaunches: Double(self.dailyLaunches)
        case .budgetWindow: Self.seconds(self.budgetWindow)
        case .immediateBurst: Double(self.immediateBurst)
        case .immediateRefill: Self.seconds(self.immediateRefill)
        case .executionWindow: Self.seconds(self.executionWindow)
        case .maxExtension: Self.seconds(self.maxExtension)
        case .maxAttempts: Double(self.maxAttempts)
        case .maxPenalty: Double(self.maxPenalty)
        case .maxInterval: Self.seconds(self.maxInterval)
        case .defaultTTL: Self.seconds(self.defaultTTL)
        case .criticalBattery: self.criticalBattery
        }
    }

    private static func seconds(_ milliseconds: Int64) -> Double { Double(milliseconds) / 1000 }
}
