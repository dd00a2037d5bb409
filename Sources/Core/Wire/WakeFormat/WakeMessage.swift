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
        guard let wake = members.text("wake"), let device = members.text("device"), let topic = members.text("topic"),
            let deadline = members.instant("deadline")
        else { return nil }
        self.wake = wake
        self.device = device
        self.topic = topic
        self.deadline = deadline
        self.apnsID = members.text("apnsID")
        self.collapseID = members.text("collapseID")
        self.priority = members.count("priority") ?? 5
        self.attempt = members.count("attempt") ?? 1
        self.coalesced = members.count("coalesced") ?? 0
        self.receivedAt = members.instant("receivedAt") ?? 0
        self.firstReceivedAt = members.instant("firstReceivedAt") ?? 0
        self.timeLeft = members.timeLeft()
        self.traceparent = members.text("traceparent")
        self.tracestate = members.text("tracestate")
        self.traceLinks = members.texts("traceLinks")
        let payload = members.raw("payload") ?? []
        self.payload = payload == Array("null".utf8) ? [] : payload
    }

    /// How many milliseconds are left, of an event without `timeLeft` by `wallClock`, in milliseconds since 1970.
    package func timeLeft(wallClock: Int64) -> Int64 {
        WakeTime.left(self.timeLeft, deadline: self.deadline, wallClock: wallClock)
    }

    /// The milliseconds that are left, in the answer to a wish for more time; nil when it does not say so.
    package static func timeLeft(_ answer: [UInt8]) -> Int64? {
        let answer = try? JSONReader.read(String(decoding: answer, as: UTF8.self))
        return answer?["timeLeft"]?.eventInteger.map { max(0, WakeTime.believed($0)) }
    }
}
