/// One event of a `text/event-stream`.
package struct ServerSentEvent: Hashable, Sendable {
    /// The event's type; `message` if the stream does not specify one.
    package var name: String
    /// The latest id in the stream, up to this event; empty if there was none.
    package var id: String
    /// The data lines, joined with line feeds.
    package var data: [UInt8]

    package init(name: String, id: String, data: [UInt8]) {
        self.name = name
        self.id = id
        self.data = data
    }
}

/// A parser of a `text/event-stream` (WHATWG HTML, 9.2) that arrives in pieces of any size.
///
/// If an event exceeds the limit, the parser throws an error, and the caller must end the stream: the start of the next
/// event is uncertain.
package struct ServerSentEventParser: Sendable {
    /// The error for an event that exceeds the limit of the parser.
    package struct EventTooLarge: Error, Hashable {
        /// The limit, in bytes.
        package let bytesMax: Int

        package init(bytesMax: Int) {
            self.bytesMax = bytesMax
        }
    }

    /// The maximum number of bytes of a line, and of an event's data.
    package let bytesMax: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var name = ""
    private var id = ""
    private var isAfterCarriageReturn = false
    private var isAtStart = true

    package init(bytesMax: Int = 1 << 20) {
        self.bytesMax = bytesMax
    }

    /// Parses the next bytes.
    ///
    /// - Returns: the events that these bytes complete, in order.
    package mutating func received(_ bytes: some Sequence<UInt8>) throws(EventTooLarge) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            let wasAfterCarriageReturn = self.isAfterCarriageReturn
            self.isAfterCarriageReturn = byte == 0x0D
            switch byte {
            case 0x0A where wasAfterCarriageReturn: break
            case 0x0A, 0x0D:
                if let event = try self.lineEnded() { events.append(event) }
            default:
                guard self.line.count < self.bytesMax else { throw EventTooLarge(bytesMax: self.bytesMax) }
                self.line.append(byte)
            }
        }
        return events
    }

    private mutating func lineEnded() throws(EventTooLarge) -> ServerSentEvent? {
        defer { self.line.removeAll(keepingCapacity: true) }
        if self.isAtStart {
            self.isAtStart = false
            if self.line.starts(with: [0xEF, 0xBB, 0xBF]) { self.line.removeFirst(3) }
        }
        guard !self.line.isEmpty else { return self.eventEnded() }
        let colon = self.line.firstIndex(of: UInt8(ascii: ":")) ?? self.line.endIndex
        var value = self.line[min(colon + 1, self.line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        // Comments, which begin with a colon, and fields with other names are ignored.
        switch String(decoding: self.line[..<colon], as: UTF8.self) {
        case "data":
            guard self.data.count + value.count < self.bytesMax else { throw EventTooLarge(bytesMax: self.bytesMax) }
            if self.hasData { self.data.append(0x0A) }
            self.data.append(contentsOf: value)
            self.hasData = true
        case "event": self.name = String(decoding: value, as: UTF8.self)
        case "id": if !value.contains(0) { self.id = String(decoding: value, as: UTF8.self) }
        default: break
        }
        return nil
    }

    private mutating func eventEnded() -> ServerSentEvent? {
        defer {
            self.name = ""
            self.data = []
            self.hasData = false
        }
        guard self.hasData else { return nil }
        return ServerSentEvent(name: self.name.isEmpty ? "message" : self.name, id: self.id, data: self.data)
    }
}

/// A reader of the answer to a streaming request: first the head, and then events or the body of an error.
package struct EventStreamReader: Sendable {
    /// The maximum number of bytes kept of an error's body. A longer body is truncated, so its reason cannot be read.
    private static let refusalBytesMax = 1 << 16

    private var parser: ServerSentEventParser
    private var head: HTTPResponse?

    package init(eventBytesMax: Int = 1 << 20) {
        self.parser = ServerSentEventParser(bytesMax: eventBytesMax)
    }

    /// Stores the head of the answer.
    package mutating func began(_ head: HTTPResponse) {
        self.head = head
    }

    /// Processes the next bytes of the body.
    ///
    /// - Returns: the events that these bytes complete; none if the answer is an error.
    package mutating func received(
        _ bytes: [UInt8]
    ) throws(ServerSentEventParser.EventTooLarge) -> [ServerSentEvent] {
        guard self.head?.isSuccess != true else { return try self.parser.received(bytes) }
        let room = Self.refusalBytesMax - (self.head?.body.count ?? 0)
        self.head?.body.append(contentsOf: bytes.prefix(max(0, room)))
        return []
    }

    /// Returns a field of the head; nil if the head has not arrived or lacks the field.
    package func header(_ name: String) -> String? { self.head?.header(name) }

    /// Returns the final response, with the stored body if the answer is an error.
    package func whole(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        if let head = self.head { response.body = head.body }
        return response
    }
}
