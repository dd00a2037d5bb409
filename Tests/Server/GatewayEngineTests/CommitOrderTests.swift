import Engine
import Policy
import Testing
import WakeGateTestKit

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
