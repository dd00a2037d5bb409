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
