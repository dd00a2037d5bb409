import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The engine on a shared store with other gateways", .timeLimit(.minutes(15)))
struct ClusterEngineTests {
    @Test("A push to one gateway wakes a worker at another, and its result may arrive at any")
    func acrossGateways() throws {
        let rig = GatewaysRig(count: 3)
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.pass(seconds: 1)
        rig.ask(1) { $0.push(2, 1) }
        #expect(rig[1].word(2) == "scheduled")
        let wake = try #require(rig[0].wakes.first)
        rig.ask(2) { $0.report(3, wake.id, .newData) }
        #expect(rig[2].answer(3) == "204")
        #expect(rig[0].released(1) == [wake.id] && rig[0].expired(1).isEmpty)
        for number in 0..<3 {
            let counters = try rig.counters(number)
            #expect((counters.accepted, counters.launched, counters.completed, counters.inFlight) == (1, 1, 1, 0))
            #expect(try rig.statistics(number).workers.connected == 1)
        }
        rig.ask(1) { $0.push(4, 2) }
        #expect(rig[0].wakes.count == 2, "the slot is free again")
    }

    @Test("Any gateway expires a wake, and the holder's worker receives the reason")
    func dueAnywhere() throws {
        let rig = GatewaysRig()
        rig.ask(1) { $0.subscribe(1, slots: 1) }
        rig.ask(1) { $0.push(2, 1) }
        #expect(rig[1].wakes.count == 1)
        rig.pass(seconds: 21)
        #expect(rig[1].expirations(1) == [.deadline] && rig[1].released(1).count == 1)
        #expect(try rig.counters(0).results[.expired] == 1)
    }

    @Test(
        "A stream with expired wakes gets more after a late answer at another gateway, alone or with a push",
        arguments: [false, true]
    )
    func answeredLate(isWithPush: Bool) throws {
        let rig = GatewaysRig()
        rig.ask(1) { $0.subscribe(1, slots: 1) }
        for device in 1...4 { rig.ask(1) { $0.push(1 + device, device) } }
        rig.pass(seconds: 70)
        #expect(rig[1].wakes.count == 3, "it has stalled")
        rig.ask(0) { requests in
            requests.report(6, rig[1].wakes[1].id, .newData)
            if isWithPush { requests.push(7, 9) }
        }
        #expect(rig[0].answer(6) == "409 WakeEnded")
        rig.settle()
        #expect(rig[1].wakes.count == 4)
    }

    @Test("If more work waits than fits one claim, several are open, and free slots get the longest-waiting work")
    func claimsAtOnce() throws {
        let rig = GatewaysRig()
        let devices = 1100
        rig.ask(1) { requests in for device in 0..<devices { requests.push(1 + device, device) } }
        rig.ask(0) { requests in for stream in 0..<4 { requests.subscribe(2000 + stream, slots: 256) } }
        #expect(rig[0].wakes.count == 1024)
        #expect(rig[0].store.claimsAtOnceMax == 2, "half of the transactions that may be open")
        #expect(Set(rig[0].wakes.map(\.device)) == Set((0..<1024).map { EngineRig.token($0) }))
        rig.ask(0) { requests in requests.report(3000, rig[0].wakes[0].id, .newData) }
        #expect(rig[0].wakes.count == 1025)
        #expect(try rig.counters(0).pending == Int64(devices - 1025))
    }

    @Test("A launch whose commit was refused does not count in the launch lateness")
    func lateness() throws {
        let rig = GatewaysRig()
        func count(_ request: Int) throws -> Double? {
            rig.ask(0) { $0.metrics(request) }
            return try MetricsReading(rig[0].text(request))["wakegate_launch_lateness_seconds_count"]
        }
        rig.ask(0) { $0.subscribe(1, slots: 2) }
        rig.ask(0) { $0.push(2, 1) }
        #expect(rig[0].wakes.count == 1)
        #expect(try count(3) == 1)
        rig.database.refuseNextCommits()
        rig.ask(0) { $0.push(4, 2) }
        #expect(rig[0].wakes.count == 1)
        #expect(try count(5) == 1)
        rig.ask(0) { $0.push(6, 3) }
        #expect(rig[0].wakes.count == 2)
        #expect(try count(7) == 2)
    }

