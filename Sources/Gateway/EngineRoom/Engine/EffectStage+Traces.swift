import Bytes
import DeviceEngine

extension JSONWriter {
    /// The members of a wake that say which traces it belongs to; none when there are none.
    mutating func members(of trace: PushTrace) {
        if let parent = trace.parent {
            self.key("traceparent")
            self.hex { parent.write(to: &$0) }
        }
        if !trace.state.isEmpty {
            self.key("tracestate")
            self.string(trace.state)
        }
        guard trace.linkCount > 0 else { return }
        self.key("traceLinks")
        self.beginArray()
        for index in 0..<trace.linkCount { self.hex { trace.link(index).write(to: &$0) } }
        self.endArray()
        guard trace.linksDropped > 0 else { return }
        self.key("traceLinksDropped")
        self.integer(trace.linksDropped)
    }
}
