import Glibc
import Platform

/// The files in which Linux tells the state of a machine, below a root that tests replace.
package struct SystemFolder: Hashable, Sendable {
    /// The most that is read of one file, and the most entries that are looked at in one folder.
    private static let fileBytesMax = 4096
    private static let entriesMax = 256
    /// More than any machine has of anything: a gigawatt-hour in micro-watt-hours.
    private static let integerMax = 1_000_000_000_000_000

    private let root: String

    /// - Parameter root: `/`, or a folder with `sys`, `var` and `run` in it.
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
