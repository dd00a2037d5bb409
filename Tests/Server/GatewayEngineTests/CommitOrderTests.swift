import Engine
import Foundation
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("What leaves the engine, and when", .timeLimit(.minutes(15)))
struct CommitOrderTests {
    @Test("Nothing leaves before the commit that covers it; what came during a sync is covered by one next commit")
    func groups() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2) { $0.push(2, 1) }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        let commits = rig.store.commits

        rig.gate.close()
        rig.step { $0.push(10, 2) }
        try rig.waitForCommit()
        rig.step { $0.push(11, 3) }
        rig.step { $0.report(12, wake, .newData) }
        rig.step {
            $0.register(13, 4)
            $0.statistics(14)
            $0.push(15, 3)
            $0.push(16, 3)
        }
        rig.step { $0.readiness(17) }
        rig.takeTold()
        for request in 10...17 { #expect(rig.answer(request) == nil, "request \(request)") }
        #expect(rig.wakes.count == 1)
        #expect(!rig.told.contains { $0.kind == .released })

        rig.gate.open()
        let answers = try rig.answers(10...17)
        #expect(answers.map(\.status) == [200, 200, 204, 201, 200, 200, 200, 200])
        #expect(rig.store.commits == commits + 2)
        #expect(answers[4].integer("pushes", "accepted") == 3, "a question does not count what came behind it")
        try rig.waitForWakes(3)
        #expect(rig.store.misuses.isEmpty)
    }

    @Test("Several changes of a device within one commit are one record")
    func oneRecord() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 9) }
        rig.gate.close()
        rig.step { $0.push(2, 1) }
        try rig.waitForCommit()
        for request in 3...7 { rig.step { $0.push(request, 1) } }
        rig.step { $0.conditions(8, 1) { $0.batteryLevel = 0.5 } }
        rig.gate.open()
        // The store notes a key that is twice in a batch.
        try rig.answers(2...8)
        #expect(rig.store.misuses.isEmpty)
        #expect(rig.store.commits == 4)
        let explained = try rig.ask(9) { $0.explain(9, 1) }
        #expect(explained.integer("pending", "coalesced") == 5)
        #expect(rig.store.durable[RecordKey(.device, 1)] != nil)
    }

    @Test("A lone push is committed at once, and a question that changes nothing needs no commit")
    func lonePush() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        #expect(rig.store.commits == 1, "the beginning")
        for request in 1...5 {
            // Answered with no further step: nothing has to come along for it to leave.
            rig.step { $0.push(request, request) }
            try rig.answers(request...request)
            #expect(rig.store.commits == request + 1)
        }
        let answers = try rig.ask(10...14) {
            $0.statistics(10)
            $0.topics(11)
            $0.readiness(12)
            $0.explain(13, 1)
            $0.explain(14, 99)
        }
        #expect(answers.map(\.status) == [200, 200, 200, 200, 404])
        #expect(rig.store.commits == 6)
    }

    @Test("A wake leaves only when its launch is durable, and behind the 200 of its push")
    func wake() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.subscribe(1) }
        rig.gate.close()
        rig.step { $0.push(2, 1) }
        try rig.waitForCommit()
        rig.takeTold()
        #expect(rig.wakes.isEmpty)
        rig.gate.open()
        try rig.waitForWakes(1)
        let kinds = rig.told.filter { $0.kind != .subscribed }.map(\.kind)
        #expect(Set(kinds) == [.push, .wake])
        // The launch is in what is durable: the next process knows of it.
        let next = try GatewayEngineRig(SimulatedStore(rig.store.durable))
        defer { next.stop() }
        let statistics = try next.ask(1) { $0.statistics(1) }
        #expect(statistics.integer("wakes", "launched") == 1)
        #expect(statistics.integer("wakes", "results", "lost") == 1)
    }

    @Test("What is let out keeps the order in which it came about, across commits and without them")
    func order() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        var generator = SeededGenerator(seed: 7)
        var request = 0
        var isClosed = false
        for _ in 0..<300 {
            if generator.once(in: 4) {
                isClosed ? rig.gate.open() : rig.gate.close()
                if isClosed, request > 0 { try rig.answers(1...request) }
                isClosed.toggle()
            }
            rig.step { requests in
                for _ in 0..<generator.number(in: 0...3) {
                    request += 1
                    switch generator.number(below: 4) {
                    case 0: requests.push(request, generator.number(below: 20))
                    case 1: requests.statistics(request)
                    case 2: requests.readiness(request)
                    default: requests.register(request, generator.number(below: 40))
                    }
                }
            }
        }
        rig.gate.open()
        let answers = try rig.answers(1...request)
        #expect(answers.count == request && request > 200)
        #expect(rig.told.filter(\.isAnswer).map(\.request) == Array(1...request))
        #expect(rig.store.commits > 10 && rig.store.misuses.isEmpty)
    }

    @Test("A question asked during a sync answers what is durable when the answer leaves")
    func question() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        rig.step { $0.statistics(2) }
        rig.step { $0.explain(3, 1) }
        rig.takeTold()
        #expect(rig.told.isEmpty)
        rig.gate.open()
        let answers = try rig.answers(1...3)
        #expect(answers[1].integer("pushes", "accepted") == 1)
        #expect(answers[2].string("pending", "apnsID") == GatewayEngineRig.apnsID(1))
        #expect(answers[2].recent.first == ["push", GatewayEngineRig.apnsID(1), "scheduled"])
        #expect(rig.store.commits == 2)
    }
}

