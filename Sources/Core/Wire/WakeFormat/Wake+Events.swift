/// The events of a worker's stream besides wakes, as a gateway writes them. The writer is to be empty.
extension Wake {
    /// Writes the event that says that a wake's time is over, and why.
    package static func writeExpiredEvent(_ wake: WakeID, reason: ExpirationReason, to writer: inout JSONWriter) {
        writer.buffer.append("event: expired\ndata: ")
        writer.beginObject()
        writer.key("wake")
        writer.hex { wake.write(to: &$0) }
        writer.key("reason")
        writer.string(reason.rawValue)
        writer.endObject()
        writer.buffer.append("\n\n")
    }

    /// Writes the event that tells of the conditions of a device.
    ///
    /// - `members`: writes the members of all conditions.
    package static func writeConditionsEvent(
        _ device: DeviceToken,
        to writer: inout JSONWriter,
        members: (inout JSONWriter) -> Void
    ) {
        writer.buffer.append("event: conditions\ndata: ")
        writer.beginObject()
        writer.key("device")
        writer.hex { device.writeHex(to: &$0) }
        members(&writer)
        writer.endObject()
        writer.buffer.append("\n\n")
    }
}
