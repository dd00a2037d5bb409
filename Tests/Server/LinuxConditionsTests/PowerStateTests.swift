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
        "Whether it charges is told by the batteries first, then by what is plugged in",
        arguments: [
            ("Charging", nil, true), ("Discharging", nil, false), ("Full", nil, true), ("Not charging", nil, false),
            ("Unknown", nil, false), ("Full", false, false), ("Full", true, true), ("Not charging", true, true),
            // Too weak a charger.
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

    @Test("One of two batteries that charges is enough; one that discharges while the other rests is not")
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
