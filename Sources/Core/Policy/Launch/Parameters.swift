/// The numbers that shape the policy. Durations are kept in milliseconds and named in seconds outside.
package struct Parameters: Hashable, Sendable {
    /// The least time between two background launches of a device, in milliseconds.
    package fileprivate(set) var launchInterval: Int64 = 900_000
    /// The most launches in a budget window.
    package fileprivate(set) var dailyLaunches: UInt32 = 96
    /// The length of a budget window, in milliseconds.
    package fileprivate(set) var budgetWindow: Int64 = 86_400_000
    /// How many priority 10 launches may jump the interval in a burst.
    package fileprivate(set) var immediateBurst: Int64 = 3
    /// The time until one more priority 10 launch may jump, in milliseconds.
    package fileprivate(set) var immediateRefill: Int64 = 900_000
    /// How long a worker may take for one wake, in milliseconds.
    package fileprivate(set) var executionWindow: Int64 = 30_000
    /// How much longer a worker may be given when it asks, all extensions of a wake together, in milliseconds.
    package fileprivate(set) var maxExtension: Int64 = 270_000
    /// How long before the deadline of its wake a worker is warned, in milliseconds; 0 warns nobody.
    package fileprivate(set) var expirationLead: Int64 = 5_000
    /// The most launches of one push.
    package fileprivate(set) var maxAttempts: UInt32 = 3
    /// The most doublings of the interval.
    package fileprivate(set) var maxPenalty: UInt8 = 4
    /// The interval's upper bound when doubled, in milliseconds.
    package fileprivate(set) var maxInterval: Int64 = 14_400_000
    /// How long a push without an expiry waits, in milliseconds.
    package fileprivate(set) var defaultTTL: Int64 = 2_592_000_000
    /// Below this battery level (0...1) only priority 10 wakes a device that is not charging.
    package fileprivate(set) var criticalBattery: Double = 0.20

    /// How long a worker may take for one processing task, in milliseconds.
    package fileprivate(set) var processingWindow: Int64 = 600_000
    /// The least time between the launches of two processing tasks of a device, in milliseconds.
    package fileprivate(set) var processingInterval: Int64 = 3_600_000
    /// A continued task that does not advance for so long expires, in milliseconds.
    package fileprivate(set) var progressWindow: Int64 = 60_000
    /// The most continued tasks in flight on one device.
    package fileprivate(set) var continuedMax: UInt32 = 1
    /// The time between the ends of two continued tasks while memory is short, in milliseconds.
    package fileprivate(set) var pressureStep: Int64 = 5_000
    /// Nobody used the device for so long: no refresh, no processing, in milliseconds; 0 holds nothing.
    package fileprivate(set) var usageWindow: Int64 = 0
    /// The most a refresh is put off to come right before habitual use, in milliseconds; 0 puts nothing off.
    package fileprivate(set) var refreshFlex: Int64 = 14_400_000
    /// How long before a habitual hour a refresh may launch, in milliseconds.
    package fileprivate(set) var refreshLead: Int64 = 900_000

    /// The defaults, as the articles "The rules" and "The rules of background tasks" have them.
    package init() {}

    /// The longest duration, 100 years: sums of a few of them stay far from overflow.
    package static let secondsMax = 3_155_760_000
    /// The largest count; more than any device can use up.
    package static let countMax = 1_000_000_000
    /// The most doublings: 2^20 intervals are past any `maxInterval`.
    package static let penaltyMax = 20
    /// The most that `continuedMax` can be: it bounds what one device has in flight.
    package static let continuedMaxMost = 1000

    /// A value that a parameter cannot take.
    package struct OutOfRange: Error, Hashable {
        package let parameter: PolicyParameter
        package let value: Double
    }

    /// Sets one parameter; durations in seconds with up to three decimals (further ones are rounded).
    ///
    /// - Throws: `OutOfRange` when `value` is not what `parameter.requirement` says; nothing is changed then.
    package mutating func set(_ parameter: PolicyParameter, to value: Double) throws(OutOfRange) {
        guard parameter.set(value, in: &self) else { throw OutOfRange(parameter: parameter, value: value) }
    }
}

