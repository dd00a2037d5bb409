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
