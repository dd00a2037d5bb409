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
