import Engine
import Foundation
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("A start that the engine refuses", .timeLimit(.minutes(15)))
struct RefusedStartTests {
    typealias Records = SimulatedStore.Records

    /// What a journal may hold whose rows are good, and an engine cannot begin with.
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// What the refusal says.
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
                $0[.workersAsked] = $0[RecordKey(.origin)]
            },
        ]
    }

    /// What a gateway has stored after a few pushes, wakes and refusals.
    private static func records() throws -> Records {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
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
        let folder = FileManager.default.temporaryDirectory.appending(path: "wakegate-refused-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "journal.sqlite").path
        try Self.write(records, path)
        // What is refused below starts as it is.
        #expect(try GatewayEngineRig.refusal(of: try Journal(path: path)) == nil)
        fault.change(&records)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(at: folder.appending(path: name))
        }
        try Self.write(records, path)
        let before = try Self.contents(folder)
        #expect(before.count == 3, "file, log and mark")
        let refusal = try #require(try GatewayEngineRig.refusal(of: try Journal(path: path)))
        #expect(refusal.message.contains(fault.words), "\(refusal.message)")
        #expect(try Self.contents(folder) == before)
    }

    /// Makes a journal, as a process leaves it that is killed.
    private static func write(_ records: Records, _ path: String) throws {
        let journal = try Journal(path: path)
        try journal.begin()
        var batch = RecordBatch()
        for (key, content) in records { batch.append(key) { $0.append(content) } }
        try journal.commit(batch)
    }

    /// What each file holds, but for the memory that connections share.
    private static func contents(_ folder: URL) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !name.hasSuffix("-shm") {
            contents[name] = try Data(contentsOf: folder.appending(path: name))
        }
        return contents
    }
}
