import Glibc
import Platform

/// What a machine can tell of its state, as device conditions; nil for what it cannot tell.
package struct MachineConditions: Hashable, Sendable {
    /// Whole percent.
    package var batteryPercent: Int?
    package var charging: Bool?
    package var lowPowerMode: Bool?
    package var thermalState: ThermalState?
    package var memoryPressure: MemoryPressure?
    package var network: Bool?
    /// Whether somebody uses the machine.
    package var appState: AppState?

    package init() {}

    /// The conditions that readings of the machine stand for.
    ///
    /// - Parameter before: The conditions at the last reading: heat and pressure leave a state later than they enter
    ///   it.
    package init(_ reading: MachineReading, before: MachineConditions = MachineConditions()) {
        if let supplies = reading.powerSupplies {
            let power = PowerState(supplies)
            self.batteryPercent = power.batteryPercent
            self.charging = power.charging
        }
        self.lowPowerMode = reading.isLowPower
        if !reading.zones.isEmpty || !reading.cooling.isEmpty {
            let thermalBefore = before.thermalState ?? .nominal
            self.thermalState = ThermalState(zones: reading.zones, cooling: reading.cooling, before: thermalBefore)
        }
        self.memoryPressure = reading.memoryStalls.map {
            MemoryPressure($0, before: before.memoryPressure ?? .normal)
        }
        self.network = reading.network?.isAvailable
    }

    package var isEmpty: Bool { self == MachineConditions() }

    /// The fields that are known and differ from those of `earlier`; all that are known when there is none.
    package func changes(since earlier: MachineConditions?) -> MachineConditions {
        guard let earlier else { return self }
        var changes = self
        if self.batteryPercent == earlier.batteryPercent { changes.batteryPercent = nil }
        if self.charging == earlier.charging { changes.charging = nil }
        if self.lowPowerMode == earlier.lowPowerMode { changes.lowPowerMode = nil }
        if self.thermalState == earlier.thermalState { changes.thermalState = nil }
        if self.memoryPressure == earlier.memoryPressure { changes.memoryPressure = nil }
        if self.network == earlier.network { changes.network = nil }
        if self.appState == earlier.appState { changes.appState = nil }
        return changes
    }

    /// The charge as a fraction, 0...1.
    package var batteryLevel: Double? { self.batteryPercent.map { Double($0) / 100 } }

    /// The object that `PATCH /v1/devices/<token>/conditions` takes.
    package var json: String {
        var members: [String] = []
        if let percent = self.batteryPercent {
            let fraction = percent < 10 ? "0.0\(max(0, percent))" : "0.\(percent)"
            members.append("\"batteryLevel\":\(percent >= 100 ? "1" : fraction)")
        }
        if let charging = self.charging { members.append("\"charging\":\(charging)") }
        if let lowPowerMode = self.lowPowerMode { members.append("\"lowPowerMode\":\(lowPowerMode)") }
        if let thermalState = self.thermalState { members.append("\"thermalState\":\"\(thermalState.rawValue)\"") }
        if let pressure = self.memoryPressure { members.append("\"memoryPressure\":\"\(pressure.rawValue)\"") }
        if let network = self.network { members.append("\"network\":\(network)") }
        if let appState = self.appState { members.append("\"appState\":\"\(appState.rawValue)\"") }
        return "{\(members.joined(separator: ","))}"
    }
}

/// Some of the conditions that a machine can tell of.
package struct ConditionSet: OptionSet, Hashable, Sendable {
    /// Conditions of the hardware: battery, charger, power saving, heat, memory and network.
    package static let hardware = ConditionSet(rawValue: 1)
    /// Whether somebody uses the machine.
    package static let appState = ConditionSet(rawValue: 2)

    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }
}

/// Everything that was read of a machine at one moment.
package struct MachineReading: Hashable, Sendable {
    /// Nil when the kernel has no such class, as in some containers.
    package var powerSupplies: [PowerSupplyReading]?
    package var zones: [ThermalZoneReading] = []
    package var cooling: [CoolingReading] = []
    /// The firmware's profile, such as `low-power` or `balanced`.
    package var platformProfile: String?
    /// The profile that power-profiles-daemon was set to: `power-saver`, `balanced` or `performance`.
    package var powerProfile: String?
    /// Nil when the kernel keeps no account of it.
    package var memoryStalls: MemoryStalls?
    package var network: NetworkReading?

    package init() {}

    /// Nil when nothing on the machine has a say in it.
    var isLowPower: Bool? {
        if self.platformProfile == nil, self.powerProfile == nil { return nil }
        return self.powerProfile == "power-saver" || self.platformProfile == "low-power"
    }
}

