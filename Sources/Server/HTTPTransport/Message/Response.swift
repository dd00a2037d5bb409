package import Wire

/// The head of a response: made once, filled anew for every answer.
///
/// It is kept as the field block that HTTP/2 sends, so that a push's answer is written once; HTTP/1 takes it apart.
package final class Response {
    private(set) var status = 200
    /// The status and all fields, as `FieldEncoder` writes them.
    package private(set) var block = ByteBuffer()
    /// Where the fields begin behind the status.
    private var fieldsStart = 0

    package init() {
        self.begin(status: 200)
    }

    /// Forgets every field and starts over with `status` (200...999).
    package func begin(status: Int) {
        precondition(status >= 200 && status <= 999, "a final status has three digits")
        self.status = status
        self.block.removeAll()
        FieldEncoder.append(status: status, to: &self.block)
        self.fieldsStart = self.block.count
    }

    /// Starts over as the head of an event stream, which proxies must pass on at once: nginx buffers every response
    /// without `x-accel-buffering: no`, and a proxy that compresses holds events back.
    package func beginEventStream() {
        self.begin(status: 200)
        self.add("content-type", "text/event-stream")
        self.add("cache-control", "no-cache, no-transform")
        self.add("x-accel-buffering", "no")
    }

    /// Adds a field; the value is copied.
    ///
    /// - `name`: the name, in lower case.
    package func add(_ name: StaticString, _ value: ByteView) {
        FieldEncoder.append(ByteView(name), value, to: &self.block)
    }

    package func add(_ name: StaticString, _ value: StaticString) {
        FieldEncoder.append(ByteView(name), ByteView(value), to: &self.block)
    }

    /// Adds a field whose value, of at most 126 bytes, `write` appends.
    package func add(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        FieldEncoder.append(ByteView(name), to: &self.block, write)
    }

    /// Adds a field whose value is a decimal number.
    package func add(_ name: StaticString, _ value: Int64) {
        FieldEncoder.append(ByteView(name), to: &self.block) { $0.appendDecimal(value) }
    }

    /// Calls `body` with the name and the value of each field behind the status, valid during the call.
    package func forEachField(_ body: (ByteView, ByteView) -> Void) {
        FieldEncoder.forEachField(of: self.block.view.dropFirst(self.fieldsStart), body)
    }
}
