import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Damaged rows of a shared store", .timeLimit(.minutes(15)))
struct DamagedRowTests {
    private let rig = GatewaysRig(count: 1)

    /// Damages the row of a device, and returns its record.
    private func damage(_ device: Int) throws -> [UInt8] {
        let token = EngineRig.token(device)
        let record = try #require(self.rig.database.rows.devices[token]).device.record
        self.rig.database.replaceRecord(of: token, with: [1])
        return record
    }

    private func unreadableCount(_ request: Int) throws -> Double? {
        self.rig.ask(0) { $0.metrics(request) }
        return try MetricsReading(self.rig[0].text(request))["wakegate_cluster_unreadable_devices"]
    }

    @Test("A damaged row stops no due work of other devices, is reported once and counted, and loses nothing")
    func due() throws {
        self.rig.ask(0) { $0.subscribe(1, slots: 3) }
        self.rig.ask(0) { requests in for device in 1...3 { requests.push(1 + device, device) } }
        #expect(self.rig[0].wakes.count == 3)
        #expect(try self.unreadableCount(10) == 0)
        let record = try self.damage(1)
        self.rig.pass(seconds: 22)
        #expect(try self.rig.counters(0).results[.expired] == 2)
        #expect(self.rig[0].unreadable == [EngineRig.token(1)])
        #expect(try self.unreadableCount(11) == 1)
        self.rig.database.replaceRecord(of: EngineRig.token(1), with: record)
        self.rig.pass(seconds: 2)
        #expect(try self.rig.counters(0).results[.expired] == 3)
        self.rig.pass(seconds: 61)
        #expect(try self.unreadableCount(12) == 0)
        #expect(self.rig.database.log.misuses.isEmpty, "\(self.rig.database.log.misuses)")
    }

    @Test("Commands, questions and lists of other devices are answered, and those of the damaged row get 503")
    func commands() throws {
        self.rig.ask(0) { requests in for device in 1...3 { requests.register(device, device) } }
        let record = try self.damage(2)
        self.rig.ask(0) { requests in
            for device in 1...3 { requests.push(10 + device, device) }
            for device in 1...3 { requests.explain(20 + device, device) }
            requests.devices(30)
        }
        #expect((1...3).map { self.rig[0].word(10 + $0) } == ["scheduled", "ServiceUnavailable", "scheduled"])
        #expect((1...3).map { self.rig[0].answer(20 + $0) } == ["200", "503 ServiceUnavailable", "200"])
        #expect(self.rig[0].answer(30) == "200")
        #expect((1...3).map { self.rig[0].text(30).contains(EngineRig.token($0).hex) } == [true, false, true])
        self.rig.database.replaceRecord(of: EngineRig.token(2), with: record)
        self.rig.ask(0) { $0.push(40, 2) }
        #expect(self.rig[0].word(40) == "scheduled")
        #expect(try self.rig.counters(0).accepted == 3)
    }

    @Test("A damaged row that waits for a slot does not keep the slot from other devices")
    func claims() throws {
        self.rig.ask(0) { $0.push(1, 1) }
        self.rig.pass(seconds: 1)
        self.rig.ask(0) { $0.push(2, 2) }
        _ = try self.damage(1)
        self.rig.ask(0) { $0.subscribe(3, slots: 1) }
        self.rig.pass(seconds: 2)
        #expect(self.rig[0].wakes.map(\.device) == [EngineRig.token(2)])
    }

    @Test("The wakes of a dead gateway are lost although one of their rows is damaged")
    func retirement() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.subscribe(1, slots: 2) }
        rig.ask(0) { requests in for device in 1...2 { requests.push(1 + device, device) } }
        let record = try #require(rig.database.rows.devices[EngineRig.token(1)]).device.record
        rig.database.replaceRecord(of: EngineRig.token(1), with: [1])
        rig.kill(0)
        rig.pass(seconds: 2)
        #expect(try rig.counters(1).results[.lost] == 1)
        rig.database.replaceRecord(of: EngineRig.token(1), with: record)
        rig.pass(seconds: 2)
        #expect(try rig.counters(1).results[.lost] == 2)
        #expect(rig.database.log.counts[.retirement] == 1)
        #expect(rig.database.log.misuses.isEmpty, "\(rig.database.log.misuses)")
    }
}
