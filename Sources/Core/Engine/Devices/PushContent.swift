package import Policy
package import Wire

/// The content of a push: its apns-id, collapse id, payload and trace, in one block of memory.
///
/// A value is a reference with one owner, which calls `deallocate` once. The launch policy carries the reference as a
/// `PushHandle`.
@safe
package struct PushContent {
    private struct Header {
        let apnsID: APNsID
        let collapseIDCount: UInt16
        /// The size of the trace in bytes. At this position, the field takes no additional memory.
        let traceCount: UInt16
        let payloadCount: UInt32

        /// The size of the memory block in bytes.
        var byteCount: Int {
            MemoryLayout<Header>.size + Int(self.collapseIDCount) + Int(self.payloadCount) + Int(self.traceCount)
        }
    }

    private let base: UnsafeMutableRawPointer

    /// Copies the parts into a new block.
    ///
    /// - `collapseID`: at most 64 bytes; empty if there is none.
    /// - `trace`: the stored form of a `PushTrace`; empty if there is none.
    package init(apnsID: APNsID, collapseID: ByteView, payload: ByteView, trace: ByteView = ByteView()) {
        let header = Header(
            apnsID: apnsID,
            collapseIDCount: UInt16(collapseID.count),
            traceCount: UInt16(trace.count),
            payloadCount: UInt32(payload.count)
        )
        unsafe self.base = UnsafeMutableRawPointer.allocate(byteCount: header.byteCount, alignment: 8)
        unsafe self.base.storeBytes(of: header, as: Header.self)
        self.write(collapseID, at: 0)
        self.write(payload, at: collapseID.count)
        self.write(trace, at: collapseID.count + payload.count)
    }

    /// Creates the reference from a handle; nil for `PushHandle.none`.
    package init?(_ handle: PushHandle) {
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: UInt(handle.rawValue)) else { return nil }
        unsafe self.base = base
    }

    /// The content in the form that the policy carries.
    package var handle: PushHandle {
        unsafe PushHandle(rawValue: UInt64(UInt(bitPattern: self.base)))
    }

    package var apnsID: APNsID { self.header.apnsID }

    /// The collapse id; empty if there is none. Valid until `deallocate`.
    package var collapseID: ByteView {
        self.bytes(from: 0, count: Int(self.header.collapseIDCount))
    }

    /// The accepted JSON; valid until `deallocate`.
    package var payload: ByteView {
        self.bytes(from: Int(self.header.collapseIDCount), count: Int(self.header.payloadCount))
    }

    /// The traces of the push in the form of `PushTrace`; empty if there are none. Valid until `deallocate`.
    package var trace: ByteView {
        let header = self.header
        return self.bytes(
            from: Int(header.collapseIDCount) + Int(header.payloadCount),
            count: Int(header.traceCount)
        )
    }

    /// The size of the memory block in bytes.
    var byteCount: Int { self.header.byteCount }

    /// Returns the size of the memory block for the content of a push, in bytes.
    static func byteCount(_ push: Push) -> Int {
        MemoryLayout<Header>.size + push.collapseID.count + push.payload.count + push.trace.count
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

/// Memory used by pushes, or by the texts of background tasks, per topic and in total.
package struct ContentMemory: ~Copyable {
    /// The bytes of all topics together.
    package private(set) var bytes = 0
    /// Bytes by topic number.
    private var topicBytes: [Int] = []

    /// Creates an empty account.
    package init() {}

    /// Adds topics up to `topicCount`.
    package mutating func grow(topicCount: Int) {
        while self.topicBytes.count < topicCount { self.topicBytes.append(0) }
    }

    /// Returns the refusal of `byteCount` more bytes; nil if there is enough memory.
    ///
    /// - `topic`: nil for a topic that does not exist yet.
    package func refusal(
        _ byteCount: Int,
        _ topic: TopicIndex?,
        bytesMax: Int,
        bytesPerTopicMax: Int
    ) -> Refusal? {
        let topicBytes = topic.map { self.topicBytes[Int($0.rawValue)] } ?? 0
        // Check the limit of the topic first, so that a topic beyond its share is refused with its own limit.
        if topicBytes + byteCount > bytesPerTopicMax { return .noMemoryForTopic }
        return self.bytes + byteCount > bytesMax ? .noMemory : nil
    }

    /// Counts the content of a push of this topic.
    package mutating func hold(_ content: PushContent, _ topic: TopicIndex) {
        self.change(by: content.byteCount, topic)
    }

    /// Adds `bytes` to the topic; negative for a decrease.
    mutating func change(by bytes: Int, _ topic: TopicIndex) {
        self.bytes += bytes
        self.topicBytes[Int(topic.rawValue)] += bytes
    }

    /// Returns the bytes of one topic.
    package func bytes(_ topic: TopicIndex) -> Int { self.topicBytes[Int(topic.rawValue)] }

    /// Replaces the bytes of one topic.
    package mutating func set(_ topic: TopicIndex, to bytes: Int) { self.topicBytes[Int(topic.rawValue)] = bytes }

    /// Replaces the bytes of all topics together.
    package mutating func set(to bytes: Int) { self.bytes = bytes }

    /// Frees the content of a push of this topic.
    package mutating func letGo(_ content: PushContent, _ topic: TopicIndex) {
        self.change(by: -content.byteCount, topic)
        content.deallocate()
    }
}

/// The trace of a push, and the traces of the pushes coalesced into it: a view of their stored form.
///
/// Integers are little-endian, and sizes are in bytes. The fields:
///
/// - 1 if the push has its own trace, else 0 (1);
/// - the number of links (1), the size of `tracestate` (2), the number of dropped links (4);
/// - the push's own parent, the links, and `tracestate`.
///
/// A parent or link is trace id (16), parent id (8) and flags (1). A push without traces has no bytes.
package struct PushTrace {
    /// The maximum number of links. The newest links are retained.
    package static let linksMax = 8
    /// The maximum size of `tracestate` in bytes, as the W3C recommendation requires.
    package static let stateBytesMax = 512

    private static let headCount = 8
    private static let parentCount = 25

    private let bytes: ByteView

    /// - Returns: nil if `bytes` is empty or malformed.
    package init?(_ bytes: ByteView) {
        guard bytes.count >= Self.headCount, bytes[0] <= 1, bytes[1] <= Self.linksMax else { return nil }
        self.bytes = bytes
        guard self.stateStart + self.stateCount == bytes.count, self.stateCount <= Self.stateBytesMax else {
            return nil
        }
    }

    /// The trace context that the client sent; nil if there is none.
    package var parent: TraceParent? { self.bytes[0] == 0 ? nil : self.parent(at: Self.headCount) }

    /// The `tracestate` that the client sent; empty if there is none.
    package var state: ByteView { self.bytes.dropFirst(self.stateStart) }

    /// The number of retained traces of coalesced pushes.
    package var linkCount: Int { Int(self.bytes[1]) }

    /// The number of dropped traces of coalesced pushes.
    package var linksDropped: UInt32 { UInt32(littleEndian: self.bytes.load(UInt32.self, at: 4)) }

    /// Returns the trace of a coalesced push; index 0 is the newest.
    package func link(_ index: Int) -> TraceParent {
        self.parent(at: Self.headCount + (Int(self.bytes[0]) + index) * Self.parentCount)
    }

    /// Appends the trace of a push without coalesced pushes.
    ///
    /// - `state`: at most `stateBytesMax` bytes.
    package static func write(_ parent: TraceParent, state: ByteView, to buffer: inout ByteBuffer) {
        self.writeHead(hasParent: true, links: 0, stateCount: state.count, dropped: 0, to: &buffer)
        self.write(parent, to: &buffer)
        buffer.append(state)
    }

    /// Appends the trace of a push into which an older push is coalesced.
    ///
    /// - `newer`: the trace of the newer push; nil if it has none.
    static func write(_ newer: PushTrace?, standingFor older: PushTrace, to buffer: inout ByteBuffer) {
        var links = (0..<(newer?.linkCount ?? 0)).compactMap { newer?.link($0) }
        if let parent = older.parent { links.append(parent) }
        links += (0..<older.linkCount).map { older.link($0) }
        let excess = UInt32(max(0, links.count - self.linksMax))
        let dropped = (newer?.linksDropped ?? 0).addingSaturating(older.linksDropped).addingSaturating(excess)
        let kept = links.prefix(self.linksMax)
        let state = newer?.state ?? ByteView()
        self.writeHead(
            hasParent: newer?.parent != nil,
            links: kept.count,
            stateCount: state.count,
            dropped: dropped,
            to: &buffer
        )
        if let parent = newer?.parent { self.write(parent, to: &buffer) }
        for link in kept { self.write(link, to: &buffer) }
        buffer.append(state)
    }

    private static func writeHead(
        hasParent: Bool,
        links: Int,
        stateCount: Int,
        dropped: UInt32,
        to buffer: inout ByteBuffer
    ) {
        buffer.append(hasParent ? 1 : 0)
        buffer.append(UInt8(links))
        buffer.appendLittleEndian(UInt16(stateCount))
        buffer.appendLittleEndian(dropped)
    }

    private static func write(_ parent: TraceParent, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(parent.first)
        buffer.appendLittleEndian(parent.second)
        buffer.appendLittleEndian(parent.parent)
        buffer.append(parent.flags)
    }

    private var stateCount: Int { Int(UInt16(littleEndian: self.bytes.load(UInt16.self, at: 2))) }

    private var stateStart: Int {
        Self.headCount + (Int(self.bytes[0]) + self.linkCount) * Self.parentCount
    }

    private func parent(at start: Int) -> TraceParent {
        TraceParent(
            first: self.bytes.word(at: start),
            second: self.bytes.word(at: start + 8),
            parent: self.bytes.word(at: start + 16),
            flags: self.bytes[start + 24]
        )
    }
}

extension UInt32 {
    fileprivate func addingSaturating(_ other: UInt32) -> UInt32 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}

/// Merges the traces of coalesced pushes.
struct TraceJoiner: ~Copyable {
    /// A buffer for the merged trace.
    private var joined = ByteBuffer()

    /// Returns the content of an arriving push, including the traces of the pending push that it replaces.
    mutating func content(of push: Push, inPlaceOf older: PushContent?) -> PushContent {
        var trace = push.trace
        if let older = older.flatMap({ PushTrace($0.trace) }) { trace = self.join(PushTrace(trace), older) }
        return PushContent(apnsID: push.apnsID, collapseID: push.collapseID, payload: push.payload, trace: trace)
    }

    /// Returns a copy of `newer` that includes the traces of `older`, which is coalesced into it; nil if `older` has
    /// none.
    mutating func content(of newer: PushContent, inPlaceOf older: PushContent) -> PushContent? {
        guard let trace = PushTrace(older.trace) else { return nil }
        return PushContent(
            apnsID: newer.apnsID,
            collapseID: newer.collapseID,
            payload: newer.payload,
            trace: self.join(PushTrace(newer.trace), trace)
        )
    }

    /// Merges both traces. The result is valid until the next call.
    private mutating func join(_ newer: PushTrace?, _ older: PushTrace) -> ByteView {
        self.joined.removeAll()
        PushTrace.write(newer, standingFor: older, to: &self.joined)
        return self.joined.view
    }
}
