import Text

/// The data of a push's `wake` event.
package struct WakeMessage: Hashable, Sendable {
    package let wake: String
    package let device: String
    package let topic: String
    package let apnsID: String?
    package let collapseID: String?
    package let priority: Int
    package let attempt: Int
    package let coalesced: Int
    /// Milliseconds since 1970, as are the next two, by the gateway's clock; never past `instantMax`.
    package let receivedAt: Int64
    package let firstReceivedAt: Int64
    package let deadline: Int64
    /// The milliseconds that were left when the gateway wrote the event, at most `timeLeftMax`; a clock that is wrong
    /// does not touch it.
    package let timeLeft: Int64?
    /// The trace of the push; nil when its provider named none.
    package let traceparent: String?
    package let tracestate: String?
    /// The traces of pushes that it stands for, the newest first.
    package let traceLinks: [String]
    /// The JSON text that the push carried; empty for a wake without a push.
    package let payload: [UInt8]

    /// The most time that is believed to be left, in milliseconds: more than two centuries, which is past what any
    /// policy gives, and little enough to be added to any clock.
    package static let timeLeftMax: Int64 = 10_000_000_000_000
    /// The last moment that is believed: the end of the year 9999.
    package static let instantMax: Int64 = 253_402_300_799_999
    /// The most pushes in one, and the most launches of one, that are believed.
    package static let countMax = 1_000_000_000

    /// Reads the data; nil when something is missing, or the wake is no push's.
    package init?(_ data: [UInt8]) {
        guard case .push(let message)? = WakeEvent(data) else { return nil }
        self = message
    }

    /// Reads the members of the data, whatever kind it names; nil when something is missing.
    init?(_ members: JSONMembers) {
        guard let wake = Self.text("wake", in: members), let device = Self.text("device", in: members),
            let topic = Self.text("topic", in: members), let deadline = Self.instant("deadline", in: members)
        else { return nil }
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = deadline
        self.apnsID = Self.text("apnsID", in: members)
        self.collapseID = Self.text("collapseID", in: members)
        self.priority = Self.count("priority", in: members) ?? 5
        self.attempt = Self.count("attempt", in: members) ?? 1
        self.coalesced = Self.count("coalesced", in: members) ?? 0
        self.receivedAt = Self.instant("receivedAt", in: members) ?? 0
        self.firstReceivedAt = Self.instant("firstReceivedAt", in: members) ?? 0
        self.timeLeft = Self.integer("timeLeft", in: members).map { Self.believed($0) }
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

    /// How many milliseconds are left, of an event without `timeLeft` by `wallClock`, in milliseconds since 1970.
    package func timeLeft(wallClock: Int64) -> Int64 {
        if let timeLeft = self.timeLeft { return timeLeft }
        let (left, isTooMuch) = self.deadline.subtractingReportingOverflow(wallClock)
        return isTooMuch ? Self.timeLeftMax : Self.believed(left)
    }

    /// The milliseconds that are left, in the answer to a wish for more time; nil when it does not say so.
    package static func timeLeft(_ answer: [UInt8]) -> Int64? {
        let answer = try? JSONReader.read(String(decoding: answer, as: UTF8.self))
        return answer?["timeLeft"].flatMap { self.integer($0) }.map { max(0, self.believed($0)) }
    }

    private static func believed(_ timeLeft: Int64) -> Int64 {
        max(-self.timeLeftMax, min(timeLeft, self.timeLeftMax))
    }

    private static func instant(_ name: String, in members: JSONMembers) -> Int64? {
        self.integer(name, in: members).map { max(0, min($0, self.instantMax)) }
    }

    private static func count(_ name: String, in members: JSONMembers) -> Int? {
        self.integer(name, in: members).map { max(0, min(Int(clamping: $0), self.countMax)) }
    }

    private static func value(_ name: String, in members: JSONMembers) -> JSONValue? {
        members.raw(name).flatMap { try? JSONReader.read(String(decoding: $0, as: UTF8.self)) }
    }

    /// The texts of an array; none when it is none.
    private static func texts(_ name: String, in members: JSONMembers) -> [String] {
        guard case .array(let elements)? = self.value(name, in: members) else { return [] }
        return elements.compactMap { self.text($0) }
    }

    static func text(_ name: String, in members: JSONMembers) -> String? {
        self.value(name, in: members).flatMap { self.text($0) }
    }

    private static func integer(_ name: String, in members: JSONMembers) -> Int64? {
        self.value(name, in: members).flatMap { self.integer($0) }
    }

    private static func text(_ value: JSONValue) -> String? {
        guard case .string(let text) = value else { return nil }
        return text
    }

    private static func integer(_ value: JSONValue) -> Int64? {
        guard case .number(let number) = value else { return nil }
        return Int64(number.text)
    }
}
