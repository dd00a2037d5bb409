import Engine
import Foundation
import Policy
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("An engine starts on the data of a previous one", .timeLimit(.minutes(15)))
struct EngineRestartTests {
    @Test("Counters, their start time, and refused pushes by reason and topic survive a restart")
    func counters() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...6) {
            $0.push(1, 1)
            $0.push(2, 1)
            $0.push(3, 2, topic: 1, wakes: false)
            $0.rejected(.badTopic)
            $0.rejected(.badTopic, topic: 1)
            $0.push(4, 1, topic: 1)
            $0.unregister(5, 1)
            $0.push(6, 1)
        }
        let before = try rig.ask(10...12) {
            $0.statistics(10)
            $0.statistics(11, topic: 0)
            $0.statistics(12, topic: 1)
        }
        #expect(before[0].integer("pushes", "rejected", "BadTopic") == 2)
        #expect(before[2].integer("pushes", "rejected", "DeviceTokenNotForTopic") == 1)
        rig.stop()
        let next = try GatewayEngineRig(rig.store.reopened(keepsUnresolved: false))
        let after = try next.ask(10...12) {
            $0.statistics(10)
            $0.statistics(11, topic: 0)
            $0.statistics(12, topic: 1)
        }
        // The counts of periods and the durations of wakes begin with the process.
        for (after, before) in zip(after, before) {
            #expect(after.status == 200 && after.status == before.status)
            for part in ["pushes", "wakes", "tasks", "sessions", "since"] {
                #expect(after.value([part]) == before.value([part]), "\(part)")
            }
        }
    }

    @Test("A collapse id that was stored before it had to be UTF-8 reaches a worker as characters")
    func collapseID() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.push(1, 1, collapseID: [0x63, 0x61, 0x66, 0xE9]) }
        rig.stop()
        let next = try GatewayEngineRig(rig.store.reopened(keepsUnresolved: false))
        try next.ask(2) { $0.subscribe(2) }
        try next.waitForWakes(1)
        #expect(next.wakes[0].string("collapseID") == "caf\u{FFFD}")
    }

    @Test("A wake in flight is lost without counting its attempt, and that is durable before anything is answered")
    func lostWake() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2) { $0.push(2, 1, .immediate) }
        try rig.waitForWakes(1)
        let killed = SimulatedStore(rig.store.durable)
        rig.stop()

        let next = try GatewayEngineRig(killed)
        #expect(killed.commits == 1)
        // Killed again before any request: the loss is recorded once.
        let third = try GatewayEngineRig(SimulatedStore(killed.durable))
        next.stop()
        #expect(try third.ask(1) { $0.statistics(1) }.integer("wakes", "results", "lost") == 1)
        let results = try third.ask(8) { $0.explain(8, 1) }.recent.filter { $0[0] == "result" }
        #expect(results == [["result", GatewayEngineRig.apnsID(2), "lost"]])
        try third.ask(4) { $0.subscribe(4) }
        try third.waitForWakes(1)
        #expect(third.wakes[0].integer("attempt") == 1)
    }

    @Test("A store that cannot be read or written ends the start with its cause", arguments: 0...3)
    func startFails(operation: Int) {
        let store = SimulatedStore()
        store.failOperation(operation)
        #expect(throws: StoreError.self) { try GatewayEngineRig(store) }
        #expect(store.misuses.isEmpty)
    }

    @Test("An accepted loss is in the statistics and metrics of its start, and not in a topic's or the next start's")
    func acceptedLoss() throws {
        var store = SimulatedStore()
        let since: Int64 = 1_700_000_000_000
        let until = since + 1000
        store.loss = StoreLoss(file: "/j", fault: "it is cut", rows: 4, commits: 3, since: since, until: until)
        var rig = try GatewayEngineRig(store)
        try rig.ask(1) { $0.push(1, 1) }
        let answers = try rig.ask(2...4) {
            $0.statistics(2)
            $0.statistics(3, topic: 0)
            $0.metrics(4)
        }
        #expect(answers[0].string("acceptedLoss", "file") == "/j")
        let missing = "it is cut: 4 rows of 3 commits are missing"
        let cause = "\(missing), all since 2023-11-14T22:13:20Z until 2023-11-14T22:13:21Z"
        #expect(answers[0].string("acceptedLoss", "cause") == cause)
        #expect(answers[0].integer("acceptedLoss", "rows") == 4 && answers[0].integer("acceptedLoss", "commits") == 3)
        #expect(answers[0].string("acceptedLoss", "since") == "2023-11-14T22:13:20Z")
        #expect(answers[0].string("acceptedLoss", "until") == "2023-11-14T22:13:21Z")
        #expect(answers[1].value(["acceptedLoss"]) == nil)
        #expect(answers[2].text.contains("\nwakegate_loss_accepted 1\n"))
        rig.stop()
        store = store.reopened(keepsUnresolved: false)
        rig = try GatewayEngineRig(store)
        let next = try rig.ask(1...2) {
            $0.statistics(1)
            $0.metrics(2)
        }
        #expect(next[0].value(["acceptedLoss"]) == nil)
        #expect(next[1].text.contains("\nwakegate_loss_accepted 0\n"))
    }
}