/// The files in which Linux tells the state of a machine, below a root that tests replace.
package struct SystemFolder: Hashable, Sendable {
    /// The most that is read of one file, and the most entries that are looked at in one folder.
    private static let fileBytesMax = 4096
    private static let entriesMax = 256
    /// More than any machine has of anything: a gigawatt-hour in micro-watt-hours.
    private static let integerMax = 1_000_000_000_000_000

    private let root: String

    /// - Parameter root: `/`, or a folder with `sys`, `proc`, `var` and `run` in it.
    package init(root: String = "/") {
        self.root = root.hasSuffix("/") ? String(root.dropLast()) : root
    }

    /// The socket of the message bus below another root than `/`, which has the system's bus.
    package var busSocket: String? { self.root.isEmpty ? nil : "\(self.root)/run/dbus/system_bus_socket" }

    /// Reads everything but the network. Files that are not there, or cannot be read now, say nothing.
    package func read() -> MachineReading {
        var reading = MachineReading()
        reading.powerSupplies = self.entries("/sys/class/power_supply")?.compactMap { self.powerSupply($0) }
        for folder in self.entries("/sys/class/thermal") ?? [] {
            if folder.contains("/thermal_zone"), let zone = self.zone(folder) { reading.zones.append(zone) }
            if folder.contains("/cooling_device"), let device = self.coolingDevice(folder) {
                reading.cooling.append(device)
            }
        }
        reading.platformProfile = self.text("/sys/firmware/acpi/platform_profile")
        reading.powerProfile = self.powerProfile()
        reading.memoryStalls = self.text("/proc/pressure/memory").flatMap { MemoryStalls($0) }
        return reading
    }

    private func powerSupply(_ folder: String) -> PowerSupplyReading? {
        guard let type = self.text("\(folder)/type") else { return nil }
        var supply = PowerSupplyReading(type: type)
        supply.scope = self.text("\(folder)/scope")
        supply.isPresent = self.integer("\(folder)/present") != 0
        // 1 is a fixed voltage, 2 a programmable one.
        supply.isOnline = self.integer("\(folder)/online").map { $0 > 0 }
        supply.status = self.text("\(folder)/status")
        supply.capacity = self.integer("\(folder)/capacity").map { Double($0) }
        supply.energy = self.amount(folder, "energy")
        supply.charge = self.amount(folder, "charge")
        return supply
    }

    private func amount(_ folder: String, _ unit: String) -> PowerSupplyReading.Amount? {
        guard let now = self.integer("\(folder)/\(unit)_now"), let full = self.integer("\(folder)/\(unit)_full")
        else { return nil }
        return PowerSupplyReading.Amount(now: Double(now), full: Double(full))
    }

    private func zone(_ folder: String) -> ThermalZoneReading? {
        // The kernel does not act on a zone that is disabled.
        guard self.text("\(folder)/mode") != "disabled", let temperature = self.integer("\(folder)/temp") else {
            return nil
        }
        var trips: [ThermalZoneReading.Trip] = []
        for number in 0..<Self.entriesMax {
            guard let type = self.text("\(folder)/trip_point_\(number)_type") else { break }
            guard let bound = self.integer("\(folder)/trip_point_\(number)_temp") else { continue }
            trips.append(ThermalZoneReading.Trip(type, bound))
        }
        return ThermalZoneReading(temperature: temperature, trips: trips)
    }

    private func coolingDevice(_ folder: String) -> CoolingReading? {
        guard let type = self.text("\(folder)/type"), let state = self.integer("\(folder)/cur_state"),
            let stateMax = self.integer("\(folder)/max_state")
        else { return nil }
        return CoolingReading(type: type, state: state, stateMax: stateMax)
    }

    /// What power-profiles-daemon was last set to: the line `Profile=` of the file that it keeps its state in.
    private func powerProfile() -> String? {
        let lines = self.text("/var/lib/power-profiles-daemon/state.ini")?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix("Profile=") }.map { String($0.dropFirst("Profile=".count)) }
    }

    /// A number that a driver tells, which may be anything; one past `integerMax` is taken for it.
    private func integer(_ path: String) -> Int? {
        self.text(path).flatMap { Int($0) }.map { max(-Self.integerMax, min($0, Self.integerMax)) }
    }

    /// The file's text without the white space at its end; nil when it cannot be read.
    private func text(_ path: String) -> String? {
        guard let file = try? OpenFile(self.root + path, O_RDONLY | O_CLOEXEC) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Self.fileBytesMax)
        // Sensors answer EAGAIN or ENODATA when they have no value at the moment.
        guard let count = try? Descriptor.read(file.descriptor, into: &bytes) else { return nil }
        let end = bytes[..<count].lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? 0
        return String(decoding: bytes[..<end], as: UTF8.self)
    }

    /// The folders in a folder, sorted; nil when there is no such folder.
    private func entries(_ path: String) -> [String]? {
        FileSystem.names(in: self.root + path, countMax: Self.entriesMax)?.map { "\(path)/\($0)" }.sorted()
    }
}

