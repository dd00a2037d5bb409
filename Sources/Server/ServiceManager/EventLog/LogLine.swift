/// One thing that is logged.
package struct LogLine: Hashable, Sendable {
    /// When it happened, in milliseconds since 1970.
    package let time: Int64
    package let event: GatewayEvent
    /// What varies; never a device token, a credential or a payload.
    package var fields: [String: String]

    /// The most characters of a field's value that are written.
    package static let valueCountMax = 1024

    package init(time: Int64, event: GatewayEvent, fields: [String: String]) {
        self.time = time
        self.event = event
        self.fields = fields.mapValues { value in
            value.count <= Self.valueCountMax ? value : "\(value.prefix(Self.valueCountMax))…"
        }
    }
}

/// The least important log line that is written, and how much a line matters.
package enum LogLevel: String, CaseIterable, Sendable {
    case debug, info, warning, error
}

/// How a log line is written: for people, or as one JSON object.
package enum LogFormat: String, CaseIterable, Sendable {
    case text, json
}

/// Where lines go.
package protocol LogSink: Sendable {
    /// Writes a line; it may take its time.
    ///
    /// - Returns: false when the line is lost.
    func write(_ line: LogLine, _ format: LogFormat) -> Bool
}
