import LinuxConditions
import Testing

@Suite("Batteries and chargers become a charge and whether it goes down")
struct PowerStateTests {
    @Test("A machine without a battery is as good as full, and on the mains")
    func none() {
        #expect(PowerState([]) == PowerState([Self.supply("Mains", isOnline: true)]))
        #expect(PowerState([]).batteryPercent == 100)
        #expect(PowerState([]).charging)
    }

    @Test(
        "Charging is read from the batteries first, then from the power supplies",
        arguments: [
            ("Charging", nil, true), ("Discharging", nil, false), ("Full", nil, true), ("Not charging", nil, false),
            ("Unknown", nil, false), ("Full", false, false), ("Full", true, true), ("Not charging", true, true),
            // The charger is too weak.
            ("Discharging", true, false), ("Charging", false, true), (nil, true, true), (nil, false, false),
        ] as [(String?, Bool?, Bool)]
    )
    func charging(status: String?, mains: Bool?, expected: Bool) {
        var supplies = [Self.battery(status: status, capacity: 50)]
        if let mains { supplies.append(Self.supply("Mains", isOnline: mains)) }
        #expect(PowerState(supplies).charging == expected)
    }

    @Test("USB and wireless chargers count as the mains do")
    func chargers() {
        for type in ["USB", "Wireless"] {
            let supplies = [Self.battery(status: "Full", capacity: 100), Self.supply(type, isOnline: true)]
            #expect(PowerState(supplies).charging)
        }
    }

    @Test("Two batteries are charging if one of them is; one that discharges while the other rests is not")
    func twoBatteries() {
        let charging = Self.battery(status: "Charging", capacity: 10)
        let resting = Self.battery(status: "Not charging", capacity: 90)
        let discharging = Self.battery(status: "Discharging", capacity: 50)
        #expect(PowerState([charging, discharging]).charging)
        #expect(!PowerState([resting, discharging]).charging)
    }

    @Test("Batteries count by their size when they say it in one unit")
    func weights() {
        var large = Self.battery(status: "Full", capacity: 100)
        large.energy = .init(now: 90, full: 90)
        var small = Self.battery(status: "Full", capacity: 0)
        small.energy = .init(now: 0, full: 10)
        #expect(PowerState([large, small]).batteryPercent == 90)
        small.energy = nil
        small.charge = .init(now: 0, full: 10)
        #expect(PowerState([large, small]).batteryPercent == 50)
        large.energy = nil
        large.charge = .init(now: 30, full: 30)
        #expect(PowerState([large, small]).batteryPercent == 75)
    }

    @Test("Batteries of mice, bays without a battery, and nonsense are left out")
    func ignored() {
        var mouse = Self.battery(status: "Discharging", capacity: 3)
        mouse.scope = "Device"
        var bay = Self.battery(status: nil, capacity: 0)
        bay.isPresent = false
        #expect(PowerState([mouse, bay]) == PowerState([]))
        var phone = Self.supply("USB", isOnline: true)
        phone.scope = "Device"
        #expect(!PowerState([Self.battery(status: "Not charging", capacity: 40), phone]).charging)

        var worn = Self.battery(status: "Full", capacity: 130)
        #expect(PowerState([worn]).batteryPercent == 100)
        worn.energy = .init(now: 5, full: 0)
        worn.capacity = nil
        #expect(PowerState([worn]).batteryPercent == nil)
        worn.energy = .init(now: 55, full: 50)
        #expect(PowerState([worn]).batteryPercent == 100)
    }

    @Test("A UPS is a battery")
    func ups() {
        var supply = Self.supply("UPS", isOnline: nil)
        supply.status = "Discharging"
        supply.capacity = 61
        #expect(PowerState([supply]).batteryPercent == 61)
        #expect(!PowerState([supply]).charging)
    }

    static func supply(_ type: String, isOnline: Bool?) -> PowerSupplyReading {
        var supply = PowerSupplyReading(type: type)
        supply.isOnline = isOnline
        return supply
    }

    static func battery(status: String?, capacity: Double) -> PowerSupplyReading {
        var supply = PowerSupplyReading(type: "Battery")
        supply.status = status
        supply.capacity = capacity
        return supply
    }
}

@Suite("Stalls become a memory pressure")
struct MemoryPressureTests {
    @Test(
        "Every program that waits for a tenth of the time is critical, some program a warning, and each ends at half",
        arguments: [
            (0, 0, .normal, .normal), (9.99, 9.99, .normal, .normal), (10, 0, .normal, .warning),
            (30, 9.99, .warning, .warning), (30, 10, .normal, .critical), (30, 5, .critical, .critical),
            (30, 4.99, .critical, .warning), (5, 0, .warning, .warning), (4.99, 0, .warning, .normal),
            (4.99, 4.99, .critical, .normal),
        ] as [(Double, Double, MemoryPressure, MemoryPressure)]
    )
    func bounds(some: Double, full: Double, before: MemoryPressure, expected: MemoryPressure) {
        #expect(MemoryPressure(MemoryStalls(some: some, full: full), before: before) == expected)
    }

