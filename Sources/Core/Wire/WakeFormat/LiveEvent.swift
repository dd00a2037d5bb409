/// An event on `GET /v1/events`.
package struct LiveEvent: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case push, refused, launched, result, discarded, registered, removed, paused, resumed
        case submitted, taskRefused, finished, conditions, subscribed
    }

    /// The time, in milliseconds since 1970.
    package let at: Int64
    package let kind: Kind
    /// The topic; empty for a refused push that has no topic.
    package let topic: String
    /// The device's token in hexadecimal digits.
    package var device: String?
    package var apnsID: String?
    package var wake: String?
    /// The immediate outcome of a push or request, as in the header `wakegate-disposition`.
    package var disposition: String?
    /// The outcome of a wake, for a result.
    package var outcome: String?
    /// The reason in the answer, for a refused push or request. The cause, for a discarded launch.
    package var reason: String?
    /// Details for people.
    package var detail: String?

    package init(at: Int64, _ kind: Kind, topic: String) {
        self.at = at
        self.kind = kind
        self.topic = topic
    }

    /// Parses the data of an event; nil if it is malformed.
    package init?(_ data: [UInt8]) {
        guard let value = JSONValue(data),
            let at = value["at"]?.integer,
            let kind = value["event"]?.text.flatMap({ Kind(rawValue: $0) }),
            let topic = value["topic"]?.text
        else { return nil }
        self.init(at: at, kind, topic: topic)
        self.device = value["device"]?.text
        self.apnsID = value["apnsID"]?.text
        self.wake = value["wake"]?.text
        self.disposition = value["disposition"]?.text
        self.outcome = value["outcome"]?.text
        self.reason = value["reason"]?.text
        self.detail = value["detail"]?.text
    }

    /// Appends the event as one JSON object with all of its members.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("at", self.at)
        writer.member("event", self.kind.rawValue)
        writer.member("topic", self.topic)
        let members: [(StaticString, String?)] = [
            ("device", self.device), ("apnsID", self.apnsID), ("wake", self.wake), ("disposition", self.disposition),
            ("outcome", self.outcome), ("reason", self.reason), ("detail", self.detail),
        ]
        for (name, text) in members { writer.member(name, text) }
        writer.endObject()
    }
}

/// A message on a stream of `GET /v1/events`.
package enum LiveNews: Hashable, Sendable {
    case event(LiveEvent)
    /// The number of events that were dropped because a buffer was full. More may have been dropped.
    case missed(Int)

    /// Parses a server-sent event; nil if its kind is unknown or its data is malformed.
    package init?(name: String, data: [UInt8]) {
        if name == "missed" {
            let value = JSONValue(data)
            guard let count = value?["count"]?.integer else { return nil }
            self = .missed(Int(clamping: count))
        } else {
            guard let event = LiveEvent(data) else { return nil }
            self = .event(event)
        }
    }

    /// The name of the server-sent event.
    package var name: String {
        switch self {
        case .event(let event): event.kind.rawValue
        case .missed: "missed"
        }
    }

    /// Writes the data of the server-sent event: one line of JSON.
    package func write(to writer: inout JSONWriter) {
        switch self {
        case .event(let event): event.write(to: &writer)
        case .missed(let count):
            writer.beginObject()
            writer.member("count", count)
            writer.endObject()
        }
    }

    /// The server-sent event as bytes, in its wire format.
    package var wireForm: [UInt8] {
        var writer = JSONWriter()
        self.write(to: &writer)
        var event = ByteBuffer()
        event.append("event: ")
        event.append(self.name)
        event.append("\ndata: ")
        event.appendJSONLine(writer.buffer.view)
        event.append("\n\n")
        return event.view.array
    }
}

/// A message that a gateway sends to a worker on its stream.
package enum StreamEvent: Hashable, Sendable {
    case wake(WakeEvent)
    /// The deadline of a wake is near. `deadline` is in milliseconds since 1970, and `timeLeft` in milliseconds.
    case expiring(wake: String, deadline: Int64, timeLeft: Int64?)
    /// The wake has expired. The reason is nil if it is absent or unknown.
    case expired(wake: String, ExpirationReason?)
    /// The conditions of a device, as the members of an object.
    case conditions(device: String, JSONValue)
    /// An event of a kind that this program does not know, from a newer gateway.
    case unknown

    /// Parses a server-sent event; nil if it is malformed.
    package init?(name: String, data: [UInt8]) {
        switch name {
        case "wake":
            guard let event = WakeEvent(data) else { return nil }
            self = .wake(event)
        case "expiring":
            guard let members = JSONMembers(data), let wake = members.text("wake"),
                let deadline = members.instant("deadline")
            else { return nil }
            self = .expiring(wake: wake, deadline: deadline, timeLeft: members.timeLeft())
        case "expired":
            guard let members = JSONMembers(data), let wake = members.text("wake") else { return nil }
            self = .expired(wake: wake, members.text("reason").flatMap { ExpirationReason(rawValue: $0) })
        case "conditions":
            guard let value = JSONValue(data),
                let device = value["device"]?.text
            else { return nil }
            self = .conditions(device: device, value)
        default: self = .unknown
        }
    }
}

/// A `wake` event, by the kind of its wake.
package enum WakeEvent: Hashable, Sendable {
    case push(WakeMessage)
    /// The wake of a background task, or of a session's finished transfers.
    case task(TaskMessage)
    /// A wake of a kind that this program does not know. Its other members are ignored.
    case other(wake: String, WakeKind)

    /// Parses the data of a `wake` event; nil if a required member is missing. An event without a kind is the wake of a
    /// push.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data), let kind = Self.kind(members) else { return nil }
        switch kind {
        case .push:
            guard let message = WakeMessage(members) else { return nil }
            self = .push(message)
        case .appRefresh, .processing, .continued, .urlSession:
            guard let message = TaskMessage(members, kind) else { return nil }
            self = .task(message)
        default:
            guard let wake = members.text("wake") else { return nil }
            self = .other(wake: wake, kind)
        }
    }

    /// Returns the kind in the data; `push` if it is absent, and nil if it is malformed.
    private static func kind(_ members: JSONMembers) -> WakeKind? {
        guard members.raw("kind") != nil else { return .push }
        return members.text("kind").flatMap { WakeKind($0) }
    }
}
