/// One thing that happened, as `GET /v1/events` tells it.
package struct LiveEvent: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case push, refused, launched, result, discarded, registered, removed, paused, resumed
    }

    /// In milliseconds since 1970.
    package let at: Int64
    package let kind: Kind
    /// Empty when a refused push named none.
    package let topic: String
    /// The device's token in hexadecimal digits.
    package var device: String?
    package var apnsID: String?
    package var wake: String?
    /// Of a push: what became of it at first, as `wakegate-disposition` says it.
    package var disposition: String?
    /// Of a result: how the wake ended.
    package var outcome: String?
    /// Of a refused push the provider API's reason; of what was discarded why.
    package var reason: String?
    /// What else there is to say, for people.
    package var detail: String?

    package init(at: Int64, _ kind: Kind, topic: String) {
        self.at = at
        self.kind = kind
        self.topic = topic
    }

    /// Reads the data of an event; nil for one that no gateway sends.
    package init?(_ data: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: data, as: UTF8.self)),
            let at = value["at"]?.eventInteger,
            let kind = value["event"]?.eventText.flatMap({ Kind(rawValue: $0) }),
            let topic = value["topic"]?.eventText
        else { return nil }
        self.init(at: at, kind, topic: topic)
        self.device = value["device"]?.eventText
        self.apnsID = value["apnsID"]?.eventText
        self.wake = value["wake"]?.eventText
        self.disposition = value["disposition"]?.eventText
        self.outcome = value["outcome"]?.eventText
        self.reason = value["reason"]?.eventText
        self.detail = value["detail"]?.eventText
    }

    /// Appends the event as one JSON object with all of its members.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("at")
        writer.integer(self.at)
        writer.key("event")
        writer.string(self.kind.rawValue)
        writer.key("topic")
        writer.string(self.topic)
        let members: [(StaticString, String?)] = [
            ("device", self.device), ("apnsID", self.apnsID), ("wake", self.wake), ("disposition", self.disposition),
            ("outcome", self.outcome), ("reason", self.reason), ("detail", self.detail),
        ]
        for (name, text) in members {
            writer.key(name)
            if let text { writer.string(text) } else { writer.null() }
        }
        writer.endObject()
    }
}

/// What a gateway sends on a stream of `GET /v1/events`.
package enum LiveNews: Hashable, Sendable {
    case event(LiveEvent)
    /// So many events, at least, found no room and are not told.
    case missed(Int)

    /// Reads a server-sent event; nil for one that this program does not know.
    package init?(name: String, data: [UInt8]) {
        if name == "missed" {
            let value = try? JSONReader.read(String(decoding: data, as: UTF8.self))
            guard let count = value?["count"]?.eventInteger else { return nil }
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

    /// The data of the server-sent event: one line of JSON.
    package func write(to writer: inout JSONWriter) {
        switch self {
        case .event(let event): event.write(to: &writer)
        case .missed(let count):
            writer.beginObject()
            writer.key("count")
            writer.integer(count)
            writer.endObject()
        }
    }

    /// The server-sent event as it stands on the wire.
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
