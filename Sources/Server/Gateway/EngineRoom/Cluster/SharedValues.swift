import Engine
import Policy
import Wire

/// The names under which gateways keep what all share, and how it is written.
enum SharedValues {
    /// Which launch policies were in force when: `PolicyVersions`.
    static let policies = "policies"
    /// There once workers were asked who they are.
    static let workersAsked = "workersAsked"
    /// When the counters began, in milliseconds since 1970: 8 bytes, little-endian.
    static let countingSince = "countingSince"

    /// Behind it stands the name of a topic; what is kept is one byte, which is 1 while the topic is paused.
    private static let pause = "paused:"

    /// The name under which it is kept whether a topic is paused.
    static func pause(_ topic: String) -> String { Self.pause + topic }

    /// The topic that something is kept of under this name; nil when it is not about a pause.
    static func pausedTopic(_ name: String) -> String? {
        name.hasPrefix(Self.pause) ? String(name.dropFirst(Self.pause.count)) : nil
    }

    static func written(isPaused: Bool) -> [UInt8] { [isPaused ? 1 : 0] }

    static func isPaused(_ content: [UInt8]) -> Bool { content == [1] }

    static func written(_ policies: PolicyVersions) -> [UInt8] {
        var buffer = ByteBuffer()
        policies.store(to: &buffer)
        return buffer.view.array
    }

    static func policies(_ content: [UInt8]) -> PolicyVersions? {
        content.withByteView { PolicyVersions(stored: $0) }
    }

    static func written(moment: Int64) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.append(memoryOf: moment.littleEndian)
        return buffer.view.array
    }

    static func moment(_ content: [UInt8]) -> Int64? {
        guard content.count == 8 else { return nil }
        return content.withByteView { Int64(littleEndian: $0.load(Int64.self, at: 0)) }
    }
}
