import Engine
import Gateway
import Testing
import WakeGateTestKit
import Wire

@Suite("Device rows locked by another database session", .timeLimit(.minutes(15)))
struct DeviceLockTests {
    /// Returns a gateway that knows devices from 1 on, and a session that locks the first of them.
    private func scene(devices: Int, locked: Int) -> (rig: GatewaysRig, other: LockingSession) {
        let rig = GatewaysRig(count: 1)
        rig.ask(0) { requests in for device in 1...devices { requests.push(device, device) } }
        for device in 1...devices { #expect(rig[0].word(device) == "scheduled") }
        let other = LockingSession(rig.database, 1...locked)
        #expect(other.lockedCount == locked)
        return (rig, other)
    }

    @Test("Questions about a device are answered while its row is locked, and lock nothing")
    func questions() throws {
        let (rig, other) = self.scene(devices: 2, locked: 1)
        let whatIf = try WhatIf(JSONReader.read(#"{"policy":{"launchInterval":5}}"#))
        let loads = rig.database.log.counts[.load]
        rig.ask(0) { requests in
            requests.explain(100, 1)
            requests.listTasks(101, 1)
            requests.pendingPush(102, 1)
            requests.devicePushes(103, 1)
            requests.deviceEvents(104, 1)
            requests.diagnose(105, 1)
            requests.diagnose(106, 1, task: "a")
            requests.readConditions(107, 1)
            requests.trace(108, 1)
            requests.whatIf(109, 1, whatIf)
            requests.explain(110, 9)
        }
        #expect(rig.database.log.counts[.load] == loads)
        for request in [101, 102, 105, 106, 107] { #expect(rig[0].answer(request) == "200", "\(request)") }
        #expect(rig[0].answer(110) == "404 UnknownDevice")
        for request in 100...109 { #expect(rig[0].answerCount(request) == 1, "\(request)") }
        other.end()
    }

    @Test("A question sees the earlier commands of the same gateway")
    func order() throws {
        let (rig, other) = self.scene(devices: 1, locked: 1)
        other.end()
        rig.database.holdCommits()
        rig[0].step { requests in
            requests.register(50, 5)
            requests.explain(51, 5)
            requests.unregister(52, 1)
            requests.listTasks(53, 1)
        }
        #expect(rig[0].answerCount(51) == 0)
        rig.database.letCommitsGo()
        rig[0].step()
        rig.database.letCommitsGo()
        rig.settle()
        #expect(rig[0].answer(50) == "201" && rig[0].answer(52) == "204")
        #expect(rig[0].answerCount(53) == 1 && rig[0].answer(53) != "200", "it is not registered any more")
        #expect(rig[0].answerCount(51) == 1 && rig[0].answer(51) != "404 UnknownDevice")
    }

    @Test("Locked rows delay no other device; their commands are refused after seconds, and work again once unlocked")
    func others() throws {
        let (rig, other) = self.scene(devices: 40, locked: 12)
        rig[0].step { requests in for device in 1...40 { requests.push(100 + device, device) } }
        rig.wait(seconds: 1)
        rig[0].step()
        for device in 13...40 { #expect(rig[0].word(100 + device) == "coalesced", "\(device)") }
        for device in 1...12 { #expect(rig[0].word(100 + device) == nil, "\(device)") }
        rig.wait(seconds: 2)
        rig[0].step { requests in
            requests.metrics(200)
            requests.readiness(201)
            requests.push(202, 41)
            requests.push(203, 1)
        }
        rig.wait(seconds: 2)
        let metric = "wakegate_cluster_locked_devices{session=\"pid 2, application simulation\"} 12"
        #expect(rig[0].text(200).contains(metric))
        #expect(rig[0].answer(201) == "200")
        #expect(rig[0].word(202) == "scheduled")
        rig.wait(seconds: 4)
        for device in 1...12 { #expect(rig[0].word(100 + device) == "ServiceUnavailable", "\(device)") }
        #expect(rig[0].word(203) == "ServiceUnavailable")
        // The gateway knows that the row is locked, and refuses the push without waiting for another five seconds.
        rig[0].step { $0.push(300, 1) }
        rig.wait(seconds: 1)
        #expect(rig[0].word(300) == "ServiceUnavailable")
        rig[0].step { $0.unregister(301, 2) }
        rig[0].step()
        other.end()
        rig.wait(seconds: 1)
        rig.settle()
        #expect(rig[0].answer(301) == "503 ServiceUnavailable")
        rig.ask(0) { requests in for device in 1...12 { requests.push(400 + device, device) } }
        for device in 1...12 { #expect(rig[0].word(400 + device) == "coalesced", "\(device)") }
        rig.pass(seconds: 12)
        rig.ask(0) { $0.metrics(500) }
        #expect(!rig[0].text(500).contains("wakegate_cluster_locked_devices{"))
        #expect(try rig.counters(0).accepted == 40 + 28 + 1 + 12)
    }

    @Test("At most ten sessions are named, those with the most devices, and the rest is counted as unknown")
    func sessions() {
        var holders: [LockHolder?: Int] = [nil: 3]
        for pid in 1...40 as ClosedRange<Int32> {
            holders[LockHolder(pid: pid, application: "psql", queryStart: nil)] = Int(pid)
        }
        let locks = DeviceLocks.report(holders)
        #expect(locks.map(\.deviceCount) == Array((31...40).reversed()) + [3 + (1...30).reduce(0, +)])
        #expect(locks.last?.session == "unknown")
        #expect(DeviceLocks.report([:]).isEmpty)
    }

    @Test("Only operators of every topic see the session in an answer")
    func refusals() throws {
        let (rig, _) = self.scene(devices: 2, locked: 2)
        let ofTopic = try Caller.ofTopics([0])
        rig[0].step { requests in
            requests.unregister(100, 1)
            requests.caller = ofTopic
            requests.unregister(101, 2)
        }
        rig.wait(seconds: 8)
        #expect(rig[0].answer(100) == "503 ServiceUnavailable" && rig[0].answer(101) == "503 ServiceUnavailable")
        #expect(rig[0].text(100).contains("PostgreSQL (pid 2, application simulation"))
        #expect(rig[0].text(101).contains("wakegate_cluster_locked_devices") && !rig[0].text(101).contains("pid 2"))
    }

    @Test("A session is identified by process and application; only the log shows its last query")
    func names() {
        let holders = (1...2).map { LockHolder(pid: 7, application: "psql", queryStart: $0 * 60_000) }
        var counts: [LockHolder?: Int] = [:]
        for holder in holders { counts[holder, default: 0] += 1 }
        let locks = DeviceLocks.report(counts)
        #expect(locks.map(\.session) == ["pid 7, application psql"])
        #expect(locks.map(\.deviceCount) == [2])
        #expect(locks.first?.sessionAndQuery.contains("last query began 1970-01-01") == true)
    }

    @Test("Sessions that lock devices are logged when they change, at most once a minute, and their end immediately")
    func log() throws {
        let (rig, first) = self.scene(devices: 14, locked: 1)
        var last = 1000
        func push(_ devices: ClosedRange<Int>, seconds: Int) {
            for _ in 1...seconds {
                rig[0].step { requests in for device in devices { requests.push(last + device, device) } }
                last += 100
                rig.wait(seconds: 1)
            }
        }
        push(1...1, seconds: 5)
        #expect(rig[0].loggedLocks.map { $0.map(\.deviceCount) } == [[1]])
        // One more session each second.
        var others: [LockingSession] = []
        for device in 2...12 {
            others.append(LockingSession(rig.database, device...device))
            push(1...12, seconds: 1)
        }
        #expect(rig[0].loggedLocks.count == 1)
        push(1...12, seconds: 60)
        #expect(rig[0].loggedLocks.count == 2)
        #expect(rig[0].loggedLocks.last?.map(\.deviceCount).reduce(0, +) == 12)
        push(1...12, seconds: 60)
        #expect(rig[0].loggedLocks.count == 2, "the sessions are the same")
        first.end()
        for other in others { other.end() }
        rig.wait(seconds: 12)
        #expect(rig[0].loggedLocks.count == 3 && rig[0].loggedLocks.last?.isEmpty == true)
    }

    @Test("A row locked only for seconds delays its commands, and keeps their order")
    func released() throws {
        let (rig, other) = self.scene(devices: 2, locked: 1)
        rig[0].step { requests in
            requests.push(10, 1)
            requests.unregister(11, 1)
        }
        rig.wait(seconds: 1)
        rig[0].step { $0.register(12, 1) }
        #expect(rig[0].word(10) == nil && rig[0].answer(12).isEmpty)
        other.end()
        rig.wait(seconds: 1)
        rig.settle()
        #expect(rig[0].word(10) == "coalesced")
        #expect(rig[0].answer(11) == "204" && rig[0].answer(12) == "201")
    }

    @Test("A gateway that stops refuses the commands of locked rows within seconds, and all that stays unanswered")
    func stopped() throws {
        let (rig, _) = self.scene(devices: 2, locked: 1)
        rig[0].step { requests in
            requests.push(10, 1)
            requests.unregister(11, 1)
            requests.push(12, 2)
        }
        let start = rig.boot
        rig[0].finish()
        #expect(rig[0].word(10) == "ServiceUnavailable" && rig[0].answer(11) == "503 ServiceUnavailable")
        #expect(rig[0].text(11).contains("has locked this device's row"))
        #expect(rig[0].word(12) == "coalesced")
        // The load waits a second for the lock, and the stop waits another one.
        #expect((1000...2500).contains(rig.boot - start), "\(rig.boot - start)")

        let other = GatewaysRig(count: 1)
        other.database.holdLoads()
        other[0].step { requests in
            requests.register(1, 1)
            requests.push(2, 1)
        }
        other[0].finish()
        #expect(other[0].answer(1) == "503 ServiceUnavailable" && other[0].answerCount(1) == 1)
        #expect(other[0].word(2) == "ServiceUnavailable" && other[0].answerCount(2) == 1)
    }

    @Test("The wakes of a dead gateway are lost despite a locked device, and that device's wake when it is free")
    func retirement() throws {
        let rig = GatewaysRig(count: 2)
        rig.ask(1) { $0.subscribe(1, slots: 3) }
        rig.ask(1) { requests in for device in 1...3 { requests.push(1 + device, device) } }
        #expect(rig[1].wakes.count == 3)
        let other = LockingSession(rig.database, 1...1)
        rig.kill(1)
        rig.wait(seconds: 3)
        #expect(rig.database.rows.wakes.values.count { $0.ended == nil } == 1)
        other.end()
        rig.pass(seconds: 2)
        #expect(rig.database.rows.wakes.values.count { $0.ended == nil } == 0)
    }

    @Test("If the database returns no rows for ten seconds, pushes are refused immediately, and later accepted again")
    func silence() throws {
        let rig = GatewaysRig(count: 1)
        rig.database.holdLoads()
        rig[0].step { $0.push(1, 1) }
        rig.wait(seconds: 12)
        #expect(rig[0].word(1) == nil)
        rig[0].step { $0.push(2, 2) }
        #expect(rig[0].word(2) == "ServiceUnavailable")
        rig.database.letLoadsGo()
        rig.pass(seconds: 2)
        #expect(rig[0].word(1) == "scheduled")
        rig.ask(0) { $0.push(3, 3) }
        #expect(rig[0].word(3) == "scheduled")
    }
}

/// Another session of the database, which locks the rows of devices.
private final class LockingSession {
    private let store: SimulatedClusterStore
    private let number = TransactionNumber(rawValue: 1)

    init(_ database: SimulatedDatabase, _ devices: ClosedRange<Int>) {
        self.store = SimulatedClusterStore(database, signal: {})
        self.store.submit(.load(self.number, LoadPlan(tokens: devices.map { EngineRig.token($0) })))
    }

    /// The number of devices that it has locked.
    var lockedCount: Int {
        var replies: [ClusterReply] = []
        self.store.takeReplies(into: &replies)
        for case .loaded(_, let loaded) in replies { return loaded.devices.count }
        return 0
    }

    func end() { self.store.submit(.abandon(self.number)) }
}
