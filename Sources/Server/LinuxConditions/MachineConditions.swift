import Glibc
import Platform

/// The state of a machine as device conditions. A condition that cannot be read is nil.
package struct MachineConditions: Hashable, Sendable {
    /// The charge in whole percent.
    package var batteryPercent: Int?
    package var charging: Bool?
    package var lowPowerMode: Bool?
    package var thermalState: ThermalState?
    package var memoryPressure: MemoryPressure?
    package var network: Bool?
    /// The use of the machine: `active` while a user is present.
    package var appState: AppState?

    package init() {}

    /// Creates the conditions from a reading of the machine.
    ///
    /// - `before`: the conditions of the previous reading, for the hysteresis of heat and memory pressure.
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

    /// Returns the known fields that differ from `earlier`; all known fields if `earlier` is nil.
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

    /// The JSON object for `PATCH /v1/devices/<token>/conditions`.
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

/// The readings of a machine at one time.
package struct MachineReading: Hashable, Sendable {
    /// The power supplies; nil if the kernel has no such class, as in some containers.
    package var powerSupplies: [PowerSupplyReading]?
    package var zones: [ThermalZoneReading] = []
    package var cooling: [CoolingReading] = []
    /// The firmware's profile, such as `low-power` or `balanced`.
    package var platformProfile: String?
    /// The profile set in power-profiles-daemon: `power-saver`, `balanced` or `performance`.
    package var powerProfile: String?
    /// The memory stalls; nil if the kernel does not measure them.
    package var memoryStalls: MemoryStalls?
    package var network: NetworkReading?

    package init() {}

    /// True in a power-saving profile; nil if the machine has no profiles.
    var isLowPower: Bool? {
        if self.platformProfile == nil, self.powerProfile == nil { return nil }
        return self.powerProfile == "power-saver" || self.platformProfile == "low-power"
    }
}

/// The files with which Linux reports the state of a machine, below a root that tests replace.
package struct SystemFolder: Hashable, Sendable {
    /// The maximum number of bytes read of one file, and of entries read of one folder.
    private static let fileBytesMax = 4096
    private static let entriesMax = 256
    /// The largest absolute value that is accepted: a gigawatt-hour in micro-watt-hours, more than any battery stores.
    private static let integerMax = 1_000_000_000_000_000

    private let root: String

    /// - Parameter root: `/`, or a folder with `sys`, `proc`, `var` and `run`.
    package init(root: String = "/") {
        self.root = root.hasSuffix("/") ? String(root.dropLast()) : root
    }

    /// The path of the message bus's socket below a root other than `/`; nil for the system's bus.
    package var busSocket: String? { self.root.isEmpty ? nil : "\(self.root)/run/dbus/system_bus_socket" }

    /// Reads everything except the network. Files that do not exist or cannot be read now are ignored.
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
        // The kernel reports 1 for a fixed voltage and 2 for a programmable one.
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
        // The kernel does not act on a disabled zone.
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

    /// Returns the profile last set in power-profiles-daemon: the line `Profile=` of its state file.
    private func powerProfile() -> String? {
        let lines = self.text("/var/lib/power-profiles-daemon/state.ini")?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix("Profile=") }.map { String($0.dropFirst("Profile=".count)) }
    }

    /// Returns a driver's number, clamped to ±`integerMax`, because drivers may report anything.
    private func integer(_ path: String) -> Int? {
        self.text(path).flatMap { Int($0) }.map { max(-Self.integerMax, min($0, Self.integerMax)) }
    }

    /// Returns the file's text without trailing white space; nil if it cannot be read.
    private func text(_ path: String) -> String? {
        guard let file = try? OpenFile(self.root + path, O_RDONLY | O_CLOEXEC) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Self.fileBytesMax)
        // Sensors return EAGAIN or ENODATA when they have no value.
        guard let count = try? Descriptor.read(file.descriptor, into: &bytes) else { return nil }
        let end = bytes[..<count].lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? 0
        return String(decoding: bytes[..<end], as: UTF8.self)
    }

    /// Returns the folders in a folder, sorted; nil if the folder does not exist.
    private func entries(_ path: String) -> [String]? {
        FileSystem.names(in: self.root + path, countMax: Self.entriesMax)?.map { "\(path)/\($0)" }.sorted()
    }
}

/// The kernel's data about one power supply, from a folder of `/sys/class/power_supply`. A missing value is nil.
package struct PowerSupplyReading: Hashable, Sendable {
    /// The current and the full content of a battery, in micro-watt-hours or micro-ampere-hours.
    package struct Amount: Hashable, Sendable {
        package var now: Double
        package var full: Double

        package init(now: Double, full: Double) {
            self.now = now
            self.full = full
        }
    }

    /// The type: `Battery`, `Mains`, `USB`, `UPS`, `Wireless`.
    package var type: String
    /// The scope: `System`, or `Device` for a peripheral's battery, such as a mouse's.
    package var scope: String?
    /// True if a battery is in its bay, or if unknown.
    package var isPresent = true
    package var isOnline: Bool?
    /// The status: `Charging`, `Discharging`, `Not charging`, `Full`, `Unknown`.
    package var status: String?
    /// The charge in percent.
    package var capacity: Double?
    package var energy: Amount?
    package var charge: Amount?

    package init(type: String) {
        self.type = type
    }

    /// True if the supply is a battery that powers this machine.
    var isBattery: Bool {
        (self.type == "Battery" || self.type == "UPS") && self.scope != "Device" && self.isPresent
    }

    /// True if the supply is an external one that powers this machine.
    var isExternal: Bool {
        ["Mains", "USB", "Wireless"].contains(self.type) && self.scope != "Device"
    }

    /// The charge as a fraction of the full content, 0...1.
    var fraction: Double? {
        for case let amount? in [self.energy, self.charge] where amount.full > 0 {
            return min(1, max(0, amount.now / amount.full))
        }
        return self.capacity.map { min(1, max(0, $0 / 100)) }
    }
}

