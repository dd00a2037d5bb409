import Foundation
import Text

/// A wake as the gateway sends it: what a command gets to know.
package struct WakeEvent: Hashable, Sendable {
    package var wake: String
    package var device: String
    package var topic: String
    package var attempt: Int
    package var coalesced: Int
    /// Milliseconds since 1970.
    package var deadline: Int64
    /// The JSON text that the push carried; empty for a wake without a push.
    package var payload: [UInt8]

    /// Reads the data of a `wake` event; nil when something is missing.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data),
            let wake: String = Self.value("wake", in: members),
            let device: String = Self.value("device", in: members),
            let topic: String = Self.value("topic", in: members),
            let deadline: Int64 = Self.value("deadline", in: members)
        else { return nil }
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = deadline
        self.attempt = Self.value("attempt", in: members) ?? 1
        self.coalesced = Self.value("coalesced", in: members) ?? 0
        let payload = members.raw("payload") ?? []
        self.payload = payload == Array("null".utf8) ? [] : payload
    }

    /// The wake's id in the data of an `expired` event.
    package static func expiredWake(_ data: [UInt8]) -> String? {
        JSONMembers(data).flatMap { self.value("wake", in: $0) }
    }

    private static func value<Value: Decodable>(_ name: String, in members: JSONMembers) -> Value? {
        members.raw(name).flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }

    /// The variables that the command finds in its environment.
    package var environment: [String: String] {
        [
            "WAKEGATE_WAKE": self.wake, "WAKEGATE_DEVICE": self.device, "WAKEGATE_TOPIC": self.topic,
            "WAKEGATE_ATTEMPT": String(self.attempt), "WAKEGATE_COALESCED": String(self.coalesced),
            "WAKEGATE_DEADLINE": String(self.deadline),
        ]
    }
}