@Suite("What a loop finds that was long away", .timeLimit(.minutes(15)))
struct EffectOrderTests {
    @Test("The effects of many steps are in their order, each with its own bytes")
    func joined() throws {
        let rig = try GatewayEngineRig()
        rig.step { $0.subscribe(1, slots: 64) }
        let requests = 100..<140
        for request in requests {
            rig.step {
                $0.push(request, request, collapseID: Array(repeating: UInt8(ascii: "c"), count: request - 100))
                $0.statistics(request + 1000)
            }
        }
        rig.stop()
        #expect(rig.told.first?.kind == .subscribed)
        #expect(rig.wakes.map { $0.integer("payload", "n") } == requests.map { Int64($0) })
        #expect(rig.wakes.map { $0.string("device") } == requests.map { GatewayEngineRig.token($0) })
        #expect(rig.wakes.map { $0.string("collapseID")?.count ?? 0 } == requests.map { $0 - 100 })
        let answers = rig.told.filter { $0.kind == .push || $0.kind == .answer }
        #expect(answers.map(\.request) == requests.flatMap { [$0, $0 + 1000] })
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(answers.compactMap { $0.integer("pushes", "accepted") } == requests.map { Int64($0 - 99) })
    }
}

@Suite("After a failed commit", .timeLimit(.minutes(15)))
struct FailedCommitTests {
    private static let commits = Array(0..<FailureScript.commitCount)

