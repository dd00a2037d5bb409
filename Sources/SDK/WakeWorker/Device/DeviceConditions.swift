internal import LinuxConditions
import Wire

/// The conditions of a device, which the gateway considers before it launches a wake.
///
/// A report changes only the fields that it sets. The gateway treats a device as idle and charged until a field is
/// reported.
///
/// ```swift
/// var conditions = DeviceConditions()
/// conditions.batteryLevel = 0.15
/// conditions.isCharging = false
/// ```
public struct DeviceConditions: Hashable, Sendable {
    /// The state of the app on the device.
    public enum AppState: String, Hashable, Sendable, CaseIterable {
        /// The app is in the background. Wakes are subject to the launch policy.
        case background
        /// The app is in use. Wakes launch immediately and do not count against the budget.
        case active
        /// The user has force-quit the app. No wakes launch until the app is started again.
        case forceQuit
    }

    /// The permission to wake the app in the background.
    public enum BackgroundRefresh: String, Hashable, Sendable, CaseIterable {
        /// Wakes are allowed.
        case available
        /// The user does not allow wakes.
        case denied
        /// An administrator or another authority does not allow wakes.
        case restricted
    }

    /// The thermal state of the device.
    public enum ThermalState: String, Hashable, Sendable, CaseIterable {
        /// Normal temperature.
        case nominal
        /// Slightly elevated temperature.
        case fair
        /// High temperature. Only wakes of priority 10 launch.
        case serious
        /// Critical temperature. No wakes launch.
        case critical
    }

    /// The level of memory pressure on the device.
    public enum MemoryPressure: String, Hashable, Sendable, CaseIterable {
        /// Enough memory is available.
        case normal
        /// Programs wait for memory, but launches are not restricted.
        case warning
        /// Memory is short. Refresh and processing tasks are held, and continued tasks are ended one after another.
        case critical
    }

    /// The state of the app.
    public var appState: AppState?
    /// The permission to wake the app in the background.
    public var backgroundRefresh: BackgroundRefresh?
    /// The charge of the battery, from 0 to 1.
    public var batteryLevel: Double?
    /// True if the battery is charging.
    public var isCharging: Bool?
    /// True if the device saves power. Intervals between wakes are then doubled.
    public var isLowPowerMode: Bool?
    /// The thermal state.
    public var thermalState: ThermalState?
    /// The level of memory pressure.
    public var memoryPressure: MemoryPressure?
    /// True if the device has a network connection.
    public var hasNetwork: Bool?

    /// Creates a report that sets no field.
    public init() {}
}

extension DeviceConditions {
    /// Returns the JSON body of a report.
    func json() throws(WakeWorkerError) -> [UInt8] {
        var members: [String] = []
        func add(_ name: String, _ value: String?) {
            if let value { members.append("\"\(name)\":\(value)") }
        }
        if let level = self.batteryLevel, !(0...1).contains(level) {
            throw WakeWorkerError(.badArgument, "batteryLevel is \(level); give a fraction from 0 to 1")
        }
        add("appState", self.appState.map { "\"\($0.rawValue)\"" })
        add("backgroundRefresh", self.backgroundRefresh.map { "\"\($0.rawValue)\"" })
        add("batteryLevel", self.batteryLevel.map { JSONNumber.text(of: $0) })
        add("charging", self.isCharging.map { String($0) })
        add("lowPowerMode", self.isLowPowerMode.map { String($0) })
        add("thermalState", self.thermalState.map { "\"\($0.rawValue)\"" })
        add("memoryPressure", self.memoryPressure.map { "\"\($0.rawValue)\"" })
        add("network", self.hasNetwork.map { String($0) })
        return Array("{\(members.joined(separator: ","))}".utf8)
    }

    /// Reads the gateway's answer.
    init(_ object: JSONValue) {
        self.appState = object["appState"]?.text.flatMap { AppState(rawValue: $0) }
        self.backgroundRefresh = object["backgroundRefresh"]?.text.flatMap { BackgroundRefresh(rawValue: $0) }
        self.thermalState = object["thermalState"]?.text.flatMap { ThermalState(rawValue: $0) }
        self.memoryPressure = object["memoryPressure"]?.text.flatMap { MemoryPressure(rawValue: $0) }
        if case .number(let level)? = object["batteryLevel"] { self.batteryLevel = level.double }
        if case .bool(let flag)? = object["charging"] { self.isCharging = flag }
        if case .bool(let flag)? = object["lowPowerMode"] { self.isLowPowerMode = flag }
        if case .bool(let flag)? = object["network"] { self.hasNetwork = flag }
    }
}

/// A change of a device's conditions: see ``WakeWorker/conditionsChanges``.
public struct DeviceConditionsChange: Hashable, Sendable {
    /// The token of the device, in hexadecimal digits.
    public let deviceToken: String
    /// All conditions of the device after the change.
    public let conditions: DeviceConditions

    init(_ deviceToken: String, _ conditions: DeviceConditions) {
        self.deviceToken = deviceToken
        self.conditions = conditions
    }
}

/// The conditions of a Linux machine that are reported: see ``WakeWorker/reportMachineConditions(for:_:)``.
///
/// ```swift
/// try await worker.reportMachineConditions(for: token, [.hardware, .appState])
/// ```
public struct ReportedConditions: OptionSet, Hashable, Sendable {
    /// Battery, charger, power saving, thermal state, memory pressure and network.
    public static let hardware = ReportedConditions(rawValue: 1)

    /// The member `appState`. It is `active` while a person uses the machine's own screen and keyboard (logind's first
    /// seat, `seat0`). Otherwise it is `background`.
    ///
    /// While the state is `active`, wakes launch immediately and do not count against the budget. On many kiosks the
    /// desktop never reports to logind that it is idle. The state is then always `active`.
    public static let appState = ReportedConditions(rawValue: 2)

    /// The raw value: one bit for each group of conditions.
    public let rawValue: Int

    /// Creates a set from its raw value.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// The same set in the form that the reader of the machine's conditions requires.
    var read: ConditionSet {
        var conditions: ConditionSet = []
        if self.contains(.hardware) { conditions.insert(.hardware) }
        if self.contains(.appState) { conditions.insert(.appState) }
        return conditions
    }
}
