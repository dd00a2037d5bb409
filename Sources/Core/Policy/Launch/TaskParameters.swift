/// The numbers that shape the policy of background tasks. Durations are kept in milliseconds and named in seconds
/// outside.
package struct TaskParameters: Hashable, Sendable {
    /// How long a worker may take for one processing task, in milliseconds.
    package private(set) var processingWindow: Int64 = 600_000
    /// The least time between the launches of two processing tasks of a device, in milliseconds.
    package private(set) var processingInterval: Int64 = 3_600_000
    /// A continued task that does not advance for so long expires, in milliseconds.
    package private(set) var progressWindow: Int64 = 60_000
    /// The most continued tasks in flight on one device.
    package private(set) var continuedMax: UInt32 = 1
    /// Nobody used the device for so long: no refresh, no processing, in milliseconds; 0 holds nothing.
    package private(set) var usageWindow: Int64 = 0
    /// The most a refresh is put off to come right before habitual use, in milliseconds; 0 puts nothing off.
    package private(set) var refreshFlex: Int64 = 14_400_000
    /// How long before a habitual hour a refresh may launch, in milliseconds.
    package private(set) var refreshLead: Int64 = 900_000

    /// The defaults, as the article "The rules of background tasks" has them.
    package init() {}

    /// The parameters by the names that configuration, traces and `--set` use.
    package enum Name: String, CaseIterable, Sendable {
        case processingWindow, processingInterval, progressWindow, continuedMax, usageWindow, refreshFlex, refreshLead

        /// What a value must be, for messages: "a number of seconds more than 0 …".
        package var requirement: String {
            switch self {
            case .processingWindow, .processingInterval, .progressWindow:
                "a number of seconds, at least 0.001 and at most \(Parameters.secondsMax)"
            case .usageWindow, .refreshFlex, .refreshLead: "a number of seconds from 0 to \(Parameters.secondsMax)"
            case .continuedMax: "a whole number from 1 to \(TaskParameters.continuedMaxMost)"
            }
        }

        /// What the parameter shapes, in one line.
        package var summary: String {
            switch self {
            case .processingWindow: "how long a worker may take for one processing task"
            case .processingInterval: "the least time between the launches of two processing tasks of a device"
            case .progressWindow: "a continued task that does not advance for so long expires"
            case .continuedMax: "the most continued tasks in flight on one device"
            case .usageWindow:
                "how long nobody may have used a device for its refreshes and processing to launch; 0 holds nothing"
            case .refreshFlex:
                "the most that a refresh is put off, to come right before habitual use; 0 puts nothing off"
            case .refreshLead: "how long before a habitual hour a refresh may launch"
            }
        }
    }

    /// A value that a parameter cannot take.
    package struct OutOfRange: Error, Hashable {
        package let name: Name
        package let value: Double
    }

    /// The most that `continuedMax` can be: it bounds what one device has in flight.
    package static let continuedMaxMost = 1000

    /// Sets one parameter; durations in seconds with up to three decimals (further ones are rounded).
    ///
    /// - Throws: `OutOfRange` when `value` is not what `name.requirement` says; nothing is changed then.
    package mutating func set(_ name: Name, to value: Double) throws(OutOfRange) {
        func positive() throws(OutOfRange) -> Int64 {
            guard let milliseconds = Parameters.milliseconds(value) else { throw OutOfRange(name: name, value: value) }
            return milliseconds
        }
        func duration() throws(OutOfRange) -> Int64 { value == 0 ? 0 : try positive() }
        switch name {
        case .processingWindow: self.processingWindow = try positive()
        case .processingInterval: self.processingInterval = try positive()
        case .progressWindow: self.progressWindow = try positive()
        case .usageWindow: self.usageWindow = try duration()
        case .refreshFlex: self.refreshFlex = try duration()
        case .refreshLead: self.refreshLead = try duration()
        case .continuedMax:
            guard let count = Parameters.whole(value, 1...Self.continuedMaxMost) else {
                throw OutOfRange(name: name, value: value)
            }
            self.continuedMax = UInt32(count)
        }
    }

    /// One parameter, in the unit in which `set` takes it: durations in seconds.
    package func value(_ name: Name) -> Double {
        switch name {
        case .processingWindow: Double(self.processingWindow) / 1000
        case .processingInterval: Double(self.processingInterval) / 1000
        case .progressWindow: Double(self.progressWindow) / 1000
        case .continuedMax: Double(self.continuedMax)
        case .usageWindow: Double(self.usageWindow) / 1000
        case .refreshFlex: Double(self.refreshFlex) / 1000
        case .refreshLead: Double(self.refreshLead) / 1000
        }
    }
}
