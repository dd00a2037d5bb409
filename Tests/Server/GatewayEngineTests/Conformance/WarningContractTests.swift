import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// The warnings of workers before the deadlines of their wakes, in every engine.
@Suite("The contract of an engine: warnings before deadlines", .timeLimit(.minutes(15)))
struct WarningContractTests {
    /// Returns an engine in which device 1 has a wake in flight on stream 1, with 20 seconds and a warning at this
    /// lead.
    private func launched(_ kind: EngineKind, lead: Double = 5) throws -> (EngineContract, ReceivedWake) {
        try EngineContract.launched(kind, slots: 1) {
            $0.permittedTasks = .all
            _ = PolicyParameter.expirationLead.set(lead, in: &$0.policy)
        }
    }

    @Test("A worker is warned once, before the deadline, and may still answer", arguments: EngineKind.all)
    func answers(kind: EngineKind) throws {
        let (contract, wake) = try self.launched(kind)
        contract.pass(seconds: 14)
        #expect(contract.warnings(1).isEmpty)
        contract.pass(seconds: 1)
        let warning = try #require(contract.warnings(1).first)
        #expect((warning.wake, warning.deadline, warning.timeLeft) == (wake.id, wake.deadline, 5000))
        contract.pass(seconds: 2)
        contract.pass(milliseconds: 2999)
        #expect(contract.warnings(1).count == 1 && contract.expired(1).isEmpty)
        contract.ask { $0.report(3, wake.id, .failed) }
        #expect(contract.answer(3) == "204")
        contract.pass(seconds: 5)
        #expect(contract.warnings(1).count == 1 && contract.expired(1).isEmpty)
        let counters = try contract.counters()
        #expect(counters.results[.failed] == 1 && counters.results[.expired] == 0)
    }

    @Test("A deadline that has already passed causes no warning", arguments: EngineKind.all)
    func late(kind: EngineKind) throws {
        let (contract, wake) = try self.launched(kind)
        contract.pass(seconds: 20)
        #expect(contract.warnings(1).isEmpty && contract.expired(1) == [wake.id])
    }

    @Test("More time moves the warning, and each deadline has its own", arguments: EngineKind.all)
    func extensions(kind: EngineKind) throws {
        let (contract, wake) = try self.launched(kind)
        contract.pass(seconds: 10)
        contract.ask {
            $0.extend(3, wake.id)
            $0.explain(7, 1)
        }
        #expect(contract.member(7, "inFlight", "deadline") == "\(wake.deadline + 10_000)")
        contract.pass(seconds: 14)
        #expect(contract.warnings(1).isEmpty, "the first deadline no longer applies")
        contract.pass(seconds: 1)
        #expect(contract.warnings(1).map(\.timeLeft) == [5000])
        contract.pass(seconds: 1)
        contract.ask { $0.extend(4, wake.id, milliseconds: 12_000) }
        contract.pass(seconds: 6)
        #expect(contract.warnings(1).count == 1)
        contract.pass(seconds: 1)
        #expect(contract.warnings(1).map(\.deadline) == [wake.deadline + 10_000, wake.deadline + 18_000])
        // The time until another deadline is shorter than the lead of a warning.
        contract.pass(seconds: 4)
        contract.ask { $0.extend(5, wake.id, milliseconds: 3000) }
        #expect(contract.warnings(1).map(\.timeLeft) == [5000, 5000, 3000])
        contract.ask { $0.extend(6, wake.id, milliseconds: 2000) }
        contract.pass(seconds: 1)
        #expect(contract.warnings(1).count == 3, "that moved nothing")
        contract.pass(seconds: 2)
        #expect(contract.expired(1) == [wake.id])
    }

    @Test("Progress moves the warning of a continued task", arguments: EngineKind.all)
    func progress(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask {
            $0.conditions(3, 1) { $0.appState = .active }
            $0.subscribe(4, tasks: ["export"])
            $0.submit(5, 1, "export", .continued(.queue))
        }
        let wake = try contract.lastWake()
        contract.pass(seconds: 50)
        contract.ask { $0.progress(6, wake.id, 10) }
        contract.pass(seconds: 54)
        #expect(contract.warnings(4).isEmpty)
        contract.pass(seconds: 1)
        #expect(contract.warnings(4).map(\.wake) == [wake.id] && contract.warnings(4).map(\.timeLeft) == [5000])
        contract.ask { $0.progress(7, wake.id, 20) }
        contract.pass(seconds: 55)
        #expect(contract.warnings(4).count == 2)
        contract.ask { $0.report(8, wake.id, TaskResult.failure) }
        #expect(contract.answer(8) == "204" && contract.expired(4).isEmpty)
    }

    @Test("A lost wake launches again with a new deadline and warning", arguments: EngineKind.all)
    func lost(kind: EngineKind) throws {
        let (contract, wake) = try self.launched(kind)
        contract.pass(seconds: 12)
        contract.ask { $0.endStream(1) }
        contract.ask { $0.subscribe(3) }
        let again = try contract.lastWake()
        contract.pass(seconds: 14)
        #expect(contract.warnings(1).isEmpty && contract.warnings(3).isEmpty)
        contract.pass(seconds: 1)
        #expect(again.id != wake.id && contract.warnings(3).map(\.wake) == [again.id])
    }

    /// Returns a configuration with another lead, in seconds.
    static func configuration(lead: Double) -> EngineConfiguration {
        var configuration = EngineRig.open(EngineContract.policy + [(.expirationLead, lead)])
        configuration.permittedTasks = .all
        return configuration
    }