/// What the kernel says of one power supply, a folder of `/sys/class/power_supply`; nil for what it does not say.
package struct PowerSupplyReading: Hashable, Sendable {
    /// How much is in a battery, in micro-watt-hours or micro-ampere-hours.
    package struct Amount: Hashable, Sendable {
        package var now: Double
        package var full: Double

        package init(now: Double, full: Double) {
            self.now = now
            self.full = full
        }
    }

    /// `Battery`, `Mains`, `USB`, `UPS`, `Wireless`.
    package var type: String
    /// `System` or `Device`; a mouse's battery has the latter.
    package var scope: String?
    /// Whether a battery is in its bay; supplies that do not say are.
    package var isPresent = true
    package var isOnline: Bool?
    /// `Charging`, `Discharging`, `Not charging`, `Full`, `Unknown`.
    package var status: String?
    /// Percent.
    package var capacity: Double?
    package var energy: Amount?
    package var charge: Amount?

    package init(type: String) {
        self.type = type
    }

    /// Whether it is a battery that keeps this machine running.
    var isBattery: Bool {
        (self.type == "Battery" || self.type == "UPS") && self.scope != "Device" && self.isPresent
    }

    /// Whether it is a supply from outside.
    var isExternal: Bool {
        ["Mains", "USB", "Wireless"].contains(self.type) && self.scope != "Device"
    }

    /// The share of its full content that is left, 0...1.
    var fraction: Double? {
        for case let amount? in [self.energy, self.charge] where amount.full > 0 {
            return min(1, max(0, amount.now / amount.full))
        }
        return self.capacity.map { min(1, max(0, $0 / 100)) }
    }
}

/// How a machine is powered.
package struct PowerState: Hashable, Sendable {
    /// Whole percent of what all batteries hold together when full; nil when none of them says.
    package var batteryPercent: Int?
    /// Whether power comes from outside: the charge does not go down.
    package var charging: Bool

    /// A machine without a battery runs on the mains: it is as good as full, and charging.
    package init(_ supplies: [PowerSupplyReading]) {
        let batteries = supplies.filter(\.isBattery)
        guard !batteries.isEmpty else {
            self.batteryPercent = 100
            self.charging = true
            return
        }
        self.batteryPercent = Self.fraction(of: batteries).map { Int(($0 * 100).rounded()) }
        let external = supplies.filter(\.isExternal)
        if batteries.contains(where: { $0.status == "Charging" }) {
            self.charging = true
        } else if batteries.contains(where: { $0.status == "Discharging" }) {
            // A charger that is too weak is as good as none.
            self.charging = false
        } else if external.isEmpty {
            self.charging = batteries.allSatisfy { $0.status == "Full" }
        } else {
            self.charging = external.contains { $0.isOnline == true }
        }
    }

    /// Batteries count by their size when all say it in one unit, and alike otherwise.
    private static func fraction(of batteries: [PowerSupplyReading]) -> Double? {
        for unit in [\PowerSupplyReading.energy, \PowerSupplyReading.charge] {
            let amounts = batteries.compactMap { $0[keyPath: unit] }.filter { $0.full > 0 }
            guard amounts.count == batteries.count else { continue }
            let full = amounts.reduce(0) { $0 + $1.full }
            return min(1, max(0, amounts.reduce(0) { $0 + $1.now } / full))
        }
        let fractions = batteries.compactMap(\.fraction)
        return fractions.isEmpty ? nil : fractions.reduce(0, +) / Double(fractions.count)
    }
}

