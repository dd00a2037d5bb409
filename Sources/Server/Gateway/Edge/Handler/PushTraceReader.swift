import Engine
package import HTTPTransport
package import Wire

/// Reads the traces that pushes, and submissions of background tasks, belong to from their heads.
package struct PushTraceReader: ~Copyable {
    /// What was read last.
    private var bytes = ByteBuffer()

    package init() {}

    /// The trace that a push with a `traceparent` belongs to, as `PushTrace` keeps it; empty when the header is not as
    /// the W3C text has it. Valid until the next call.
    ///
    /// As that text wants it a `traceparent` that is malformed or comes twice is ignored, with everything that belongs
    /// to it; a `tracestate` that is too long, comes twice or holds what no header may is ignored alone.
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