/// A parameter of the policy, by the name that configuration, traces and `--set` use.
package enum PolicyParameter: String, CaseIterable, Sendable {
    case launchInterval, dailyLaunches, budgetWindow, immediateBurst, immediateRefill, executionWindow
    case maxAttempts, maxPenalty, maxInterval, defaultTTL, criticalBattery, maxExtension
    case expirationLead
    case processingWindow, processingInterval, progressWindow, continuedMax, pressureStep, usageWindow, refreshFlex
    case refreshLead

    /// The parameters of background tasks.
    package static let ofTasks: [PolicyParameter] = [
        .processingWindow, .processingInterval, .progressWindow, .continuedMax, .pressureStep, .usageWindow,
        .refreshFlex, .refreshLead,
    ]

    /// The parameters that came later: where one is the default, the numbers that tell policies apart leave it out, and
    /// are what they were before there was one.
    package static let addedLater = Self.ofTasks + [.expirationLead]

    /// The requirement on a value, for messages: "a number of seconds, at least 0.001 …".
    package var requirement: String {
        switch self.field {
        case .duration(_, canBeZero: false):
            "a number of seconds, at least 0.001 and at most \(Parameters.secondsMax)"
        case .duration: "a number of seconds from 0 to \(Parameters.secondsMax)"
        case .count(_, _, let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .fraction: "a number from 0 to 1"
        }
    }

    /// True if the value is a duration in seconds.
    package var isDuration: Bool {
        if case .duration = self.field { true } else { false }
    }

    /// The value in `parameters`, in the unit in which `set` takes it: durations in seconds.
    package func value(in parameters: Parameters) -> Double {
        switch self.field {
        case .duration(let path, _): Double(parameters[keyPath: path]) / 1000
        case .count(let value, _, _): value(parameters)
        case .fraction(let path): parameters[keyPath: path]
        }
    }

    /// Sets the parameter in `parameters`, durations in seconds with up to three decimals.
    ///
    /// - Returns: true if `value` is one that it can take; if not, nothing is changed.
    package func set(_ value: Double, in parameters: inout Parameters) -> Bool {
        // Conversions alone: `rounded` and `init(exactly:)` call the C mathematics library, which a pure module does
        // not link.
        switch self.field {
        case .duration(let path, canBeZero: true) where value == 0: parameters[keyPath: path] = 0
        case .duration(let path, _):
            guard value >= 0.001, value <= Double(Parameters.secondsMax) else { return false }
            parameters[keyPath: path] = Int64(value * 1000 + 0.5)
        case .count(_, let set, let range):
            guard value >= Double(range.lowerBound), value <= Double(range.upperBound), Double(Int(value)) == value
            else { return false }
            set(&parameters, Int(value))
        case .fraction(let path):
            guard value >= 0, value <= 1 else { return false }
            parameters[keyPath: path] = value
        }
        return true
    }

    /// The place of a parameter in `Parameters`, and the values that it can take.
    private enum Field {
        case duration(WritableKeyPath<Parameters, Int64>, canBeZero: Bool = false)
        case count((Parameters) -> Double, (inout Parameters, Int) -> Void, ClosedRange<Int>)
        case fraction(WritableKeyPath<Parameters, Double>)

        static func count<Count: FixedWidthInteger>(
            _ path: WritableKeyPath<Parameters, Count>,
            _ range: ClosedRange<Int>
        ) -> Field {
            .count({ Double($0[keyPath: path]) }, { $0[keyPath: path] = Count($1) }, range)
        }
    }

    private var field: Field {
        switch self {
        case .launchInterval: .duration(\.launchInterval)
        case .dailyLaunches: .count(\.dailyLaunches, 1...Parameters.countMax)
        case .budgetWindow: .duration(\.budgetWindow)
        case .immediateBurst: .count(\.immediateBurst, 1...Parameters.countMax)
        case .immediateRefill: .duration(\.immediateRefill)
        case .executionWindow: .duration(\.executionWindow)
        case .maxAttempts: .count(\.maxAttempts, 1...Parameters.countMax)
        case .maxPenalty: .count(\.maxPenalty, 0...Parameters.penaltyMax)
        case .maxInterval: .duration(\.maxInterval)
        case .defaultTTL: .duration(\.defaultTTL)
        case .criticalBattery: .fraction(\.criticalBattery)
        case .maxExtension: .duration(\.maxExtension, canBeZero: true)
        case .expirationLead: .duration(\.expirationLead, canBeZero: true)
        case .processingWindow: .duration(\.processingWindow)
        case .processingInterval: .duration(\.processingInterval)
        case .progressWindow: .duration(\.progressWindow)
        case .continuedMax: .count(\.continuedMax, 1...Parameters.continuedMaxMost)
        case .pressureStep: .duration(\.pressureStep)
        case .usageWindow: .duration(\.usageWindow, canBeZero: true)
        case .refreshFlex: .duration(\.refreshFlex, canBeZero: true)
        case .refreshLead: .duration(\.refreshLead, canBeZero: true)
        }
    }

    /// The meaning of the parameter, in one line.
    package var summary: String {
        switch self {
        case .launchInterval: "the minimum time between two background launches of a device"
        case .dailyLaunches: "the maximum number of launches of a device in a budget window"
        case .budgetWindow: "the length of a budget window"
        case .immediateBurst: "the number of priority 10 launches that may skip the interval in a burst"
        case .immediateRefill: "the time until one more priority 10 launch may skip the interval"
        case .executionWindow: "the time that a worker has for one wake"
        case .maxAttempts: "the maximum number of launches of one push"
        case .maxPenalty: "the maximum number of doublings of the interval; each wake that expires doubles it"
        case .maxInterval: "the maximum interval after doublings"
        case .defaultTTL: "how long a push without an expiration waits"
        case .criticalBattery: "the battery level below which only priority 10 wakes a device that is not charging"
        case .maxExtension: "the maximum total extension of one wake's deadline"
        case .expirationLead:
            "how long before its deadline a worker is warned, at most half of the window; 0: no warning"
        case .processingWindow: "the time that a worker has for one processing task"
        case .processingInterval: "the minimum time between two processing tasks of a device"
        case .progressWindow: "the time without progress after which a continued task expires"
        case .continuedMax: "the maximum number of continued tasks in flight on one device"
        case .pressureStep: "while memory is short, the time after which the next continued task of a device ends"
        case .usageWindow:
            "the time without use of a device after which its refresh and processing tasks are held; 0: never"
        case .refreshFlex: "the maximum delay of a refresh so that it precedes habitual use; 0: no delay"
        case .refreshLead: "how long before a habitual hour of use a refresh may launch"
        }
    }
}
