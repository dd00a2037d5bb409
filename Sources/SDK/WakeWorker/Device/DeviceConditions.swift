internal import LinuxConditions
import Wire

/// In what state a device is: what the gateway looks at before it wakes it.
///
/// A report changes only the fields that it names. What was never reported is as on an idle, charged device.
///
/// ```swift
/// var conditions = DeviceConditions()
/// conditions.batteryLevel = 0.15
/// conditions.isCharging = false
/// ```
public struct DeviceConditions: Hashable, Sendable {
    /// What the app does on the device.
    public enum AppState: String, Hashable, Sendable, CaseIterable {
        /// The app is in the background: wakes come under the launch policy.
        case background
        /// The app is in use: wakes come at once, and cost nothing.
        case active
        /// The user has ended it: no wakes until it is started again.
        case forceQuit
    }

    /// Whether the user allows the app to be woken.
    public enum BackgroundRefresh: String, Hashable, Sendable, CaseIterable {
        /// Wakes are allowed.
        case available
        /// The user does not allow wakes.
        case denied
        /// Somebody else does not allow wakes.
        case restricted
    }

    /// How hot the device is.
    public enum ThermalState: String, Hashable, Sendable, CaseIterable {
        /// As it should be.
        case nominal
        /// Slightly above.
        case fair
        /// Hot: only wakes of priority 10 come.
        case serious
        /// Too hot: no wakes come.
        case critical
    }

    /// The shortage of memory on the device.
    public enum MemoryPressure: String, Hashable, Sendable, CaseIterable {
        /// There is enough.
        case normal
        /// Programs wait for memory, which holds nothing.
        case warning
        /// Memory is short: refreshes and processing tasks are held, and continued tasks end one after the other.
        case critical
    }

    /// What the app does.
    public var appState: AppState?
    /// Whether wakes are allowed.
    public var backgroundRefresh: BackgroundRefresh?
    /// The battery's charge, 0...1.
    public var batteryLevel: Double?
    /// Whether the battery is being charged.
    public var isCharging: Bool?
    /// Whether the device saves power: intervals between wakes are doubled.
    public var isLowPowerMode: Bool?
    /// How hot it is.
    public var thermalState: ThermalState?
    /// The shortage of memory.
    public var memoryPressure: MemoryPressure?
    /// Whether the device has a network.
    public var hasNetwork: Bool?

    /// A report that names nothing yet.
    public init() {}
}

extension DeviceConditions {
    /// The body of a report.
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

/// The conditions of a device have changed: see ``WakeWorker/conditionsChanges``.
public struct DeviceConditionsChange: Hashable, Sendable {
    /// The device, in hexadecimal digits.
    public let deviceToken: String
    /// All of its conditions.
    public let conditions: DeviceConditions

    init(_ deviceToken: String, _ conditions: DeviceConditions) {
        self.deviceToken = deviceToken
        self.conditions = conditions
    }
}

/// Which conditions of a Linux machine are reported: see ``WakeWorker/reportMachineConditions(for:_:)``.
///
/// ```swift
/// try await worker.reportMachineConditions(for: token, [.hardware, .appState])
/// ```
public struct ReportedConditions: OptionSet, Hashable, Sendable {
    /// Battery, charger, power saving, thermal state, memory pressure and network.
    public static let hardware = ReportedConditions(rawValue: 1)

    /// `appState`: `active` while somebody uses the machine's own screen and keyboard (logind's first seat, `seat0`),
    /// `background` while nobody does.
    ///
    /// While it is `active`, wakes come at once and cost nothing of the budgets. On a machine whose desktop never tells
    /// logind that it is idle, such as many kiosks, that is always.
    public static let appState = ReportedConditions(rawValue: 2)

    /// One bit for each.
    public let rawValue: Int

    /// A set of the conditions whose bits are set.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// The same for those who read the machine.
    var read: ConditionSet {
        var conditions: ConditionSet = []
        if self.contains(.hardware) { conditions.insert(.hardware) }
        if self.contains(.appState) { conditions.insert(.appState) }
        return conditions
    }
}
