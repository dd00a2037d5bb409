import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Damaged rows of a shared store", .timeLimit(.minutes(15)))
struct DamagedRowTests {
    private let rig = GatewaysRig(count: 1)

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
        self.rig.database.damageRow(of: EngineRig.token(1))
        self.rig.pass(seconds: 22)
        #expect(try self.rig.counters(0).results[.expired] == 2)
        #expect(self.rig[0].unreadable == [EngineRig.token(1)])
        #expect(try self.unreadableCount(11) == 1)
        self.rig.database.repairRows()
        self.rig.pass(seconds: 2)
        #expect(try self.rig.counters(0).results[.expired] == 3)
        self.rig.pass(seconds: 61)
        #expect(try self.unreadableCount(12) == 0)
        #expect(self.rig.database.log.misuses.isEmpty, "\(self.rig.database.log.misuses)")
    }

    @Test("Commands, questions and lists of other devices are answered, and those of the damaged row get 503")
    func commands() throws {
        self.rig.ask(0) { requests in for device in 1...3 { requests.register(device, device) } }
        self.rig.database.damageRow(of: EngineRig.token(2))
        self.rig.ask(0) { requests in
            for device in 1...3 { requests.push(10 + device, device) }
            for device in 1...3 { requests.explain(20 + device, device) }
            requests.devices(30)
        }
        #expect((1...3).map { self.rig[0].word(10 + $0) } == ["scheduled", "ServiceUnavailable", "scheduled"])
        #expect((1...3).map { self.rig[0].answer(20 + $0) } == ["200", "503 ServiceUnavailable", "200"])
        #expect(self.rig[0].answer(30) == "200")
        #expect((1...3).map { self.rig[0].text(30).contains(EngineRig.token($0).hex) } == [true, false, true])
        self.rig.database.repairRows()
        self.rig.ask(0) { $0.push(40, 2) }
        #expect(self.rig[0].word(40) == "scheduled")
        #expect(try self.rig.counters(0).accepted == 3)
    }

    @Test("A damaged row that waits for a slot does not keep the slot from other devices")
    func claims() throws {
        self.rig.ask(0) { $0.push(1, 1) }
        self.rig.pass(seconds: 1)
        self.rig.ask(0) { $0.push(2, 2) }
        self.rig.database.damageRow(of: EngineRig.token(1))
        self.rig.ask(0) { $0.subscribe(3, slots: 1) }
        self.rig.pass(seconds: 2)
        #expect(self.rig[0].wakes.map(\.device) == [EngineRig.token(2)])
    }

    @Test("A damaged row does not keep another gateway from the result of another device's wake")
    func results() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { requests in
            requests.register(2, 1)
            requests.push(3, 2)
        }
        let wake = try #require(rig[0].wakes.first)
        rig.database.damageRow(of: EngineRig.token(1))
        rig.ask(1) { requests in
            requests.push(4, 1)
            requests.report(5, wake.id, .newData)
        }
        #expect(rig[1].word(4) == "ServiceUnavailable" && rig[1].answer(5) == "204")
        #expect(try rig.counters(1).completed == 1)
    }

    @Test("The wakes of a dead gateway are lost although one of their rows is damaged")
    func retirement() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.subscribe(1, slots: 2) }
        rig.ask(0) { requests in for device in 1...2 { requests.push(1 + device, device) } }
        rig.database.damageRow(of: EngineRig.token(1))
        rig.kill(0)
        rig.pass(seconds: 2)
        #expect(try rig.counters(1).results[.lost] == 1)
        rig.database.repairRows()
        rig.pass(seconds: 2)
        #expect(try rig.counters(1).results[.lost] == 2)
        #expect(rig.database.log.counts[.retirement] == 1)
    }

    @Test("A failure counts until its devices are read, however many reads had failed before")
    func failures() {
        var devices = ChangedDevices()
        let (bad, good) = (EngineRig.token(1), EngineRig.token(2))
        devices.append(bad, countMax: 2)
        for moment in 1...3 as ClosedRange<Int64> {
            let taken = devices.take()
            devices.failed(taken, at: moment)
        }
        devices.append(good, countMax: 2)
        #expect(devices.hasFailed)
        devices.succeeded([good])
        #expect(devices.hasFailed)
        devices.succeeded([bad])
        #expect(!devices.hasFailed)
    }
}
