import Engine
import Foundation
import Gateway
import Platform
import Testing

@Suite("How much memory there is")
struct MachineMemoryTests {
    /// A folder in place of the system's, with a control group within another.
    private func root(_ limits: [String: String]) throws -> String {
        let root = NSTemporaryDirectory() + "wakegate-" + UUID().uuidString
        let manager = FileManager.default
        try manager.createDirectory(atPath: root + "/proc/self", withIntermediateDirectories: true)
        try Data("0::/outer/inner\n".utf8).write(to: URL(fileURLWithPath: root + "/proc/self/cgroup"))
        for (group, limit) in limits {
            let folder = "\(root)/sys/fs/cgroup/\(group)"
            try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data("\(limit)\n".utf8).write(to: URL(fileURLWithPath: folder + "/memory.max"))
        }
        return root
    }

    @Test("The least of the machine's and of what its control groups allow counts")
    func controlGroups() throws {
        let machine = MachineMemory.bytes(root: "/nowhere")
        #expect(machine > 1 << 26)
        let cases: [([String: String], Int)] = [
            ([:], machine), (["outer": "max"], machine), (["outer/inner": "1048576"], 1_048_576),
            (["outer": "4096", "outer/inner": "1048576"], 4096), (["outer": "9223372036854771712"], machine),
            (["other": "4096"], machine),
        ]
        for (limits, bytes) in cases {
            let root = try self.root(limits)
            defer { try? FileManager.default.removeItem(atPath: root) }
            #expect(MachineMemory.bytes(root: root) == bytes, "\(limits)")
        }
    }

    @Test("Half of it is for pushes that wait unless something else is set, and a topic has its share")
    func pending() throws {
        var engine = try ConfigurationLoader.load(text: nil, name: "none", settings: []).engine
        #expect(engine.pendingBytesMax == MachineMemory.bytes() / 2)
        #expect(engine.pendingBytesPerTopicMax == engine.pendingBytesMax * 80 / 100)
        let settings = ["limits.pendingBytesMax=1000000", "limits.pendingTopicPercentMax=25"]
        engine = try ConfigurationLoader.load(text: nil, name: "none", settings: settings).engine
        #expect(engine.pendingBytesMax == 1_000_000)
        #expect(engine.pendingBytesPerTopicMax == 250_000)
    }

    @Test("An eighth of it is for background tasks unless something else is set; a topic's share is never nothing")
    func tasks() throws {
        var engine = try ConfigurationLoader.load(text: nil, name: "none", settings: []).engine
        #expect(engine.taskBytesMax == MachineMemory.bytes() / 8)
        #expect(engine.taskBytesPerTopicMax == engine.taskBytesMax * 80 / 100)
        let settings = ["limits.taskBytesMax=1000", "limits.taskRequestsMax=1", "limits.taskTopicPercentMax=1"]
        engine = try ConfigurationLoader.load(text: nil, name: "none", settings: settings).engine
        #expect(engine.taskBytesMax == 1000 && engine.taskBytesPerTopicMax == 10)
        #expect(engine.taskRequestsMax == 1 && engine.taskRequestsPerTopicMax == 1)
    }
}