    @Test(
        "Every request of the failed group and of those behind it is refused exactly once, and no wake leaves",
        arguments: commits,
        FailureScript.Phase.allCases
    )
    func refusals(commit: Int, phase: FailureScript.Phase) throws {
        let script = try FailureScript(failingAt: commit, phase)
        let rig = script.rig
        for request in [script.failed] + Array(script.behind) {
            #expect(rig.answerCount(request) == 1, "request \(request)")
            let answer = try #require(rig.answer(request))
            #expect(answer.status == 503, "\(answer)")
            let reason = answer.kind == .push ? answer.text : answer.string("reason")
            #expect(reason == "ServiceUnavailable", "\(answer)")
            if answer.kind == .answer { #expect(answer.string("message")?.contains("failed on command") == true) }
        }
        let firstRefusal = try #require(rig.told.firstIndex { $0.isAnswer && $0.status == 503 })
        #expect(!rig.told[firstRefusal...].contains { $0.kind == .wake || $0.kind == .expired })
        #expect(rig.bell.failures.count == 1)
        let committed = rig.store.commits
        rig.stop()
        #expect(rig.store.commits == committed && rig.store.misuses.isEmpty, "\(rig.store.misuses)")
        for request in 1..<1000 { #expect(rig.answerCount(request) <= 1, "request \(request)") }
    }

    @Test("A loop that steps the engine leaves it to the engine's thread to read back what is durable")
    func loopSteps() throws {
        let store = SimulatedStore()
        // A load, a beginning and the commit of the start come first.
        store.failOperation(4)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        rig.step { $0.push(1, 1) }
        // The store is done, and rings.
        while rig.bell.wait(until: Date(timeIntervalSinceNow: 60)) == false {}
        let wait = rig.stepOnLoop { $0.push(2, 2) }
        rig.takeTold()
        #expect(wait == 0, "the engine's thread is to go on at once")
        #expect(rig.bell.failures.isEmpty && rig.answer(1) == nil && rig.answer(2) == nil)
        rig.step()
        rig.takeTold()
        #expect(rig.bell.failures.count == 1 && rig.answer(1)?.status == 503 && rig.answer(2)?.status == 503)
    }

    @Test(
        "What is asked then is answered from what is durable, and what would change something is refused",
        arguments: commits,
        FailureScript.Phase.allCases
    )
    func questions(commit: Int, phase: FailureScript.Phase) throws {
        let script = try FailureScript(failingAt: commit, phase)
        let rig = script.rig
        defer { rig.stop() }
        let statistics = try rig.ask(500) { $0.statistics(500) }
        for part in ["wakes", "devices"] { #expect(statistics.part(part) == script.durable.part(part), "\(part)") }
        for count in ["accepted", "noWake", "completed", "coalesced", "pending", "inFlight"] {
            #expect(statistics.integer("pushes", count) == script.durable.integer("pushes", count), "\(count)")
        }
        #expect(statistics.part("pushes", "discarded") == script.durable.part("pushes", "discarded"))
        #expect(statistics.string("since") == script.durable.string("since"))
        try Self.expectBalance(statistics)

        let looks = try rig.ask(498...499) {
            $0.topics(498)
            $0.explain(499, 1)
        }
        #expect(Self.withoutWorkers(looks[0]) == Self.withoutWorkers(script.topics))
        #expect(looks[1].status == script.device.status && looks[1].recent == script.device.recent)
        for part in ["conditions", "penalty", "launchesInWindow", "held"] {
            #expect(looks[1].part(part) == script.device.part(part), "\(part)")
        }
        for push in ["pending", "inFlight"] {
            for part in ["apnsID", "priority", "attempts", "coalesced", "wake"] {
                #expect(looks[1].part(push, part) == script.device.part(push, part), "\(push) \(part)")
            }
        }

        let pushes = rig.told.count { $0.kind == .push && $0.status == 503 }
        #expect(pushes >= 3)
        #expect(statistics.integer("pushes", "rejected", "ServiceUnavailable") == Int64(pushes))

        let refused = try rig.ask(501...508) {
            $0.push(501, 1)
            $0.report(502, WakeID(random: (3, 4)), .failed)
            $0.register(503, 7)
            $0.unregister(504, 1)
            $0.conditions(505, 1) { $0.charging = true }
            $0.subscribe(506)
            $0.simulateLaunch(507, 1)
            $0.readiness(508)
        }
        #expect(refused.allSatisfy { $0.status == 503 }, "\(refused)")
        #expect(refused[7].string("message")?.contains("failed on command") == true)
        let after = try rig.ask(510...513) {
            $0.rejected(.badTopic)
            $0.statistics(510)
            $0.topics(511)
            $0.explain(512, 7)
            $0.statistics(513, topic: 0)
        }
        #expect(after[0].integer("pushes", "rejected", "ServiceUnavailable") == Int64(pushes + 1))
        #expect(after[0].integer("pushes", "rejected", "BadTopic") == 1)
        #expect(after[0].integer("pushes", "accepted") == statistics.integer("pushes", "accepted"))
        #expect(after[1].status == 200 && after[2].status == 404)
        #expect(after[3].status == (commit == 0 ? 404 : 200))
    }

    @Test("The workers are those there were", arguments: FailureScript.Phase.allCases)
    func workers(phase: FailureScript.Phase) throws {
        let script = try FailureScript(failingAt: 5, phase)
        let rig = script.rig
        defer { rig.stop() }
        let counts = try rig.ask(500...502) {
            $0.statistics(500)
            $0.statistics(501, topic: 0)
            $0.topics(502)
        }
        // The second stream came behind the failure: it was refused, and yet it had been there.
        #expect(counts[0].integer("workers", "connected") == 2)
        #expect(counts[1].part("workers") == counts[0].part("workers"))
        #expect(counts[2].text.contains(#""workers":2"#), "\(counts[2])")
        try rig.ask(503) {
            $0.endStream(1)
            $0.statistics(503)
        }
        #expect(rig.answer(503)?.part("workers") == counts[0].part("workers"))
    }

    @Test("A drain ends all the same")
    func drain() throws {
        let script = try FailureScript(failingAt: 6, .syncing)
        script.rig.step { $0.drain() }
        try script.rig.run("the word to the loops") { $0.told.contains { $0.kind == .draining } }
        let refused = try script.rig.ask(500...501) {
            $0.push(500, 1)
            $0.readiness(501)
        }
        #expect(refused.map(\.status) == [503, 503])
        script.rig.stop()
        #expect(script.rig.store.misuses.isEmpty)
    }

    @Test("A drain that waits behind the commit that fails is not lost")
    func drainBehind() throws {
        let store = SimulatedStore()
        store.failOperation(5)
        let rig = try GatewayEngineRig(store)
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        rig.step { $0.drain() }
        rig.gate.open()
        try rig.run("the word to the loops") { $0.told.contains { $0.kind == .draining } }
        #expect(try rig.answers(1...1)[0].status == 503)
        rig.stop()
    }

    @Test("When what is durable cannot be read either, questions are refused with the cause")
    func reloadFails() throws {
        let script = try FailureScript(failingAt: 4, .syncing, isReloadFailing: true)
        let rig = script.rig
        defer { rig.stop() }
        let answers = try rig.ask(500...506) {
            $0.statistics(500)
            $0.statistics(501, topic: 0)
            $0.topics(502)
            $0.explain(503, 1)
            $0.readiness(504)
            $0.push(505, 1)
            $0.report(506, WakeID(random: (1, 1)), .noData)
        }
        #expect(answers.allSatisfy { $0.status == 503 }, "\(answers)")
        for answer in answers.prefix(4) { #expect(answer.text.contains("reload failed"), "\(answer)") }
        #expect(answers[4].text.contains("sync of commit 5 failed"))
    }

    @Test("A lone push whose commit fails is refused, though nothing else happens", arguments: [4, 5])
    func loneFailure(operation: Int) throws {
        let store = SimulatedStore()
        store.failOperation(operation)
        let rig = try GatewayEngineRig(store)
        defer { rig.stop() }
        rig.step { $0.push(1, 1) }
        #expect(try rig.answers(1...1)[0].text == "ServiceUnavailable")
        #expect(rig.bell.failures.count == 1)
    }

    @Test("A failure during the last commit of a shutdown is told, and what waited for it is refused")
    func failureAtTheEnd() throws {
        let store = SimulatedStore()
        store.failOperation(5)
        let rig = try GatewayEngineRig(store)
        rig.step { $0.push(1, 1) }
        rig.stop()
        #expect(rig.bell.failures.count == 1)
        #expect(rig.answer(1)?.status == 503)
        #expect(store.misuses.isEmpty)
    }

    @Test(
        "The next process finds every promise that was made, and of the failed commit all or nothing",
        arguments: commits,
        [true, false]
    )
    func nextProcess(commit: Int, keepsUnresolved: Bool) throws {
        let script = try FailureScript(failingAt: commit, .syncing)
        script.rig.stop()
        let next = try GatewayEngineRig(script.rig.store.reopened(keepsUnresolved: keepsUnresolved))
        defer { next.stop() }
        let statistics = try next.ask(1) { $0.statistics(1) }
        try Self.expectBalance(statistics)
        #expect(
            statistics.integer("wakes", "launched").map { launched in
                launched
                    == statistics.integer("wakes", "results", "lost").map { lost in
                        lost
                            + ["newData", "noData", "failed", "expired"].reduce(0) {
                                $0 + (statistics.integer("wakes", "results", $1) ?? 0)
                            }
                    }
            } == true,
            "nothing is in flight after a restart"
        )
        let before = try #require(script.durable.integer("pushes", "accepted"))
        let after = try #require(statistics.integer("pushes", "accepted"))
        #expect(keepsUnresolved ? (before...before + 1).contains(after) : after == before)
        #expect(try next.ask(2) { $0.push(2, 50) }.status == 200)
    }

    /// A list of topics but for the workers, who are those there were at the failure.
    private static func withoutWorkers(_ topics: Told) -> [[String: String]] {
        let list = topics.value(["topics"]) as? [[String: Any]] ?? []
        return list.map { topic in topic.filter { $0.key != "workers" }.mapValues { "\($0)" } }
    }

    private static func expectBalance(_ statistics: Told) throws {
        let accepted = try #require(statistics.integer("pushes", "accepted"))
        var sum: Int64 = 0
        for count in ["completed", "coalesced", "pending", "inFlight"] {
            sum += try #require(statistics.integer("pushes", count))
        }
        for reason in ["expired", "exhausted", "forceQuit", "unregistered"] {
            sum += try #require(statistics.integer("pushes", "discarded", reason))
        }
        #expect(accepted == sum, "\(statistics)")
    }
}
