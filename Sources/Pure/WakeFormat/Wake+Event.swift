package import Bytes

extension Wake {
    /// Writes the event that tells of the wake on its worker's stream. The writer is to be empty.
    package func writeEvent(to writer: inout JSONWriter) {
        writer.buffer.append("event: wake\nid: ")
        self.id.write(to: &writer.buffer)
        writer.buffer.append("\ndata: ")
        self.write(to: &writer)
        writer.buffer.append("\n\n")
    }

    /// Writes the event that says that a wake has expired. The writer is to be empty.
    package static func writeExpiredEvent(_ wake: WakeID, to writer: inout JSONWriter) {
        writer.buffer.append("event: expired\ndata: ")
        writer.beginObject()
        writer.key("wake")
        writer.hex { wake.write(to: &$0) }
        writer.endObject()
        writer.buffer.append("\n\n")
    }
}
