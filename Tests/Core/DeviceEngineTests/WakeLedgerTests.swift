import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The ledger of wakes", .timeLimit(.minutes(15)))
struct WakeLedgerTests {
    private static let tenMinutes: Int64 = 600_000

    private static func wake(_ number: Int) -> WakeID { WakeID(random: (UInt64(number), 1)) }

    private static func device(_ number: Int) -> DeviceIndex { DeviceIndex(rawValue: UInt32(number)) }

    private static func devices(_ count: Int) -> DeviceTable {
        var devices = DeviceTable(key: EngineRig.historyKey)
        for number in 0..<count {
            let topic = TopicIndex(rawValue: 0)
            _ = devices.insert(
                DeviceRecord(token: EngineRig.token(number), topic: topic, registeredAt: .distantPast)
            )
        }
        return devices
    }

    private static func ended(_ number: Int, at milliseconds: Int64) -> EndedWake {
        EndedWake(id: Self.wake(number), outcome: .push(.newData), at: Instant(milliseconds: milliseconds))
    }

    @Test("A wake is known from its launch on, and after its end as one of its device's last four")
    func lastFour() {
        var devices = Self.devices(2)
        var ledger = WakeLedger()
        #expect(ledger.device(of: Self.wake(0)) == nil)
        for number in 0..<6 {
            ledger.launched(Self.wake(number), Self.device(0))
            #expect(ledger.device(of: Self.wake(number)) == Self.device(0))
            ledger.ended(Self.ended(number, at: Int64(number)), Self.device(0), in: &devices)
        }
        ledger.launched(Self.wake(6), Self.device(1))
        #expect((0..<7).map { ledger.device(of: Self.wake($0))?.rawValue } == [nil, nil, 0, 0, 0, 0, 1])
        #expect(ledger.known.ids == 5 && ledger.known.devicesWithEnded == 1)
    }

    @Test("Ended wakes are forgotten after ten minutes, of so many devices at a time")
    func forgotten() {
        var devices = Self.devices(5)
        var ledger = WakeLedger()
        for number in 0..<5 {
            ledger.launched(Self.wake(number), Self.device(number))
            ledger.ended(Self.ended(number, at: number == 4 ? 1 : 0), Self.device(number), in: &devices)
        }
        func forget(_ milliseconds: Int64, devicesMax: Int) -> Bool {
            ledger.forget(at: Instant(milliseconds: milliseconds), devicesMax: devicesMax, in: &devices)
        }
        #expect(forget(Self.tenMinutes - 1, devicesMax: 10) == true)
        #expect(ledger.known.ids == 5)
        #expect(forget(Self.tenMinutes, devicesMax: 3) == false)
        #expect(ledger.known.ids == 2 && ledger.known.devicesWithEnded == 2)
        #expect(forget(Self.tenMinutes, devicesMax: 3) == true)
        #expect((0..<5).map { ledger.device(of: Self.wake($0)) != nil } == [false, false, false, false, true])
        #expect(forget(Self.tenMinutes + 1, devicesMax: 3) == true)
        #expect(ledger.known.ids == 0 && ledger.known.devicesWithEnded == 0)
    }

    @Test("What expired is taken once, the first first")
    func expired() {
        var ledger = WakeLedger()
        for number in [3, 1, 2] { ledger.expired(Self.wake(number), .deadline) }
        #expect(ledger.popExpired() == ExpiredWake(id: Self.wake(3), reason: .deadline))
        ledger.expired(Self.wake(4), .operator)
        #expect([1, 2, 4].allSatisfy { ledger.popExpired()?.id == Self.wake($0) })
        #expect(ledger.popExpired() == nil)
    }

    @Test("A restored device's wakes are known, unless one of them is another's")
    func restored() {
        var devices = Self.devices(3)
        var former = WakeLedger()
        former.ended(Self.ended(1, at: 0), Self.device(0), in: &devices)
        former.ended(Self.ended(2, at: 0), Self.device(1), in: &devices)
        var ledger = WakeLedger()
        #expect(ledger.restore(Self.device(0), inFlight: [Self.wake(7)], in: devices) == true)
        #expect(ledger.device(of: Self.wake(1)) == Self.device(0) && ledger.device(of: Self.wake(7)) == Self.device(0))
        #expect(ledger.known.ids == 2 && ledger.known.devicesWithEnded == 1)
        #expect(ledger.restore(Self.device(1), inFlight: [Self.wake(7)], in: devices) == false)
        #expect(ledger.restore(Self.device(2), inFlight: [Self.wake(1)], in: devices) == false)
        #expect(ledger.forget(at: Instant(milliseconds: Self.tenMinutes), devicesMax: 9, in: &devices) == true)
        #expect(ledger.device(of: Self.wake(1)) == nil)
    }
}