/// The power supply of a machine.
package struct PowerState: Hashable, Sendable {
    /// The charge of all batteries together in whole percent; nil if none reports it.
    package var batteryPercent: Int?
    /// True if external power prevents a decrease of the charge.
    package var charging: Bool

    /// Creates the state from the supplies. A machine without a battery runs on mains power: it counts as full and
    /// charging.
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
            // A charger that is too weak counts as no charger.
            self.charging = false
        } else if external.isEmpty {
            self.charging = batteries.allSatisfy { $0.status == "Full" }
        } else {
            self.charging = external.contains { $0.isOnline == true }
        }
    }

    /// Returns the total charge. Batteries are weighted by capacity if all report it in the same unit, otherwise
    /// equally.
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

/// The heat of a machine, in order from good to bad.
package enum ThermalState: String, Sendable, CaseIterable, Comparable {
    case nominal, fair, serious, critical

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// The kernel's data about one thermal zone, a folder of `/sys/class/thermal`.
package struct ThermalZoneReading: Hashable, Sendable {
    package struct Trip: Hashable, Sendable {
        /// The type: `active`, `passive`, `hot`, `critical`.
        package var type: String
        /// The temperature in thousandths of a degree Celsius.
        package var temperature: Int

        package init(_ type: String, _ temperature: Int) {
            self.type = type
            self.temperature = temperature
        }
    }

    /// The temperature in thousandths of a degree Celsius.
    package var temperature: Int
    package var trips: [Trip]

    package init(temperature: Int, trips: [Trip]) {
        self.temperature = temperature
        self.trips = trips
    }

    /// Returns the zone's state.
    ///
    /// - Critical: at or above the trip point `hot`, or at most 5 °C below `critical`, at which the kernel switches the
    ///   machine off.
    /// - Serious: at or above `passive`, at which the machine slows down.
    /// - Fair: at most 5 °C below `passive`; in a zone without `passive`, at most 15 °C below `critical`.
    ///
    /// Trip points of fans (`active`) are ignored, because fans run for comfort.
    func state(atMore extra: Int = 0) -> ThermalState {
        let temperature = self.temperature + extra
        func lowest(_ type: String) -> Int? {
            // Some zones have unused trip points at or below zero.
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

/// The kernel's data about one cooling device, a folder of `/sys/class/thermal`.
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

    /// The resulting state: fair if the device slows a processor down, and serious if its level is at least half of
    /// `stateMax`.
    var thermalState: ThermalState {
        let slowing = ["Processor", "cpufreq", "thermal-cpufreq", "thermal-idle", "intel_powerclamp", "devfreq"]
        guard self.state > 0, self.stateMax > 0, slowing.contains(where: self.type.hasPrefix) else { return .nominal }
        return self.state * 2 >= self.stateMax ? .serious : .fair
    }
}

extension ThermalState {
    /// The hysteresis in thousandths of a degree. A zone leaves a state only when it is this far below the state's
    /// limit.
    static let hysteresis = 2000

    /// Creates the worst state of all zones and devices. A zone near a limit keeps `before`, the previous state.
    package init(zones: [ThermalZoneReading], cooling: [CoolingReading], before: ThermalState) {
        let zoneStates = zones.map { zone in max(zone.state(), min(before, zone.state(atMore: Self.hysteresis))) }
        self = (zoneStates + cooling.map(\.thermalState)).max() ?? .nominal
    }
}

/// The shares of the last ten seconds in which programs waited for memory, from `/proc/pressure/memory`.
package struct MemoryStalls: Hashable, Sendable {
    /// The percentage of time in which at least one program waited.
    package let some: Double
    /// The percentage of time in which all runnable programs waited.
    package let full: Double

    package init(some: Double, full: Double) {
        self.some = some
        self.full = full
    }

    /// Parses the averages in lines such as `some avg10=1.50 avg60=...`; nil if they are missing.
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

/// The shortage of memory on a machine, in order from good to bad.
package enum MemoryPressure: String, Sendable, CaseIterable {
    case normal, warning, critical

    /// The stall percentage at which a state begins.
    static let bound = 10.0
    /// The stall percentage below which a state ends.
    static let end = 5.0

    /// Creates the state: critical if all programs waited for 10% of the time, and a warning if at least one program
    /// did.
    ///
    /// - `before`: the previous state. A machine near a limit keeps it.
    package init(_ stalls: MemoryStalls, before: MemoryPressure) {
        if stalls.full >= (before == .critical ? Self.end : Self.bound) {
            self = .critical
        } else {
            self = stalls.some >= (before == .normal ? Self.bound : Self.end) ? .warning : .normal
        }
    }
}
