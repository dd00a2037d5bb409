import Foundation
import LinuxConditions
import Testing
import WakeGateTestKit

@Suite("The machine is read from the files of the kernel")
struct ConditionsWatchTests {
    @Test("A laptop with two batteries, a mouse, a charger, zones, a throttled processor and a power profile")
    func laptop() throws {
        let folder = try MachineFolder(Self.laptop)
        let conditions = try #require(ConditionsWatch(root: folder.path, network: Network()).conditions(now: 0))
        #expect(conditions.batteryPercent == 40)
        #expect(conditions.charging == true)
        #expect(conditions.lowPowerMode == true)
        #expect(conditions.thermalState == .serious)
        #expect(conditions.network == true)
        #expect(
            conditions.json == #"{"batteryLevel":0.40,"charging":true,"lowPowerMode":true,"#
                + #""thermalState":"serious","memoryPressure":"warning","network":true}"#
        )
        #expect(try JSONSerialization.jsonObject(with: Data(conditions.json.utf8)) is [String: Any])
    }

    @Test("A machine without information reports nothing")
    func nothing() throws {
        let network = Network()
        network.reading = nil
        let conditions = ConditionsWatch(root: try MachineFolder().path, network: network).conditions(now: 0)
        #expect(conditions?.isEmpty == true)
        #expect(conditions?.json == "{}")
    }

    @Test(
        "Low power is read from the firmware's profile, or from power-profiles-daemon",
        arguments: [
            ("low-power\n", nil, true), ("balanced\n", nil, false), (nil, "power-saver", true),
            (nil, "balanced", false), ("balanced\n", "power-saver", true), (nil, nil, nil),
        ] as [(String?, String?, Bool?)]
    )
    func lowPower(platform: String?, daemon: String?, expected: Bool?) throws {
        let folder = try MachineFolder()
        if let platform { try folder.write("sys/firmware/acpi/platform_profile", platform) }
        if let daemon {
            try folder.write("var/lib/power-profiles-daemon/state.ini", "[State]\nDriver=x\nProfile=\(daemon)\n")
        }
        let watch = ConditionsWatch(root: folder.path, network: Network())
        #expect(try #require(watch.conditions(now: 0)).lowPowerMode == expected)
    }

    @Test("Disabled zones, sensors without a value and trip points without a threshold are ignored")
    func unreadable() throws {
        let folder = try MachineFolder([
            "sys/class/thermal/thermal_zone0/mode": "disabled\n", "sys/class/thermal/thermal_zone0/temp": "99000\n",
            "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
            "sys/class/thermal/thermal_zone0/trip_point_0_temp": "80000\n",
            "sys/class/thermal/thermal_zone1/trip_point_0_type": "passive\n",
            "sys/class/thermal/thermal_zone2/temp": "99000\n",
            "sys/class/thermal/thermal_zone2/trip_point_0_type": "passive\n",
            "sys/class/thermal/thermal_zone2/trip_point_1_type": "critical\n",
            "sys/class/thermal/thermal_zone2/trip_point_1_temp": "110000\n",
        ])
        let conditions = try #require(ConditionsWatch(root: folder.path, network: Network()).conditions(now: 0))
        #expect(conditions.thermalState == .fair)
    }

    @Test("Conditions without kernel events are read every 15 seconds, others at most every half second")
    func times() throws {
        let folder = try MachineFolder(["sys/class/power_supply/BAT0/type": "Battery\n"])
        try folder.write("sys/class/power_supply/BAT0/capacity", "50\n")
        let network = Network()
        let watch = ConditionsWatch(root: folder.path, network: network)
        #expect(watch.conditions(now: 1000)?.batteryPercent == 50)
        try folder.write("sys/class/power_supply/BAT0/capacity", "9\n")
        #expect(watch.conditions(now: 15_999) == nil)
        #expect(watch.nextAt == 16_000)
        #expect(watch.conditions(now: 16_000)?.json == #"{"batteryLevel":0.09,"charging":false,"network":true}"#)
        network.reading = NetworkReading()
        network.isChanged = true
        #expect(watch.conditions(now: 16_100) == nil)
        #expect(watch.nextAt == 16_500)
        #expect(watch.conditions(now: 16_500)?.network == false)
        #expect(watch.nextAt == 31_500)
    }

    @Test("Only events of chargers, batteries and zones count")
    func events() {
        func event(_ subsystem: String) -> ArraySlice<UInt8> {
            Array("change@/devices/x\0ACTION=change\0DEVPATH=/devices/x\0SUBSYSTEM=\(subsystem)\0SEQNUM=1\0".utf8)[...]
        }
        #expect(ConditionsWatch.isOfInterest(event("power_supply")))
        #expect(ConditionsWatch.isOfInterest(event("thermal")))
        #expect(!ConditionsWatch.isOfInterest(event("block")))
        #expect(!ConditionsWatch.isOfInterest(event("x/power_supply")))
        #expect(ConditionsWatch.isOfInterest([]))
    }

    @Test("The kernel returns this machine's links and routes")
    func kernel() throws {
        let network = KernelNetwork()
        #expect(network.descriptor != nil)
        #expect(!network.hasChanged())
        // The contents vary; the test only requires that the whole answer can be read.
        _ = try #require(network.read())
    }

    /// A network whose state the test sets.
    private final class Network: NetworkSource {
        var reading: NetworkReading? = NetworkReading(usableLinks: [2], defaultRouteLinks: [2])
        var isChanged = false
        var descriptor: Int32? { nil }

        func hasChanged() -> Bool {
            defer { self.isChanged = false }
            return self.isChanged
        }

        func read() -> NetworkReading? { self.reading }
    }

    private static let laptop = [
        "sys/class/power_supply/BAT0/type": "Battery\n", "sys/class/power_supply/BAT0/present": "1\n",
        "sys/class/power_supply/BAT0/status": "Not charging\n",
        "sys/class/power_supply/BAT0/energy_now": "30000000\n",
        "sys/class/power_supply/BAT0/energy_full": "50000000\n", "sys/class/power_supply/BAT0/capacity": "60\n",
        "sys/class/power_supply/BAT1/type": "Battery\n", "sys/class/power_supply/BAT1/present": "1\n",
        "sys/class/power_supply/BAT1/status": "Charging\n",
        "sys/class/power_supply/BAT1/energy_now": "10000000\n",
        "sys/class/power_supply/BAT1/energy_full": "50000000\n",
        "sys/class/power_supply/BAT2/type": "Battery\n", "sys/class/power_supply/BAT2/present": "0\n",
        "sys/class/power_supply/hidpp_battery_0/type": "Battery\n",
        "sys/class/power_supply/hidpp_battery_0/scope": "Device\n",
        "sys/class/power_supply/hidpp_battery_0/capacity": "5\n",
        "sys/class/power_supply/hidpp_battery_0/status": "Discharging\n",
        "sys/class/power_supply/AC/type": "Mains\n", "sys/class/power_supply/AC/online": "1\n",
        "proc/pressure/memory": "some avg10=10.00 avg60=0.00 total=1\nfull avg10=0.00 avg60=0.00 total=0\n",
        "sys/class/thermal/thermal_zone0/type": "acpitz\n", "sys/class/thermal/thermal_zone0/mode": "enabled\n",
        "sys/class/thermal/thermal_zone0/temp": "52000\n",
        "sys/class/thermal/thermal_zone0/trip_point_0_type": "critical\n",
        "sys/class/thermal/thermal_zone0/trip_point_0_temp": "103000\n",
        "sys/class/thermal/cooling_device0/type": "Processor\n",
        "sys/class/thermal/cooling_device0/cur_state": "7\n", "sys/class/thermal/cooling_device0/max_state": "10\n",
        "sys/class/thermal/cooling_device1/type": "Fan\n", "sys/class/thermal/cooling_device1/cur_state": "1\n",
        "sys/class/thermal/cooling_device1/max_state": "1\n",
        "sys/firmware/acpi/platform_profile": "low-power\n",
    ]
}

/// A folder that replaces the root of a machine; removed with the last reference.
final class MachineFolder {
    private let folder: TemporaryFolder

    var url: URL { self.folder.url }
    var path: String { self.folder.path }

    init(_ files: [String: String] = [:]) throws {
        self.folder = try TemporaryFolder()
        for (path, text) in files { try self.write(path, text) }
    }

    func write(_ path: String, _ text: String) throws {
        let file = self.url.appendingPathComponent(path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: file)
    }
}
