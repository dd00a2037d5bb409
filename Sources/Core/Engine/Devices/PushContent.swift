package import Policy
package import Wire

/// What a push carries: its apns-id, collapse id, payload and trace, in one block of memory.
///
/// A value is a reference with one owner, who calls `deallocate` once. The policy carries it as a `PushHandle`.
@safe
package struct PushContent {
    private struct Header {
        let apnsID: APNsID
        let collapseIDCount: UInt16
        /// The bytes of the trace; the count stands where alignment leaves room.
        let traceCount: UInt16
        let payloadCount: UInt32
    }

    private let base: UnsafeMutableRawPointer

    /// Copies the parts into a block of their own.
    ///
    /// - `collapseID`: at most 64 bytes, empty when there is none.
    /// - `trace`: what `PushTrace` keeps, empty when there is none.
    package init(apnsID: APNsID, collapseID: ByteView, payload: ByteView, trace: ByteView = ByteView()) {
        let size = Self.byteCount(
            collapseIDCount: collapseID.count,
            payloadCount: payload.count,
            traceCount: trace.count
        )
        unsafe self.base = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
        let header = Header(
            apnsID: apnsID,
            collapseIDCount: UInt16(collapseID.count),
            traceCount: UInt16(trace.count),
            payloadCount: UInt32(payload.count)
        )
        unsafe self.base.storeBytes(of: header, as: Header.self)
        self.write(collapseID, at: 0)
        self.write(payload, at: collapseID.count)
        self.write(trace, at: collapseID.count + payload.count)
    }

    /// The content behind a handle that `handle` gave; nil for the handle of no push.
    package init?(_ handle: PushHandle) {
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: UInt(handle.rawValue)) else { return nil }
        unsafe self.base = base
    }

    /// The content as the policy carries it.
    package var handle: PushHandle {
        unsafe PushHandle(rawValue: UInt64(UInt(bitPattern: self.base)))
    }

    package var apnsID: APNsID { self.header.apnsID }

    /// Empty when the push has none; valid until `deallocate`.
    package var collapseID: ByteView {
        self.bytes(from: 0, count: Int(self.header.collapseIDCount))
    }

    /// The accepted JSON; valid until `deallocate`.
    package var payload: ByteView {
        self.bytes(from: Int(self.header.collapseIDCount), count: Int(self.header.payloadCount))
    }

    /// The traces it belongs to, for `PushTrace` to read; empty when there are none, valid until `deallocate`.
    package var trace: ByteView {
        let header = self.header
        return self.bytes(
            from: Int(header.collapseIDCount) + Int(header.payloadCount),
            count: Int(header.traceCount)
        )
    }

    /// The memory it takes.
    var byteCount: Int {
        let header = self.header
        return Self.byteCount(
            collapseIDCount: Int(header.collapseIDCount),
            payloadCount: Int(header.payloadCount),
            traceCount: Int(header.traceCount)
        )
    }

    /// The memory that the content of a push would take.
    static func byteCount(_ push: IncomingPush) -> Int {
        Self.byteCount(
            collapseIDCount: push.collapseID.count,
            payloadCount: push.payload.count,
            traceCount: push.trace.count
        )
    }

    private static func byteCount(collapseIDCount: Int, payloadCount: Int, traceCount: Int) -> Int {
        MemoryLayout<Header>.size + collapseIDCount + payloadCount + traceCount
    }

    package func deallocate() {
        unsafe self.base.deallocate()
    }

    private func write(_ part: ByteView, at start: Int) {
        guard let source = unsafe part.buffer.baseAddress else { return }
        unsafe (self.base + MemoryLayout<Header>.size + start).copyMemory(from: source, byteCount: part.count)
    }

    private var header: Header {
        unsafe self.base.load(as: Header.self)
    }

    private func bytes(from start: Int, count: Int) -> ByteView {
        unsafe ByteView(UnsafeRawBufferPointer(start: self.base + MemoryLayout<Header>.size + start, count: count))
    }
}