@Suite("A start that the engine refuses", .timeLimit(.minutes(15)))
struct RefusedStartTests {
    typealias Records = SimulatedStore.Records

    /// A journal with valid rows on which an engine cannot start.
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The expected words of the refusal.
        let words: String
        let change: @Sendable (inout Records) -> Void

        init(_ name: String, _ words: String, _ change: @escaping @Sendable (inout Records) -> Void) {
            (self.testDescription, self.words, self.change) = (name, words, change)
        }

        static let all = [
            Fault("a topic twice", "topic 1, which is there twice") {
                $0[RecordKey(.topic, 1)] = $0[RecordKey(.topic, 0)]
            },
            Fault("a topic missing", "topic 0, which is missing") { $0[RecordKey(.topic, 0)] = nil },
            Fault("a topic of garbage", "topic 0") { $0[RecordKey(.topic, 0)] = [1] },
            Fault("a device missing", "a device, which is missing") { $0[RecordKey(.device, 0)] = nil },
            Fault("a device of garbage", "device 1") { $0[RecordKey(.device, 1)] = [9, 9, 9] },
            Fault("a device's topic missing", "its topic is missing") {
                for topic in 0..<2 as Range<UInt32> { $0[RecordKey(.topic, topic)] = nil }
            },
            Fault("a wake twice", "it has the wake of another") {
                $0[RecordKey(.device, 2)] = $0[RecordKey(.device, 0)]
            },
            Fault("a clock of garbage", "the clock") { $0[RecordKey(.clock)] = [1] },
            Fault("a beginning of garbage", "the beginning of the counters") { $0[RecordKey(.origin)] = [1] },
            Fault("a beginning that cannot be", "the beginning of the counters") {
                $0[RecordKey(.origin)] = [0, 0, 0, 0, 0, 0, 0, 0x7F]
            },
            Fault("policies of garbage", "the launch policies") { $0[RecordKey(.policies)] = [200] },
            Fault("refused pushes of garbage", "the refused pushes") {
                $0[RecordKey(.rejections, RecordKey.everyTopic)] = [1]
            },
            Fault("workers that were asked", "token.key") {
                $0[.workerAuthentication] = $0[RecordKey(.origin)]
            },
        ]
    }

    /// Returns the records of a gateway after a few pushes, wakes and refusals.
    private static func records() throws -> Records {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2...6) {
            $0.push(2, 1, .immediate)
            $0.push(3, 2)
            $0.push(4, 3, topic: 1)
            $0.rejected(.badTopic)
            $0.push(6, 4, topic: 1)
            $0.statistics(5)
        }
        try rig.waitForWakes(1)
        try rig.ask(7) { $0.push(7, 4) }
        return rig.store.durable
    }

    @Test("A refused start changes no file", arguments: Fault.all)
    func leavesFiles(fault: Fault) throws {
        var records = try Self.records()
        let temporary = try TemporaryFolder()
        let folder = temporary.url
        let path = folder.appending(path: "journal.sqlite").path
        try Self.write(records, path)
        // The unchanged records start without an error.
        #expect(GatewayEngineRig.refusal(of: try Journal(path: path)) == nil)
        fault.change(&records)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(at: folder.appending(path: name))
        }
        try Self.write(records, path)
        let before = try Self.contents(folder)
        #expect(before.count == 3, "file, log and mark")
        let refusal = try #require(GatewayEngineRig.refusal(of: Journal(path: path)))
        #expect(refusal.message.contains(fault.words), "\(refusal.message)")
        #expect(try Self.contents(folder) == before)
    }

    /// Creates a journal as a killed process leaves it.
    private static func write(_ records: Records, _ path: String) throws {
        let journal = try Journal(path: path)
        try journal.begin()
        var batch = RecordBatch()
        // Records of events are in the order of their numbers, as the journal has them.
        for (key, content) in records.sorted(by: { $0.key.index < $1.key.index }) {
            batch.append(key) { $0.append(content) }
        }
        try journal.commit(batch)
    }

    /// Returns the contents of each file, except the shared memory of connections.
    private static func contents(_ folder: URL) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !name.hasSuffix("-shm") {
            contents[name] = try Data(contentsOf: folder.appending(path: name))
        }
        return contents
    }
}