/// How hot a machine is, from good to bad.
package enum ThermalState: String, Sendable, CaseIterable, Comparable {
    case nominal, fair, serious, critical

    private var rank: Int {
        switch self {
        case .nominal: 0
        case .fair: 1
        case .serious: 2
        case .critical: 3
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// What the kernel says of one thermal zone, a folder of `/sys/class/thermal`.
package struct ThermalZoneReading: Hashable, Sendable {
    package struct Trip: Hashable, Sendable {
        /// `active`, `passive`, `hot`, `critical`.
        package var type: String
        /// Thousandths of a degree Celsius.
        package var temperature: Int

        package init(_ type: String, _ temperature: Int) {
            self.type = type
            self.temperature = temperature
        }
    }

    /// Thousandths of a degree Celsius.
    package var temperature: Int
    package var trips: [Trip]

    package init(temperature: Int, trips: [Trip]) {
        self.temperature = temperature
        self.trips = trips
    }

    /// At `critical` the kernel switches the machine off, so the state is critical somewhat before that, or from `hot`
    /// on; it is serious where the machine slows itself down (`passive`), and fair shortly before. Fans (`active`) run
    /// for comfort and say nothing.
    func state(atMore extra: Int = 0) -> ThermalState {
        let temperature = self.temperature + extra
        func lowest(_ type: String) -> Int? {
            // Zones that have a trip in name only put it at or below zero.
            self.trips.filter { $0.type == type && $0.temperature > 0 }.map(\.temperature).min()
        }
        let critical = lowest("critical")
        if let hot = lowest("hot"), temperature >= hot { return .critical }
        if let critical, temperature >= critical - Self.beforeCritical { return .critical }
        if let passive = lowest("passive") {
            if temperature >= passive { return .serious }
            return temperature >= passive - Self.beforePassive ? .fair : .nominal
        }
        if let critical, temperature >= critical - Self.fairBeforeCritical { return .fair }
        return .nominal
    }

    static let beforeCritical = 5000
    static let beforePassive = 5000
    static let fairBeforeCritical = 15_000
}

/// What the kernel says of one cooling device, a folder of `/sys/class/thermal`.
package struct CoolingReading: Hashable, Sendable {
    /// The driver's name, such as `Processor`, `Fan` or `cpufreq-cpu0`.
    package var type: String
    package var state: Int
    package var stateMax: Int

    package init(type: String, state: Int, stateMax: Int) {
        self.type = type
        self.state = state
        self.stateMax = stateMax
    }

    /// A processor that is slowed down to cool it is fair, by half or more serious.
    var thermalState: ThermalState {
        let slowing = ["Processor", "cpufreq", "thermal-cpufreq", "thermal-idle", "intel_powerclamp", "devfreq"]
        guard self.state > 0, self.stateMax > 0, slowing.contains(where: self.type.hasPrefix) else { return .nominal }
        return self.state * 2 >= self.stateMax ? .serious : .fair
    }
}

extension ThermalState {
    /// How far a zone must cool below a bound before it has left it, in thousandths of a degree.
    static let hysteresis = 2000

    /// The worst of all zones and devices; `before` is the state at the last reading, which a zone near a bound keeps.
    package init(zones: [ThermalZoneReading], cooling: [CoolingReading], before: ThermalState) {
        let zoneStates = zones.map { zone in max(zone.state(), min(before, zone.state(atMore: Self.hysteresis))) }
        self = (zoneStates + cooling.map(\.thermalState)).max() ?? .nominal
    }
}

/// The share of the last ten seconds in which programs waited for memory, as `/proc/pressure/memory` has it.
package struct MemoryStalls: Hashable, Sendable {
    /// Percent of the time in which at least one program waited.
    package let some: Double
    /// Percent of the time in which every program that could run waited.
    package let full: Double

    package init(some: Double, full: Double) {
        self.some = some
        self.full = full
    }

    /// The averages of a text such as `some avg10=1.50 avg60=...`, a line each; nil if it has none.
    package init?(_ text: String) {
        func average(_ name: String) -> Double? {
            let line = text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
            let field = line?.split(separator: " ").first { $0.hasPrefix("avg10=") }
            return field.flatMap { Double($0.dropFirst("avg10=".count)) }
        }
        guard let some = average("some"), let full = average("full") else { return nil }
        self.init(some: some, full: full)
    }
}

/// The shortage of memory on a machine, from good to bad.
package enum MemoryPressure: String, Sendable, CaseIterable {
    case normal, warning, critical

    /// Percent from which programs wait too long for memory.
    static let bound = 10.0
    /// Percent below which a state is left.
    static let end = 5.0

    /// The pressure is critical while every program waits for a tenth of the time, and a warning while some program
    /// does.
    ///
    /// - Parameter before: The pressure at the last reading, which a machine near a bound keeps.
    package init(_ stalls: MemoryStalls, before: MemoryPressure) {
        if stalls.full >= (before == .critical ? Self.end : Self.bound) {
            self = .critical
        } else {
            self = stalls.some >= (before == .normal ? Self.bound : Self.end) ? .warning : .normal
        }
    }
}