    @Test("The averages of ten seconds are read, and what has none says nothing")
    func text() {
        let some = "some avg10=12.34 avg60=99.00 avg300=0.00 total=1"
        #expect(
            MemoryStalls("\(some)\nfull avg10=0.50 avg60=1.00 avg300=0.00 total=2\n")
                == MemoryStalls(some: 12.34, full: 0.5)
        )
        for text in ["", some, "some avg10=x avg60=1\nfull avg10=1", "full\nsome"] {
            #expect(MemoryStalls(text) == nil, "\(text)")
        }
    }
}

@Suite("Temperatures become a thermal state")
struct ThermalStateTests {
    private typealias Zone = ThermalZoneReading
    private static let laptop: [ThermalZoneReading.Trip] = [
        .init("active", 40_000), .init("passive", 80_000), .init("hot", 95_000), .init("critical", 105_000),
    ]

    @Test(
        "The bounds of a zone with all trip points",
        arguments: [
            (20_000, .nominal), (60_000, .nominal), (74_999, .nominal), (75_000, .fair), (79_999, .fair),
            (80_000, .serious), (94_999, .serious), (95_000, .critical), (105_000, .critical),
        ] as [(Int, ThermalState)]
    )
    func bounds(temperature: Int, expected: ThermalState) {
        #expect(Self.state(temperature, Self.laptop) == expected)
    }

    @Test(
        "A zone with a critical trip point alone is fair 15 degrees before it, and critical 5 degrees before",
        arguments: [(84_999, .nominal), (85_000, .fair), (94_999, .fair), (95_000, .critical)] as [(Int, ThermalState)]
    )
    func criticalAlone(temperature: Int, expected: ThermalState) {
        #expect(Self.state(temperature, [.init("critical", 100_000)]) == expected)
    }

    @Test("A zone without trip points, or with some in name only, is nominal however hot")
    func noTrips() {
        #expect(Self.state(200_000, []) == .nominal)
        #expect(Self.state(90_000, [.init("critical", 0), .init("passive", -274_000)]) == .nominal)
    }

    @Test("A zone leaves a state two degrees below its threshold, even over several states")
    func hysteresis() {
        #expect(Self.state(79_000, Self.laptop, before: .serious) == .serious)
        #expect(Self.state(78_001, Self.laptop, before: .serious) == .serious)
        #expect(Self.state(77_999, Self.laptop, before: .serious) == .fair)
        #expect(Self.state(94_000, Self.laptop, before: .critical) == .critical)
        #expect(Self.state(20_000, Self.laptop, before: .critical) == .nominal)
        // The hysteresis never makes the state worse than before.
        #expect(Self.state(79_500, Self.laptop, before: .fair) == .fair)
        #expect(Self.state(79_500, Self.laptop, before: .nominal) == .fair)
    }

    @Test(
        "Any number from a driver yields a valid state",
        arguments: ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e308", "-0", "nan", ""]
    )
    func anyNumber(number: String) throws {
        let thermal = "sys/class/thermal/thermal_zone0"
        let cooling = "sys/class/thermal/cooling_device0"
        let battery = "sys/class/power_supply/BAT0"
        var files = ["\(cooling)/type": "Processor", "\(battery)/type": "Battery"]
        for (index, type) in ["critical", "hot", "passive"].enumerated() {
            files["\(thermal)/trip_point_\(index)_type"] = type
            files["\(thermal)/trip_point_\(index)_temp"] = number
        }
        files["\(thermal)/temp"] = number
        for name in ["cur_state", "max_state"] { files["\(cooling)/\(name)"] = number }
        for name in ["capacity", "energy_now", "energy_full", "charge_now", "charge_full", "present", "online"] {
            files["\(battery)/\(name)"] = number
        }
        let folder = try MachineFolder(files)
        let reading = SystemFolder(root: folder.path).read()
        for before in ThermalState.allCases {
            let state = ThermalState(zones: reading.zones, cooling: reading.cooling, before: before)
            #expect(ThermalState.allCases.contains(state))
        }
        let percent = PowerState(reading.powerSupplies ?? []).batteryPercent
        #expect((0...100).contains(percent ?? 0))
    }

    @Test("The worst zone counts")
    func worst() {
        let zones = [
            Zone(temperature: 30_000, trips: Self.laptop), Zone(temperature: 81_000, trips: Self.laptop),
        ]
        #expect(ThermalState(zones: zones, cooling: [], before: .nominal) == .serious)
    }

    @Test(
        "A processor that is slowed down counts; fans and idle devices do not",
        arguments: [
            ("Processor", 0, 10, .nominal), ("Processor", 1, 10, .fair), ("Processor", 5, 10, .serious),
            ("cpufreq-cpu0", 3, 3, .serious), ("thermal-cpufreq-1", 1, 20, .fair), ("Fan", 1, 1, .nominal),
            ("intel_powerclamp", -1, 50, .nominal), ("Processor", 1, 0, .nominal), ("TCC Offset", 5, 63, .nominal),
        ] as [(String, Int, Int, ThermalState)]
    )
    func cooling(type: String, state: Int, stateMax: Int, expected: ThermalState) {
        let device = CoolingReading(type: type, state: state, stateMax: stateMax)
        #expect(ThermalState(zones: [], cooling: [device], before: .nominal) == expected)
    }

    private static func state(
        _ temperature: Int,
        _ trips: [ThermalZoneReading.Trip],
        before: ThermalState = .nominal
    ) -> ThermalState {
        ThermalState(zones: [Zone(temperature: temperature, trips: trips)], cooling: [], before: before)
    }
}
