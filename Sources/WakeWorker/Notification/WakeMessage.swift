import Text

/// The data of a `wake` event.
package struct WakeMessage: Hashable, Sendable {
    package let wake: String
    package let device: String
    package let topic: String
    package let apnsID: String?
    package let collapseID: String?
    package let priority: Int
    package let attempt: Int
    package let coalesced: Int
    /// Milliseconds since 1970, as are the next two, by the gateway's clock.
    package let receivedAt: Int64
    package let firstReceivedAt: Int64
    package let deadline: Int64
    /// The milliseconds that were left when the gateway wrote the event; a clock that is wrong does not touch it.
    package let timeLeft: Int64?
    /// The trace of the push; nil when its provider named none.
    package let traceparent: String?
    package let tracestate: String?
    /// The traces of pushes that it stands for, the newest first.
    package let traceLinks: [String]
    /// The JSON text that the push carried; empty for a wake without a push.
    package let payload: [UInt8]

    /// Reads the data; nil when something is missing.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data),
            let wake = Self.text("wake", in: members), let device = Self.text("device", in: members),
            let topic = Self.text("topic", in: members), let deadline = Self.integer("deadline", in: members)
        else { return nil }
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = deadline
        self.apnsID = Self.text("apnsID", in: members)
        self.collapseID = Self.text("collapseID", in: members)
        self.priority = Self.integer("priority", in: members).map { Int($0) } ?? 5
        self.attempt = Self.integer("attempt", in: members).map { Int($0) } ?? 1
        self.coalesced = Self.integer("coalesced", in: members).map { Int($0) } ?? 0
        self.receivedAt = Self.integer("receivedAt", in: members) ?? 0
        self.firstReceivedAt = Self.integer("firstReceivedAt", in: members) ?? 0
        self.timeLeft = Self.integer("timeLeft", in: members)
        self.traceparent = Self.text("traceparent", in: members)
        self.tracestate = Self.text("tracestate", in: members)
        self.traceLinks = Self.texts("traceLinks", in: members)
        let payload = members.raw("payload") ?? []
        self.payload = payload == Array("null".utf8) ? [] : payload
    }

    /// The wake's id in the data of an `expired` event.
    package static func expiredWake(_ data: [UInt8]) -> String? {
        JSONMembers(data).flatMap { self.text("wake", in: $0) }
    }

    private static func value(_ name: String, in members: JSONMembers) -> JSONValue? {
        members.raw(name).flatMap { try? JSONReader.read(String(decoding: $0, as: UTF8.self)) }
    }

    /// The texts of an array; none when it is none.
    private static func texts(_ name: String, in members: JSONMembers) -> [String] {
        guard case .array(let elements)? = self.value(name, in: members) else { return [] }
        return elements.compactMap(\.text)
    }

    private static func text(_ name: String, in members: JSONMembers) -> String? {
        self.value(name, in: members)?.text
    }

    private static func integer(_ name: String, in members: JSONMembers) -> Int64? {
        self.value(name, in: members)?.integer
    }
}
