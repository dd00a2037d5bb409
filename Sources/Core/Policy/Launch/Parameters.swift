/// The parameters of the policy. Durations are stored in milliseconds; configuration uses seconds.
package struct Parameters: Hashable, Sendable {
    /// The minimum time between two background launches of a device, in milliseconds.
    package fileprivate(set) var launchInterval: Int64 = 900_000
    /// The maximum number of launches in a budget window.
    package fileprivate(set) var dailyLaunches: UInt32 = 96
    /// The length of a budget window, in milliseconds.
    package fileprivate(set) var budgetWindow: Int64 = 86_400_000
    /// The number of priority 10 launches that may skip the interval in a burst.
    package fileprivate(set) var immediateBurst: Int64 = 3
    /// The time after which one more priority 10 launch may skip the interval, in milliseconds.
    package fileprivate(set) var immediateRefill: Int64 = 900_000
    /// The time that a worker has for one wake, in milliseconds.
    package fileprivate(set) var executionWindow: Int64 = 30_000
    /// The maximum total extension of one wake, in milliseconds.
    package fileprivate(set) var maxExtension: Int64 = 270_000
    /// The time before the deadline of a wake at which its worker is warned, in milliseconds; 0 for no warning.
    package fileprivate(set) var expirationLead: Int64 = 5_000
    /// The maximum number of attempts of one push, task or session.
    package fileprivate(set) var maxAttempts: UInt32 = 3
    /// The maximum number of doublings of the interval.
    package fileprivate(set) var maxPenalty: UInt8 = 4
    /// The upper bound of the doubled interval, in milliseconds.
    package fileprivate(set) var maxInterval: Int64 = 14_400_000
    /// The time for which a push without an expiration is pending, in milliseconds.
    package fileprivate(set) var defaultTTL: Int64 = 2_592_000_000
    /// The battery level (0...1) below which only pushes of priority 10 and continued tasks wake a device that is not
    /// charging.
    package fileprivate(set) var criticalBattery: Double = 0.20

    /// The time that a worker has for one processing task, in milliseconds.
    package fileprivate(set) var processingWindow: Int64 = 600_000
    /// The minimum time between the launches of two processing tasks of a device, in milliseconds.
    package fileprivate(set) var processingInterval: Int64 = 3_600_000
    /// The time without progress after which a continued task expires, in milliseconds.
    package fileprivate(set) var progressWindow: Int64 = 60_000
    /// The maximum number of continued tasks in flight on one device.
    package fileprivate(set) var continuedMax: UInt32 = 1
    /// The time between the ends of two continued tasks while memory pressure is critical, in milliseconds.
    package fileprivate(set) var pressureStep: Int64 = 5_000
    /// The time without use after which refresh and processing tasks are held, in milliseconds; 0 for never.
    package fileprivate(set) var usageWindow: Int64 = 0
    /// The maximum delay of a refresh so that it precedes habitual use, in milliseconds; 0 for no delay.
    package fileprivate(set) var refreshFlex: Int64 = 14_400_000
    /// The time before a habitual hour of use at which a refresh may launch, in milliseconds.
    package fileprivate(set) var refreshLead: Int64 = 900_000

    /// The defaults of the articles "The rules" and "The rules of background tasks".
    package init() {}

    /// The maximum duration, 100 years, in seconds. Sums of a few durations cannot overflow.
    package static let secondsMax = 3_155_760_000
    /// The maximum count, more than any device can use up.
    package static let countMax = 1_000_000_000
    /// The maximum number of doublings.
    package static let penaltyMax = 20
    /// The maximum of `continuedMax`, which bounds the wakes in flight of one device.
    package static let continuedMaxMost = 1000
}

/// A parameter of the policy, by its name in configuration, traces and `--set`.
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

    /// Parameters added after the first release. Digests of policies leave out their defaults, so that digests of older
    /// policies stay the same.
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

    /// Returns the value in `parameters`, in the unit of `set`: durations in seconds.
    package func value(in parameters: Parameters) -> Double {
        switch self.field {
        case .duration(let path, _): Double(parameters[keyPath: path]) / 1000
        case .count(let value, _, _): value(parameters)
        case .fraction(let path): parameters[keyPath: path]
        }
    }

    /// Sets the parameter in `parameters`. Durations are in seconds and rounded to three decimals.
    ///
    /// - Returns: true if `value` is valid; if not, nothing is changed.
    package func set(_ value: Double, in parameters: inout Parameters) -> Bool {
        // Use only conversions, because `rounded` and `init(exactly:)` need the C math library, which this module does
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

    /// The location of a parameter in `Parameters`, and its valid values.
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
        case .maxAttempts: "the maximum number of attempts of one push, task or session"
        case .maxPenalty: "the maximum number of doublings of the interval; each wake that expires doubles it"
        case .maxInterval: "the maximum interval after doublings"
        case .defaultTTL: "how long a push without an expiration waits"
        case .criticalBattery:
            "the battery level below which only priority 10 and continued tasks wake a device that is not charging"
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
