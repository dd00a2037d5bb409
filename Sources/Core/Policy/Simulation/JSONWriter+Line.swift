import Wire

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

extension Instant {
    /// A moment of a trace, which is never before 0, in seconds with the decimals it needs.
    var seconds: String {
        let (whole, rest) = self.milliseconds.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return String(whole) }
        var decimals = Array(String(1000 + rest).utf8.dropFirst())
        while decimals.last == UInt8(ascii: "0") { decimals.removeLast() }
        return "\(whole)." + String(decoding: decimals, as: UTF8.self)
    }
}
