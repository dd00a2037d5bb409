import Bytes
import LaunchPolicy

extension JSONWriter {
    /// One line of a simulation's output, without a line end: a JSON object that begins with a moment and a device.
    ///
    /// - Parameter writeEvent: appends the name of the event as a string, and then its members.
    static func line(at moment: Instant, device: String, _ writeEvent: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("t")
        moment.seconds.withByteView { writer.raw($0) }
        writer.key("device")
        writer.string(device)
        writer.key("event")
        writeEvent(&writer)
        writer.endObject()
        return writer.buffer.view.string
    }
}
