/// The numbers that shape the policy. Durations are kept in milliseconds and named in seconds outside.
package struct Parameters: Hashable, Sendable {
    /// The least time between two background launches of a device, in milliseconds.
    package private(set) var launchInterval: Int64 = 900_000
    /// The most launches in a budget window.
    package private(set) var dailyLaunches: UInt32 = 96
    /// The length of a budget window, in milliseconds.
    package private(set) var budgetWindow: Int64 = 86_400_000
    /// How many priority 10 launches may jump the interval in a burst.
    package private(set) var immediateBurst: Int64 = 3
    /// The time until one more priority 10 launch may jump, in milliseconds.
    package private(set) var immediateRefill: Int64 = 900_000
    /// How long a worker may take for one wake, in milliseconds.
    package private(set) var executionWindow: Int64 = 30_000
    /// How much longer a worker may be given when it asks, all extensions of a wake together, in milliseconds.
    package private(set) var maxExtension: Int64 = 270_000
    /// The most launches of one push.
    package private(set) var maxAttempts: UInt32 = 3
    /// The most doublings of the interval.
    package private(set) var maxPenalty: UInt8 = 4
    /// The interval's upper bound when doubled, in milliseconds.
    package private(set) var maxInterval: Int64 = 14_400_000
    /// How long a push without an expiry waits, in milliseconds.
    package private(set) var defaultTTL: Int64 = 2_592_000_000
    /// Below this battery level (0...1) only priority 10 wakes a device that is not charging.
    package private(set) var criticalBattery: Double = 0.20
    /// The parameters of background tasks, which have names of their own.
    package var tasks = TaskParameters()

    /// The defaults, as the article "The rules" has them.
    package init() {}

    /// The parameters by the names that configuration, traces and `--set` use.
    package enum Name: String, CaseIterable, Sendable {
        case launchInterval, dailyLaunches, budgetWindow, immediateBurst, immediateRefill, executionWindow
        case maxAttempts, maxPenalty, maxInterval, defaultTTL, criticalBattery, maxExtension

        /// What a value must be, for messages: "a number of seconds more than 0 …".
        package var requirement: String {
            switch self {
            case .launchInterval, .budgetWindow, .immediateRefill, .executionWindow, .maxInterval, .defaultTTL:
                "a number of seconds, at least 0.001 and at most \(Parameters.secondsMax)"
            case .dailyLaunches, .immediateBurst, .maxAttempts:
                "a whole number from 1 to \(Parameters.countMax)"
            case .maxPenalty: "a whole number from 0 to \(Parameters.penaltyMax)"
            case .criticalBattery: "a number from 0 to 1"
            case .maxExtension: "a number of seconds from 0 to \(Parameters.secondsMax)"
            }
        }
    }

    /// A value that a parameter cannot take.
    package struct OutOfRange: Error, Hashable {
        package let name: Name
        package let value: Double
    }

    /// The longest duration, 100 years: sums of a few of them stay far from overflow.
    package static let secondsMax = 3_155_760_000
    /// The largest count; more than any device can use up.
    package static let countMax = 1_000_000_000
    /// The most doublings: 2^20 intervals are past any `maxInterval`.
    package static let penaltyMax = 20

    /// Sets one parameter; durations in seconds with up to three decimals (further ones are rounded).
    ///
    /// - Throws: `OutOfRange` when `value` is not what `name.requirement` says; nothing is changed then.
    package mutating func set(_ name: Name, to value: Double) throws(OutOfRange) {
        let outOfRange = OutOfRange(name: name, value: value)
        func milliseconds() throws(OutOfRange) -> Int64 {
            guard let milliseconds = Self.milliseconds(value) else { throw outOfRange }
            return milliseconds
        }
        func whole(_ range: ClosedRange<Int>) throws(OutOfRange) -> Int {
            guard let count = Self.whole(value, range) else { throw outOfRange }
            return count
        }
        switch name {
        case .launchInterval: self.launchInterval = try milliseconds()
        case .dailyLaunches: self.dailyLaunches = UInt32(try whole(1...Self.countMax))
        case .budgetWindow: self.budgetWindow = try milliseconds()
        case .immediateBurst: self.immediateBurst = Int64(try whole(1...Self.countMax))
        case .immediateRefill: self.immediateRefill = try milliseconds()
        case .executionWindow: self.executionWindow = try milliseconds()
        case .maxAttempts: self.maxAttempts = UInt32(try whole(1...Self.countMax))
        case .maxPenalty: self.maxPenalty = UInt8(try whole(0...Self.penaltyMax))
        case .maxInterval: self.maxInterval = try milliseconds()
        case .defaultTTL: self.defaultTTL = try milliseconds()
        case .maxExtension: self.maxExtension = value == 0 ? 0 : try milliseconds()
        case .criticalBattery:
            guard value >= 0, value <= 1 else { throw outOfRange }
            self.criticalBattery = value
        }
    }
    // Conversions alone: `rounded` and `init(exactly:)` call the C mathematics library, which a pure module does not
    // link.

    /// A duration of `seconds` in milliseconds, or nil when it is shorter than one or longer than the longest.
    static func milliseconds(_ seconds: Double) -> Int64? {
        guard seconds >= 0.001, seconds <= Double(Self.secondsMax) else { return nil }
        return Int64(seconds * 1000 + 0.5)
    }

    /// `value` as a count, or nil when it is not whole or not in `range`.
    static func whole(_ value: Double, _ range: ClosedRange<Int>) -> Int? {
        guard value >= Double(range.lowerBound), value <= Double(range.upperBound) else { return nil }
        let count = Int(value)
        return Double(count) == value ? count : nil
    }
}

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

extension Parameters.Name {
    /// What the parameter shapes, in one line.
    package var summary: String {
        switch self {
        case .launchInterval: "the least time between two background launches of a device"
        case .dailyLaunches: "the most launches of a device in a budget window"
        case .budgetWindow: "the length of a budget window"
        case .immediateBurst: "how many launches of priority 10 may jump the interval in a burst"
        case .immediateRefill: "the time until one more launch of priority 10 may jump the interval"
        case .executionWindow: "how long a worker may take for one wake"
        case .maxAttempts: "the most launches of one push"
        case .maxPenalty: "the most doublings of the interval, one for each launch that failed"
        case .maxInterval: "the most that the interval becomes by doubling"
        case .defaultTTL: "how long a push without an expiry waits"
        case .criticalBattery: "the battery level below which priority 10 alone wakes a device that is not charging"
        case .maxExtension: "how much longer a worker may be given when it asks, all extensions of a wake together"
        }
    }
}