    @Test("A gateway that returns under another number has lost its wakes, and notifies its workers")
    func newNumber() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { $0.push(2, 1) }
        let wake = try #require(rig[0].wakes.first)
        let before = rig[0].store.number
        rig[0].store.cutAll()
        rig.settle()
        rig.pass(seconds: 2)
        #expect(rig[0].store.number != before)
        #expect(rig[0].expirations(1) == [.lost] && rig[0].released(1) == [wake.id])
        rig.ask(0) {
            $0.readiness(3)
            $0.report(4, wake.id, .newData)
        }
        #expect(rig[0].answer(3) == "200" && rig[0].answer(4) == "409 WakeEnded")
        #expect(rig[0].wakes.count == 2 && rig[0].wakes.last?.attempt == 1, "its worker is there, and gets another")
        #expect(try rig.counters(1).results[.lost] == 1)
    }

    @Test("A wake that is past its deadline when its gateway returns under another number is lost, not expired")
    func lostPastDeadline() throws {
        let rig = GatewaysRig(count: 1)
        rig.ask(0) { $0.subscribe(1, slots: 1) }
        rig.ask(0) { $0.push(2, 1) }
        #expect(rig[0].wakes.count == 1)
        rig.pass(seconds: 1)
        // The gateway cannot expire the wake before it loses the database.
        rig.database.holdLoads()
        rig.wait(seconds: 21)
        rig[0].store.cutAll()
        rig[0].step()
        rig.database.letLoadsGo()
        rig.settle()
        let results = try rig.counters(0).results
        #expect(results[.lost] == 1 && results[.expired] == 0)
        #expect(rig[0].expirations(1) == [.lost])
    }

    @Test("Due devices wait for the first view, and until the wakes of all dead gateways in it are lost")
    func dueAfterRetirements() throws {
        let scene = ScriptedScene()
        let store = scene.store
        scene.attach(topics: [])
        _ = scene.heard { _ in }
        #expect(store.reportCount == 1 && store.dueLoads.isEmpty)
        scene.show(dead: [8, 9].map { GatewayNumber(rawValue: $0) }, nextDue: Instant(milliseconds: 5000))
        for count in 1...2 {
            _ = scene.wait(milliseconds: 1)
            #expect(store.retirements.count == count && store.dueLoads.isEmpty && scene.pause > 1)
            store.replies.append(.loaded(try #require(store.retirements.last), ScriptedScene.noRows))
        }
        _ = scene.heard { _ in }
        #expect(store.dueLoads.count == 1)
    }

    @Test("Without a view due devices are processed after some seconds")
    func dueWithoutView() {
        let scene = ScriptedScene()
        scene.attach(topics: [])
        _ = scene.heard { _ in }
        for _ in 1...3 { _ = scene.wait(milliseconds: 1000) }
        #expect(scene.store.dueLoads.isEmpty)
        _ = scene.wait(milliseconds: 1000)
        #expect(scene.store.dueLoads.count == 1)
    }

    @Test("Two gateways accept the first push of a device at the same time: both are answered, once")
    func sameNewcomer() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.register(1, 9) }
        rig.database.holdCommits()
        rig[0].step { $0.push(2, 1) }
        rig[1].step { $0.push(2, 1) }
        #expect(rig[0].word(2) == nil && rig[1].word(2) == nil)
        for _ in 0..<5 {
            rig.database.letCommitsGo()
            for number in 0..<2 { rig[number].step() }
        }
        #expect(Set([rig[0].word(2), rig[1].word(2)]) == ["scheduled", "coalesced"])
        for number in 0..<2 { #expect(rig[number].answerCount(2) == 1) }
        #expect(rig.database.log.counts[.insertConflict] == 1)
    }

    @Test("While commits stay unconfirmed no more pushes are accepted, until one is confirmed")
    func unconfirmed() throws {
        let rig = GatewaysRig(count: 1)
        rig.ask(0) { $0.register(1, 1) }
        rig.database.holdCommits()
        rig[0].step { $0.push(2, 1) }
        rig.wait(seconds: 9)
        rig[0].step { $0.push(3, 2) }
        #expect(rig[0].word(2) == nil && rig[0].word(3) == nil)
        rig.wait(seconds: 3)
        rig[0].step {
            $0.push(4, 3)
            $0.register(5, 4)
            $0.readiness(7)
        }
        #expect(rig[0].word(4) == "ServiceUnavailable" && rig[0].answer(5) == "503 ServiceUnavailable")
        #expect(rig[0].answer(7) == "503 ServiceUnavailable" && rig[0].text(7).contains("pg_stat_replication"))
        #expect(rig[0].word(2) == nil && rig[0].word(3) == nil)
        for _ in 0..<3 {
            rig.database.letCommitsGo()
            rig[0].step()
        }
        #expect(rig[0].word(2) == "scheduled" && rig[0].word(3) == "scheduled")
        rig[0].step {
            $0.push(6, 5)
            $0.readiness(8)
        }
        #expect(rig[0].answer(8) == "200")
        rig.database.letCommitsGo()
        rig[0].step()
        #expect(rig[0].word(6) == "scheduled")
    }

    @Test("While every commit is refused the gateway is not ready, says why, and accepts pushes as soon as it can")
    func refusedCommits() throws {
        let rig = GatewaysRig(count: 1)
        rig.ask(0) { $0.register(1, 1) }
        rig.database.isFull = true
        for request in 2..<14 {
            rig.ask(0) { $0.push(request, 1) }
            #expect(rig[0].word(request) == "ServiceUnavailable")
            rig.pass(seconds: 1)
        }
        rig.ask(0) { $0.readiness(20) }
        #expect(rig[0].answer(20) == "503 ServiceUnavailable" && rig[0].text(20).contains("The disk is full."))
        // A load balancer sends it no pushes. It stores refused pushes each second, which shows when commits succeed.
        rig.pass(seconds: 30)
        rig.ask(0) { $0.readiness(21) }
        #expect(rig[0].answer(21) == "503 ServiceUnavailable")
        rig.database.isFull = false
        rig.pass(seconds: 2)
        rig.ask(0) { $0.readiness(22) }
        #expect(rig[0].answer(22) == "200")
        rig.ask(0) { $0.push(24, 1) }
        #expect(rig[0].word(24) == "scheduled")
    }

    @Test("Due devices and counts that the store refuses are requested again in the next second, not at once")
    func refusedRegularWork() throws {
        let scene = ScriptedScene()
        let store = scene.store
        let cause = ClusterFailure.refused(StoreError(message: "The disk is full."))
        scene.attach(topics: [])
        _ = scene.wait(milliseconds: 0)
        scene.show(nextDue: Instant(milliseconds: 5000))
        _ = scene.wait(milliseconds: 0)
        for _ in 1...3 {
            _ = scene.wait(milliseconds: 1000)
            let (dueLoads, counts) = (store.dueLoads, store.counts)
            store.replies.append(.failed(try #require(dueLoads.last), cause))
            store.replies.append(.failed(try #require(counts.last), cause))
            for _ in 1...10 { _ = scene.wait(milliseconds: 1) }
            #expect(store.dueLoads == dueLoads && store.counts == counts && scene.pause > 1)
        }
        #expect(store.dueLoads.count >= 3 && store.counts.count >= 3)
    }

    @Test("Conditions that a stream is owed for a device whose registration failed are read again each second")
    func refusedRegistration() throws {
        let scene = ScriptedScene()
        let store = scene.store
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.subscribe(1, reportsConditions: true) }
        _ = scene.heard { requests in
            requests.register(2, 1)
            requests.conditions(3, 1) { $0.network = false }
        }
        let load = try scene.findNothing()
        _ = scene.heard { _ in }
        let cause = ClusterFailure.refused(StoreError(message: "The disk is full."))
        store.replies.append(.failed(load, cause))
        for second in 1...3 {
            _ = scene.wait(milliseconds: 1000)
            #expect(store.readsOfTokens.count == second)
            store.replies.append(.loaded(try #require(store.readsOfTokens.last), ScriptedScene.noRows))
            for _ in 1...10 { _ = scene.wait(milliseconds: 1) }
            #expect(store.readsOfTokens.count == second)
        }
    }

    @Test("Requests that wait for a topic or a pause that cannot be stored are refused with the cause")
    func notShared() throws {
        let scene = ScriptedScene()
        let (store, heard) = (scene.store, scene.heard)
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = heard { $0.push(1, 1, topic: 3) }
        try scene.findNothing()
        #expect(heard { $0.subscribe(2, topic: 4) }.isEmpty)
        #expect(store.topicsAsked == [EngineRig.topicName(3), EngineRig.topicName(4)])
        store.replies.append(.topicsRefused(StoreError(message: "Another session has locked the topics.")))
        #expect(Set(heard { _ in }.compactMap(\.answered)) == [1, 2])
        #expect(heard { $0.pause(3) }.isEmpty)
        let name = "paused:\(EngineRig.topicName(0))"
        store.replies.append(
            .valueNotStored(name: name, [1], StoreError(message: "Another session has locked the values."))
        )
        #expect(heard { _ in }.answer(3).hasPrefix("503"))
        // A later push requests the topic again.
        _ = heard { $0.push(4, 1, topic: 3) }
        try scene.findNothing()
        _ = heard { _ in }
        #expect(store.topicsAsked.count == 3)
    }

    @Test("A push whose topic cannot be created does not fail the other pushes of its batch")
    func topicRefused() throws {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { requests in
            requests.push(1, 1)
            requests.push(2, 2, topic: 3)
            requests.push(3, 3)
        }
        let load = try scene.findNothing()
        #expect(scene.heard { _ in }.isEmpty)
        #expect(scene.store.topicsAsked == [EngineRig.topicName(3)])
        scene.store.replies.append(.committed(load, endedElsewhere: []))
        #expect(scene.heard { _ in }.compactMap(\.answered) == [1, 3])
        scene.store.replies.append(.topicsRefused(StoreError(message: "Another session has locked the topics.")))
        let refused = scene.heard { _ in }
        #expect(refused.word(2) == "ServiceUnavailable" && refused.count == 1)
    }

    @Test("A test push beyond its operator's topics makes no topic, nor does any push while the gateway shuts down")
    func refusedTopics() throws {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0)])
        let unknownPeer = try Caller.ofTopics([1])
        _ = scene.heard { requests in
            requests.caller = unknownPeer
            requests.testPush(1, 1, topic: 3)
        }
        let first = try scene.findNothing()
        scene.store.replies.append(.committed(first, endedElsewhere: []))
        #expect(scene.heard { _ in }.outcome(1)?.reason == "UnknownTopic")
        _ = scene.heard { $0.drain() }
        _ = scene.heard { requests in
            requests.push(2, 2, topic: 4)
            requests.testPush(3, 3, topic: 5)
        }
        let second = try scene.findNothing()
        scene.store.replies.append(.committed(second, endedElsewhere: []))
        #expect(Set(scene.heard { _ in }.compactMap(\.answered)) == [2, 3])
        #expect(scene.store.topicsAsked.isEmpty)
    }

    @Test("Locked rows are checked in between, even with many waiting commands")
    func lockedLanes() throws {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.push(1, 1) }
        scene.store.replies.append(.failed(try #require(scene.store.loads.last), .locked(nil)))
        _ = scene.heard { _ in }
        #expect(scene.store.passingOverCount == 1)
        var rows = ScriptedScene.noRows
        rows.passedOver = [(token: EngineRig.token(1), wake: nil, holder: nil)]
        scene.store.replies.append(.loaded(try #require(scene.store.loads.last), rows))
        _ = scene.heard { requests in for device in 2...2000 { requests.push(device, device) } }
        #expect(scene.store.passingOverCount == 2)
    }

    @Test("A question under a new policy launches nothing, and its device launches once")
    func questionAfterReload() throws {
        let rig = GatewaysRig(count: 1)
        rig.ask(0) { $0.subscribe(1, slots: 4) }
        rig.ask(0) { $0.push(2, 1) }
        rig.ask(0) { $0.report(3, rig[0].wakes[0].id, .newData) }
        rig.ask(0) { $0.push(4, 1) }
        rig.pass(seconds: 40)
        #expect(rig[0].wakes.count == 1, "launches are a minute apart")
        var policy = EngineContract.policy
        policy[0] = (.launchInterval, 30)
        rig.database.holdCommits()
        rig[0].step { requests in
            requests.configure(EngineRig.open(policy))
            requests.explain(5, 1)
        }
        rig[0].step { $0.explain(6, 1) }
        #expect(rig[0].answerCount(5) == 1 && rig[0].answerCount(6) == 1)
        #expect(rig[0].wakes.count == 1)
        for _ in 0..<10 {
            rig.database.letCommitsGo()
            rig[0].step()
        }
        #expect(rig[0].wakes.count == 2)
    }

    @Test("A command that always loses to conflicts is refused after some attempts, and not counted as a push")
    func alwaysConflicting() throws {
        let rig = GatewaysRig()
        rig.ask(0) { $0.register(1, 1) }
        rig.database.faults.deadlocks = 1
        rig.ask(0) {
            $0.push(2, 1)
            $0.dropPending(3, 1)
        }
        #expect(rig[0].word(2) == "ServiceUnavailable" && rig[0].answer(3) == "503 ServiceUnavailable")
        rig.database.faults.deadlocks = 0
        rig.ask(0) { $0.push(4, 1) }
        #expect(rig[0].word(4) == "scheduled")
        #expect(try rig.counters(1).accepted == 1)
    }

    @Test("A now-or-never push uses a slot of another gateway, and is discarded without one")
    func nowOrNever() throws {
        let rig = GatewaysRig()
        rig.ask(1) { $0.subscribe(1, slots: 1) }
        rig.pass(seconds: 2)
        rig.ask(0) { $0.push(2, 1, expiration: 0) }
        #expect(rig[0].word(2) == "scheduled" && rig[1].wakes.count == 1)
        rig.pass(seconds: 2)
        rig.ask(0) { $0.push(3, 2, expiration: 0) }
        #expect(rig[0].word(3) == "discarded")
    }

    @Test("Conditions reported to one gateway are delivered by another")
    func conditions() throws {
        let rig = GatewaysRig()
        rig.ask(1) { $0.subscribe(1, slots: 1, reportsConditions: true) }
        rig.pass(seconds: 2)
        rig.ask(0) { $0.register(2, 1) }
        rig.ask(0) { $0.conditions(3, 1) { $0.network = false } }
        #expect(rig[1].conditions(1).map(\.network) == [false])
        rig.ask(0) { $0.conditions(4, 1) { $0.network = false } }
        #expect(rig[1].conditions(1).count == 1, "nothing has changed")
    }

    @Test("While the database is away every request is refused immediately with the reason; then requests work again")
    func unattached() throws {
        let scene = ScriptedScene()
        let store = scene.store
        let heard = scene.heard
        let refused = heard {
            $0.push(2, 1)
            $0.readiness(3)
            $0.explain(4, 1)
            $0.subscribe(5)
            $0.statistics(6)
        }
        #expect(Set(refused.compactMap(\.answered)) == [2, 3, 4, 5, 6])
        for case .answer(let request, let outcome) in refused { #expect(outcome.status == 503, "\(request)") }
        #expect(store.requests.isEmpty)
        scene.attach(topics: [])
        #expect(heard { $0.readiness(7) }.answer(7) == "200")
        // Waiting commands are refused when the database disappears. An open transaction is refused when its failure is
        // known.
        _ = heard { $0.push(8, 1) }
        store.replies.append(.detached(StoreError(message: "The database is gone.")))
        #expect(heard { $0.push(9, 2) }.compactMap(\.answered) == [9])
        guard let load = store.loads.last else { throw RigFailure("nothing was begun") }
        store.replies.append(.failed(load, .refused(StoreError(message: "The database is gone."))))
        #expect(heard { _ in }.compactMap(\.answered) == [8])
    }

    @Test("A device of a topic that another gateway just created is found, even without a notice of the topic")
    func topicOfAnother() {
        let rig = GatewaysRig(count: 3)
        rig.database.faults.lostNotices = 1
        rig.ask(1) { $0.push(1, 1, topic: 3) }
        #expect(rig[1].word(1) == "scheduled")
        rig.ask(2) { $0.devices(3) }
        #expect(rig[2].answer(3) == "200")
        rig.ask(0) { requests in
            requests.push(2, 1, topic: 3)
            requests.push(3, 2)
        }
        #expect(rig[0].word(2) == "coalesced" && rig[0].word(3) == "scheduled")
    }

    @Test("Ready work of an unknown topic does no harm, even while another topic is paused")
    func unknownTopic() throws {
        let scene = ScriptedScene()
        scene.attach(topics: ["com.example.app"])
        _ = scene.heard { _ in }
        scene.store.replies.append(.value(name: "paused:com.example.app", [1]))
        let unknown = [1, 4_000_000_000].map { TopicIndex(rawValue: $0) }
        for topic in unknown { scene.store.replies.append(.notified(.ready(topic))) }
        scene.store.replies.append(.notified(.conditions(EngineRig.token(1), unknown[1])))
        #expect(scene.heard { $0.readiness(2) }.compactMap(\.answered) == [2])
        scene.show(ready: unknown)
        #expect(scene.heard { $0.readiness(1) }.compactMap(\.answered) == [1])
        #expect(scene.store.claimCount == 0)
    }

    /// Returns a gateway with a stream that receives conditions, and the row of device 1.
    private static func sceneWithDevice() throws -> (ScriptedScene, LoadedDevices) {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.push(2, 1) }
        let push = try scene.findNothing()
        _ = scene.heard { _ in }
        var rows = ScriptedScene.noRows
        rows.devices = scene.store.written
        #expect(rows.devices.map(\.token) == [EngineRig.token(1)])
        scene.store.replies.append(.committed(push, endedElsewhere: []))
        _ = scene.heard { $0.subscribe(3, slots: 1, reportsConditions: true) }
        return (scene, rows)
    }

    @Test("A row that can never be read is given up, and what streams are owed of others is read then")
    func conditionsGivenUp() throws {
        let (scene, rows) = try Self.sceneWithDevice()
        let (good, bad, topic) = (EngineRig.token(1), EngineRig.token(2), TopicIndex(rawValue: 0))
        // The stream does not read while the device changes, so it is notified later, when no row is in memory.
        _ = scene.heard { $0.pauseStream(3, true) }
        scene.store.replies.append(.notified(.conditions(good, topic)))
        _ = scene.heard { _ in }
        scene.store.replies.append(.loaded(try #require(scene.store.reads(of: [good]).last), rows))
        #expect(scene.heard { _ in }.isEmpty)
        scene.store.replies.append(.notified(.conditions(bad, topic)))
        _ = scene.heard { _ in }
        let readsBefore = scene.store.reads(of: [good]).count
        for failure in 1...9 {
            let reads = scene.store.reads(of: [bad])
            #expect(reads.count == failure)
            let refusal = ClusterFailure.refused(StoreError(message: "The row is damaged."))
            scene.store.replies.append(.failed(try #require(reads.last), refusal))
            _ = scene.heard { if failure == 1 { $0.pauseStream(3, false) } }
            #expect(scene.store.reads(of: [good]).count == readsBefore, "not before failure \(failure) and its pause")
            _ = scene.wait(milliseconds: min(1000 << Int64(failure - 1), 32_000))
        }
        #expect(scene.store.reads(of: [bad]).count == 9, "it is given up")
        #expect(scene.store.reads(of: [good]).count == readsBefore + 1)
        scene.store.replies.append(.loaded(try #require(scene.store.reads(of: [good]).last), rows))
        let told = scene.heard { _ in }.count { if case .conditions = $0 { true } else { false } }
        #expect(told == 1)
    }

    @Test("Conditions whose read failed are delivered after a later read, and failures are retried with growing pauses")
    func conditionsAgain() throws {
        let (scene, rows) = try Self.sceneWithDevice()
        let device = EngineRig.token(1)
        let before = scene.store.reads(of: [device]).count
        scene.store.replies.append(.notified(.conditions(device, TopicIndex(rawValue: 0))))
        _ = scene.heard { _ in }
        for pause in [1000, 2000, 4000] as [Int64] {
            let reads = scene.store.reads(of: [device])
            let refusal = ClusterFailure.refused(StoreError(message: "The statement was ended."))
            scene.store.replies.append(.failed(try #require(reads.last), refusal))
            _ = scene.heard { _ in }
            _ = scene.wait(milliseconds: pause - 1)
            #expect(scene.store.reads(of: [device]).count == reads.count, "not before \(pause) ms")
            _ = scene.wait(milliseconds: 1)
            #expect(scene.store.reads(of: [device]).count == reads.count + 1)
        }
        #expect(scene.store.reads(of: [device]).count == before + 4)
        scene.store.replies.append(.loaded(try #require(scene.store.reads(of: [device]).last), rows))
        let told = scene.heard { _ in }.count { if case .conditions = $0 { true } else { false } }
        #expect(told == 1)
    }

    @Test("A gateway that stops says each second that it lives until its last commit has ended, and begins nothing new")
    func heartbeatOfStop() throws {
        let scene = ScriptedScene()
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.push(1, 1) }
        let load = try #require(scene.store.loads.first)
        let count = scene.store.reportCount
        scene.show(dead: [GatewayNumber(rawValue: 9)])
        #expect(scene.finish().compactMap(\.answered) == [1])
        #expect(scene.store.reportCount - count >= 4)
        #expect(scene.store.retirements.isEmpty)
        #expect(scene.store.loads == [load])
    }

    @Test("A pause announced while a gateway attaches is not undone by the attachment's value", arguments: [0, 1])
    func pauseWhileAttaching(told: UInt8) {
        let scene = ScriptedScene()
        let name = "paused:\(EngineRig.topicName(0))"
        scene.attach(topics: [EngineRig.topicName(0)], values: [name: [1 - told]])
        scene.store.replies.append(.value(name: name, [told]))
        #expect(scene.heard { $0.subscribe(1, slots: 1) }.compactMap(\.answered) == [1])
        scene.show()
        scene.store.replies.append(.notified(.ready(TopicIndex(rawValue: 0))))
        _ = scene.heard { _ in }
        #expect(scene.store.claimCount == (told == 1 ? 0 : 1))
    }

    @Test("A repeated push that changes nothing is answered after a commit, because one server may have its row alone")
    func repeatedPush() throws {
        let scene = ScriptedScene()
        let store = scene.store
        scene.attach(topics: [EngineRig.topicName(0)])
        _ = scene.heard { $0.push(1, 1, clientID: 7) }
        let first = try scene.findNothing()
        _ = scene.heard { _ in }
        var rows = ScriptedScene.noRows
        rows.devices = store.written
        #expect(rows.devices.count == 1)
        store.replies.append(.failed(first, .refused(StoreError(message: "No standby has confirmed the commit."))))
        #expect(scene.heard { $0.push(2, 1, clientID: 7) }.compactMap(\.answered) == [1])
        let second = try #require(store.loads.last)
        store.replies.append(.loaded(second, rows))
        #expect(scene.heard { _ in }.isEmpty)
        #expect(store.written.isEmpty, "the commit changes nothing")
        store.replies.append(.committed(second, endedElsewhere: []))
        #expect(scene.heard { _ in }.compactMap(\.answered) == [2])
    }
}
