import Engine
package import HTTPTransport
package import Wire

/// Reads the traces of pushes, and of submissions of background tasks, from their headers.
package struct PushTraceReader: ~Copyable {
    /// The bytes of the trace that was read last.
    private var bytes = ByteBuffer()

    /// Returns the trace of a request in the form that `PushTrace` stores; empty if `traceparent` is absent or
    /// malformed. The view is valid until the next call.
    ///
    /// As the W3C recommendation requires, a `traceparent` that is malformed or repeated is ignored, together with the
    /// `tracestate`. If only the `tracestate` is too long, repeated or contains invalid characters, only the
    /// `tracestate` is ignored.
    package mutating func read(_ request: Request) -> ByteView {
        self.bytes.removeAll()
        var parent: TraceParent?
        var state = ByteView()
        var (parents, states) = (0, 0)
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "traceparent" {
                parents += 1
                parent = TraceParent(field.value)
            } else if field.name == "tracestate" {
                states += 1
                state = field.value
            }
        }
        guard parents == 1, let parent else { return ByteView() }
        PushTrace.write(parent, state: states == 1 && Self.isState(state) ? state : ByteView(), to: &self.bytes)
        return self.bytes.view
    }

    private static func isState(_ value: ByteView) -> Bool {
        value.count <= PushTrace.stateBytesMax
            && (0..<value.count).allSatisfy { value[$0] >= 0x20 && value[$0] < 0x7F }
    }
}
