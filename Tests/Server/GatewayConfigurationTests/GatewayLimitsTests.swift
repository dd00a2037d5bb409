import Engine
import Foundation
import Gateway
import HTTPTransport
import Platform
import Testing
import Wire

@Suite("The limits of the gateway")
struct GatewayLimitsTests {
    @Test("Both ends of a range are accepted, and values beyond them are refused by name", arguments: GatewayLimit.all)
    func ends(limit: GatewayLimit) throws {
        let key = "limits.\(limit.name)"
        for value in [limit.range.lowerBound, limit.range.upperBound] {
            #expect(try load(set: ["\(key)=\(value)"]).limits[keyPath: limit.field] == value)
        }
        for value in [limit.range.lowerBound - 1, limit.range.upperBound + 1] {
            let fault = "\(key): is \(Self.shown(value)); write \(limit.requirement)"
            #expect(refusal(of: try load(set: ["\(key)=\(value)"])) == [fault])
        }
        #expect(refusal(of: try load(set: ["\(key)=16384.5"])) == ["\(key): is 16384.5; write \(limit.requirement)"])
        #expect(refusal(of: try load(set: ["\(key)=many"])) == ["\(key): is \"many\"; write \(limit.requirement)"])
    }

    /// Formats a number like messages, which treat every number as a double.
    private static func shown(_ value: Int) -> String {
        let text = String(Double(value))
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    @Test("Every limit of the transport and the engine can be set, under its own name")
    func complete() {
        let transport = Mirror(reflecting: TransportLimits()).children.compactMap(\.label)
        #expect(transport.count > 20)
        let others = [
            "devicesMax", "devicesPerTopicMax", "topicsMax", "pushesPerDeviceMax", "pushesPerDeviceSeconds",
            "connectionsPerCredentialMax", "requestsAtEngineMax", "pendingBytesMax", "pendingTopicPercentMax",
            "wakeBytesPerStreamMax", "historyBytesMax", "historySeconds", "liveStreamsMax", "streamsPerCredentialMax",
            "eventStreamsMax", "eventsHeldMax", "streamsPerDeviceMax", "taskRequestsMax", "taskBytesMax",
            "taskTopicPercentMax",
            "submissionsPerCredentialMax", "progressPerCredentialMax",
        ]
        #expect(Set(GatewayLimit.all.map(\.name)) == Set(transport + others))
        for child in Mirror(reflecting: TransportLimits()).children {
            let limit = GatewayLimit.all.first { $0.name == child.label }
            #expect(limit?.defaultValue == child.value as? Int)
        }
    }

    @Test("Every default is in its range, and has advice", arguments: GatewayLimit.all)
    func defaults(limit: GatewayLimit) {
        #expect(limit.range.contains(limit.defaultValue))
        #expect(limit.rationale.hasSuffix(".") && !limit.summary.isEmpty)
    }
}

@Suite("Available memory")
struct MachineMemoryTests {
    /// Creates a folder that replaces the system's root, with nested control groups.
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

    @Test("The smallest of the machine's memory and its control groups' limits counts")
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

    @Test("By default half of the memory is for pending pushes and an eighth for tasks; a topic has a share of each")
    func shares() throws {
        var engine = try load().engine
        let memory = MachineMemory.bytes()
        #expect(engine.pendingBytesMax == memory / 2 && engine.taskBytesMax == memory / 8)
        #expect(engine.pendingBytesPerTopicMax == engine.pendingBytesMax * 80 / 100)
        #expect(engine.taskBytesPerTopicMax == engine.taskBytesMax * 80 / 100)
        engine = try load("{limits: {pendingBytesMax: 1000000, pendingTopicPercentMax: 25}}").engine
        #expect(engine.pendingBytesMax == 1_000_000 && engine.pendingBytesPerTopicMax == 250_000)
        engine = try load("{limits: {taskBytesMax: 1000, taskRequestsMax: 1, taskTopicPercentMax: 1}}").engine
        #expect(engine.taskBytesMax == 1000 && engine.taskBytesPerTopicMax == 10)
        #expect(engine.taskRequestsMax == 1 && engine.taskRequestsPerTopicMax == 1, "a share is never zero")
    }
}
