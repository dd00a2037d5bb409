/// What a machine can tell of its state, as device conditions; nil for what it cannot tell.
package struct MachineConditions: Hashable, Sendable {
    /// Whole percent.
    package var batteryPercent: Int?
    package var charging: Bool?
    package var lowPowerMode: Bool?
    package var thermalState: ThermalState?
    package var network: Bool?
    /// Whether somebody uses the machine.
    package var appState: AppState?

    package init() {}

    /// The conditions that readings of the machine stand for.
    ///
    /// - `before`: the thermal state at the last reading.
    package init(_ reading: MachineReading, before: ThermalState = .nominal) {
        if let supplies = reading.powerSupplies {
            let power = PowerState(supplies)
            self.batteryPercent = power.batteryPercent
            self.charging = power.charging
        }
        self.lowPowerMode = reading.isLowPower
        if !reading.zones.isEmpty || !reading.cooling.isEmpty {
            self.thermalState = ThermalState(zones: reading.zones, cooling: reading.cooling, before: before)
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
        if let network = self.network { members.append("\"network\":\(network)") }
        if let appState = self.appState { members.append("\"appState\":\"\(appState.rawValue)\"") }
        return "{\(members.joined(separator: ","))}"
    }
}

/// Some of the conditions that a machine can tell of.
package struct ConditionSet: OptionSet, Hashable, Sendable {
    /// Conditions of the hardware: battery, charger, power saving, heat and network.
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
    package var network: NetworkReading?

    package init() {}

    /// Nil when nothing on the machine has a say in it.
    var isLowPower: Bool? {
        if self.platformProfile == nil, self.powerProfile == nil { return nil }
        return self.powerProfile == "power-saver" || self.platformProfile == "low-power"
    }
}
