import Bytes
import WakeFormat

extension WakeTrace {
    /// The headers that say which trace a wake belongs to: those of the push whose payload it carries.
    var headers: [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        if let parent = self.parent {
            var text = ByteBuffer()
            parent.write(to: &text)
            headers.append((name: "traceparent", value: text.view.string))
        }
        if !self.state.isEmpty { headers.append((name: "tracestate", value: self.state.string)) }
        return headers
    }
}