    @Test("A new lead takes effect immediately, also for wakes in flight", arguments: EngineKind.all)
    func reload(kind: EngineKind) throws {
        let (on, _) = try self.launched(kind, lead: 0)
        on.pass(seconds: 5)
        on.ask { $0.configure(Self.configuration(lead: 8)) }
        on.pass(milliseconds: 6999)
        #expect(on.warnings(1).isEmpty)
        on.pass(milliseconds: 1)
        #expect(on.warnings(1).map(\.timeLeft) == [8000])
        let (longer, wake) = try self.launched(kind, lead: 2)
        longer.pass(seconds: 13)
        longer.ask { $0.configure(Self.configuration(lead: 9)) }
        longer.pass(milliseconds: 1)
        #expect(longer.warnings(1).map(\.wake) == [wake.id])
        let (shorter, _) = try self.launched(kind, lead: 9)
        shorter.pass(seconds: 10)
        shorter.ask { $0.configure(Self.configuration(lead: 2)) }
        shorter.pass(milliseconds: 7999)
        #expect(shorter.warnings(1).isEmpty)
        shorter.pass(milliseconds: 1)
        #expect(shorter.warnings(1).map(\.timeLeft) == [2000])
        let (off, silent) = try self.launched(kind)
        off.pass(seconds: 10)
        off.ask { $0.configure(Self.configuration(lead: 0)) }
        for _ in 0..<10 { off.pass(seconds: 1) }
        #expect(off.warnings(1).isEmpty && off.expired(1) == [silent.id])
    }

    @Test("Workers are warned while the gateway drains", arguments: EngineKind.all)
    func drains(kind: EngineKind) throws {
        let (contract, wake) = try self.launched(kind)
        contract.ask { $0.drain() }
        contract.pass(seconds: 15)
        #expect(contract.warnings(1).map(\.wake) == [wake.id])
    }
}

@Suite("Warnings before deadlines of devices that are not in memory", .timeLimit(.minutes(15)))
struct SharedWarningTests {
    @Test("A new lead takes effect for a wake whose launch was not confirmed yet")
    func reload() {
        let rig = GatewaysRig(count: 1, WarningContractTests.configuration(lead: 0))
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.database.holdCommits()
        rig[0].step { $0.push(2, 1) }
        for _ in 0..<3 { rig[0].step() }
        rig[0].step { $0.configure(WarningContractTests.configuration(lead: 8)) }
        for _ in 0..<3 { rig[0].step() }
        #expect(rig[0].wakes.isEmpty)
        for _ in 0..<10 {
            rig.database.letCommitsGo()
            rig[0].step()
        }
        #expect(rig[0].wakes.count == 1)
        rig.pass(seconds: 11)
        #expect(rig[0].warnings(1).isEmpty)
        rig.pass(seconds: 1)
        #expect(rig[0].warnings(1).map(\.timeLeft) == [8000])
    }

    @Test("Only a reload that changes a policy reads the rows of held wakes again")
    func sameReload() {
        let configuration = WarningContractTests.configuration(lead: 2)
        let rig = GatewaysRig(count: 1, configuration)
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { $0.push(2, 1) }
        for (lead, reads) in [(2.0, 0), (8.0, 1)] {
            let before = rig[0].store.loadCount
            rig[0].step { $0.configure(WarningContractTests.configuration(lead: lead)) }
            #expect(rig[0].store.loadCount == before + reads, "\(lead)")
        }
    }

    @Test("After a reload the rows of held wakes are read a few at a time")
    func crowd() {
        let rig = GatewaysRig(count: 1, WarningContractTests.configuration(lead: 2))
        rig.ask(0) { $0.subscribe(1, slots: 3000) }
        rig.ask(0) { requests in for device in 1...3000 { requests.push(10 + device, device) } }
        #expect(rig[0].wakes.count == 3000)
        rig.ask(0) { $0.configure(WarningContractTests.configuration(lead: 8)) }
        rig.pass(seconds: 11)
        #expect(rig[0].warnings(1).isEmpty)
        rig.pass(seconds: 1)
        #expect(rig[0].warnings(1).count == 3000)
    }

    @Test("The gateway with the worker's stream warns before the new deadline, and not before the former one")
    func extendedElsewhere() throws {
        let rig = GatewaysRig(count: 2)
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { $0.push(2, 1) }
        let wake = try #require(rig[0].wakes.first)
        rig.pass(seconds: 10)
        rig.ask(1) { $0.extend(3, wake.id) }
        rig.pass(seconds: 14)
        #expect(rig[0].warnings(1).isEmpty)
        rig.pass(seconds: 1)
        #expect(rig[0].warnings(1).map(\.timeLeft) == [5000])
        // The change is found at the former deadline, when less time is left than the lead of a warning.
        rig.ask(1) { $0.extend(4, wake.id, milliseconds: 7000) }
        rig.pass(seconds: 5)
        #expect(rig[0].warnings(1).map(\.timeLeft) == [5000, 2000])
        rig.pass(seconds: 2)
        #expect(rig[0].expirations(1) == [.deadline] && rig[0].warnings(1).count == 2 && rig[1].warnings(1).isEmpty)
    }

    @Test("No warning is sent for a wake whose result another gateway has received")
    func answeredElsewhere() throws {
        let rig = GatewaysRig(count: 2)
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { $0.push(2, 1) }
        let wake = try #require(rig[0].wakes.first)
        rig.ask(1) { $0.report(3, wake.id, .newData) }
        rig.pass(seconds: 21)
        #expect(rig[0].warnings(1).isEmpty && rig[0].expired(1).isEmpty)
    }
}
