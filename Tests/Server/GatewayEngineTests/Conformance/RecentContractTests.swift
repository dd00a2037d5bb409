import Engine
import Gateway
import Platform
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: durations of wakes and recent counts", .timeLimit(.minutes(15)))
struct RecentContractTests {
    @Test("Statistics name the slowest workers, of all topics and of one", arguments: EngineKind.all)
    func workers(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, slots: 1, label: "slow")
            $0.subscribe(2, topic: 1, slots: 1, label: "fast")
        }
        for (round, device) in [1, 3, 5].enumerated() {
            contract.ask { $0.push(100 + round * 10, device + 1) }
            let slow = try contract.lastWake()
            contract.ask { $0.push(101 + round * 10, device, topic: 1) }
            let fast = try contract.lastWake()
            contract.pass(milliseconds: 10)
            contract.ask { $0.report(102 + round * 10, fast.id, .newData) }
            contract.pass(milliseconds: 3_000)
            contract.ask { $0.report(103 + round * 10, slow.id, .newData) }
        }
        contract.ask { $0.statistics(200) }
        #expect(contract.member(200, "durations", "count") == "6")
        let names = ["worker", "topic", "kind", "count", "p50Ms", "p95Ms", "maxMs"]
        let workers = (0...2).map { row in names.map { contract.member(200, "durations", "workers", "\(row)", $0) } }
        #expect(workers[0] == ["slow", EngineRig.topicName(0), "push", "3", "3010", "3010", "3010"])
        #expect(workers[1] == ["fast", EngineRig.topicName(1), "push", "3", "10", "10", "10"])
        #expect(Set(workers[2]) == [""])
        #expect(contract.member(200, "durations", "topics", "0", "topic") == EngineRig.topicName(0))
        contract.ask { $0.statistics(201, topic: 1) }
        #expect(contract.member(201, "durations", "count") == "3")
        #expect(contract.member(201, "durations", "maxMs") == "10")
        #expect(contract.member(201, "durations", "workers", "0", "worker") == "fast")
        #expect(contract.member(201, "durations", "workers", "1") == "")
        contract.ask { $0.topics(202) }
        #expect(contract.member(202, "topics", "0", "durations", "p95Ms") == "3010")
    }

    @Test("Workers that are equally slow are in the order of their names", arguments: EngineKind.all)
    func equallySlow(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let names = (10..<40).map { "worker \($0)" }
        contract.ask { for (number, name) in names.enumerated() { $0.subscribe(1 + number, slots: 1, label: name) } }
        contract.ask { for number in names.indices { $0.push(100 + number, 1 + number) } }
        contract.pass(milliseconds: 10)
        let wakes = contract.wakes
        contract.ask { for (number, wake) in wakes.enumerated() { $0.report(200 + number, wake.id, .newData) } }
        contract.ask { $0.statistics(300) }
        let shown = (0..<30).map { contract.member(300, "durations", "workers", "\($0)", "worker") }
        #expect(shown.filter { !$0.isEmpty } == Array(names.prefix(20)))
        contract.ask { $0.metrics(301) }
        let bucket = #"wakegate_topic_wake_duration_seconds_bucket{topic="(other)",le="#
        #expect(contract.text(301).contains("\(bucket)\"1048.576\"} 30\n"), "a wake may last ten minutes")
    }

    @Test("A period of an hour and a minute is exact, however long samples were taken", arguments: EngineKind.alone)
    func thinned(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        var counts: [String] = []
        for minute in 0..<300 {
            contract.pass(seconds: 60)
            contract.ask {
                $0.push(1000 + minute, 1)
                $0.recent(2000 + minute, topic: 0, since: contract.wall - 3_660_000)
            }
            counts.append(contract.member(2000 + minute, "recent", "since", "accepted"))
        }
        #expect(Set(counts.dropFirst(70)).count == 1, "\(counts)")
    }

    @Test("A period in the future is refused, unless the caller's clock is a little ahead", arguments: EngineKind.all)
    func future(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1) }
        contract.ask {
            $0.recent(2, topic: 0, since: contract.wall + 30_000)
            $0.recent(3, topic: 0, since: contract.wall + 90_000)
        }
        #expect(contract.answer(2) == "200" && contract.answer(3) == "400 BadQuery")
    }

    /// The coalesced pushes of the topic: in the last hour, in the last day, and since a moment.
    private func coalesced(_ contract: EngineContract, _ request: Int, since: Int64) -> [String] {
        contract.ask {
            $0.statistics(request, topic: 0)
            $0.recent(request + 1, topic: 0, since: since)
        }
        return [
            contract.member(request, "recent", "hour", "coalesced"),
            contract.member(request, "recent", "day", "coalesced"),
            contract.member(request + 1, "recent", "since", "coalesced"),
        ]
    }

    @Test("Pushes are counted by topic over an hour, a day and any time between", arguments: EngineKind.all)
    func periods(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.topicsMax = 10 }
        contract.pass(seconds: 1)
        // No worker takes wakes: each push but the first of its device is coalesced with the one before.
        contract.ask { for push in 0..<5 { $0.push(100 + push, 1) } }
        contract.ask { $0.push(110, 1, topic: 1) }
        #expect(self.coalesced(contract, 200, since: contract.wall - 1000) == ["4", "4", "4"])
        for minute in 0..<90 {
            contract.pass(seconds: 60)
            if minute == 44 { contract.ask { $0.push(120, 1) } }
        }
        let wall = contract.wall
        #expect(self.coalesced(contract, 300, since: wall - 40 * 60_000) == ["1", "5", "0"])
        #expect(self.coalesced(contract, 310, since: wall - 50 * 60_000) == ["1", "5", "1"])
        #expect(self.coalesced(contract, 320, since: 0) == ["1", "5", "5"])
        let since = contract.member(301, "recent", "since", "since")
        #expect(since <= WallTime.text(wall - 40 * 60_000) && since > WallTime.text(wall - 42 * 60_000))
        // The push 45 minutes ago, those 90 minutes ago, and all of them.
        let periods = [(50, 40, "1"), (100, 60, "4"), (100, 40, "5"), (40, 1, "0"), (100, 95, "0")]
        for (number, (since, until, expected)) in periods.enumerated() {
            let (request, end) = (330 + number, wall - Int64(until) * 60_000)
            contract.ask { $0.recent(request, topic: 0, since: wall - Int64(since) * 60_000, until: end) }
            let counts = ["coalesced", "until"].map { contract.member(request, "recent", "since", $0) }
            // A period before the first counts, 90 minutes ago, is empty and ends there.
            let last = WallTime.text(max(end, wall - 90 * 60_000))
            #expect(counts[0] == expected && counts[1] <= last, "\(since) \(until): \(counts)")
        }
        contract.ask { $0.recent(340, topic: 0, since: wall - 3_000_000, until: wall + 1000) }
        #expect(contract.member(340, "recent", "since", "coalesced") == "1")
        #expect(contract.member(340, "recent", "since", "until") == "", "the period has not ended")
        for _ in 0..<(26 * 4) { contract.pass(seconds: 900) }
        #expect(self.coalesced(contract, 400, since: 0) == ["0", "0", "0"])
        #expect(contract.member(400, "pushes", "coalesced") == "5")
    }

    @Test("Of the topics beyond the limit the counts begin with their last sample", arguments: EngineKind.all)
    func manyTopics(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.pass(seconds: 1)
        let start = contract.wall
        for topic in 0...RecentCounts.topicsMax {
            contract.ask { $0.push(1000 + topic, 1 + topic, topic: topic) }
        }
        contract.pass(seconds: 60)
        contract.ask {
            $0.statistics(1, topic: 0)
            $0.statistics(2, topic: RecentCounts.topicsMax)
        }
        #expect(contract.member(1, "recent", "hour", "accepted") == "1")
        #expect(contract.member(1, "recent", "hour", "since") <= WallTime.text(start))
        #expect(contract.member(2, "recent", "hour", "accepted") == "0")
        #expect(contract.member(2, "recent", "hour", "since") > WallTime.text(start))
    }

    @Test("Every gateway shows the durations of the wakes on all streams, also if the answer came to another gateway")
    func durations() throws {
        let rig = GatewaysRig()
        for number in 0...1 { rig.ask(number) { $0.subscribe(1, topic: number, slots: 1, label: "worker") } }
        rig.ask(0) { requests in for topic in 0...1 { requests.push(2 + topic, 1 + topic, topic: topic) } }
        rig.pass(seconds: 3)
        rig.ask(1) { requests in
            for number in 0...1 { for wake in rig[number].wakes { requests.report(4 + number, wake.id, .newData) } }
        }
        rig.pass(seconds: 2)
        for number in 0...1 {
            rig.ask(number) { $0.statistics(10) }
            let durations = try #require(try JSONReader.read(rig[number].text(10))["durations"])
            #expect(durations["count"]?.number == 2)
            let workers = durations["workers"]?.elements ?? []
            #expect(workers.map { $0["worker"]?.text } == ["worker", "worker"])
            for worker in workers { #expect((2_000...4_000).contains(worker["maxMs"]?.number ?? 0)) }
        }
    }
}
