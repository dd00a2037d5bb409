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
        if let level = self.batteryLevel, !(0...1).contains(level) {
            throw WakeWorkerError(.badArgument, "batteryLevel is \(level); give a fraction from 0 to 1")
        }
        return JSONWriter.object { json in
            json.member("appState", ifPresent: self.appState?.rawValue)
            json.member("backgroundRefresh", ifPresent: self.backgroundRefresh?.rawValue)
            if let level = self.batteryLevel { json.member("batteryLevel", level) }
            json.member("charging", ifPresent: self.isCharging)
            json.member("lowPowerMode", ifPresent: self.isLowPowerMode)
            json.member("thermalState", ifPresent: self.thermalState?.rawValue)
            json.member("memoryPressure", ifPresent: self.memoryPressure?.rawValue)
            json.member("network", ifPresent: self.hasNetwork)
        }
    }

    /// Reads the gateway's answer.
    init(_ object: JSONValue) {
        self.appState = object["appState"]?.text.flatMap { AppState(rawValue: $0) }
        self.backgroundRefresh = object["backgroundRefresh"]?.text.flatMap { BackgroundRefresh(rawValue: $0) }
        self.thermalState = object["thermalState"]?.text.flatMap { ThermalState(rawValue: $0) }
        self.memoryPressure = object["memoryPressure"]?.text.flatMap { MemoryPressure(rawValue: $0) }
        self.batteryLevel = object["batteryLevel"]?.number
        self.isCharging = object["charging"]?.bool
        self.isLowPowerMode = object["lowPowerMode"]?.bool
        self.hasNetwork = object["network"]?.bool
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
}
