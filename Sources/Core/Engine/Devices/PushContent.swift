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
    static func byteCount(_ push: Push) -> Int {
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

/// The memory of pushes, or of what background tasks are named and entitled, counted for each topic and in all.
package struct ContentMemory: ~Copyable {
    /// The bytes of all topics together.
    package private(set) var bytes = 0
    /// By topic number.
    private var topicBytes: [Int] = []

    /// No pushes.
    package init() {}

    /// Counts for each of so many topics from now on.
    package mutating func grow(topicCount: Int) {
        while self.topicBytes.count < topicCount { self.topicBytes.append(0) }
    }

    /// Why there is no room for so many bytes more; nil while there is.
    ///
    /// - `topic`: nil for one that is not known yet, and has none.
    package func refusal(
        _ byteCount: Int,
        _ topic: TopicIndex?,
        bytesMax: Int,
        bytesPerTopicMax: Int
    ) -> Refusal? {
        let topicBytes = topic.map { self.topicBytes[Int($0.rawValue)] } ?? 0
        // Who takes more than a share of it is told so, also when others have taken the rest.
        if topicBytes + byteCount > bytesPerTopicMax { return .noMemoryForTopic }
        return self.bytes + byteCount > bytesMax ? .noMemory : nil
    }

    /// The content of a push of this topic is held from now on.
    package mutating func hold(_ content: PushContent, _ topic: TopicIndex) {
        self.change(by: content.byteCount, topic)
    }

    /// A topic holds so many bytes more, or fewer.
    mutating func change(by bytes: Int, _ topic: TopicIndex) {
        self.bytes += bytes
        self.topicBytes[Int(topic.rawValue)] += bytes
    }

    /// The bytes of one topic.
    package func bytes(_ topic: TopicIndex) -> Int { self.topicBytes[Int(topic.rawValue)] }

    /// Goes on from so many bytes of one topic, which somebody else has counted.
    package mutating func set(_ topic: TopicIndex, to bytes: Int) { self.topicBytes[Int(topic.rawValue)] = bytes }

    /// Goes on from so many bytes of all topics together, which somebody else has counted.
    package mutating func set(to bytes: Int) { self.bytes = bytes }

    /// Frees the content of a push of this topic, which nobody needs any more.
    package mutating func letGo(_ content: PushContent, _ topic: TopicIndex) {
        self.change(by: -content.byteCount, topic)
        content.deallocate()
    }
}

/// The trace that a push belongs to, and those of the pushes it stands for: a view of the bytes they are kept as.
///
/// All integers are little-endian: whether it has a trace of its own (1 byte), how many links there are (1), the bytes
/// of `tracestate` (2), how many links were dropped (4); then its own parent, the links, and `tracestate`. A parent or
/// link is trace id (16), parent id (8) and flags (1). No bytes at all are no trace: most pushes have none.
package struct PushTrace {
    /// The most links that are kept, the newest.
    package static let linksMax = 8
    /// The most bytes of `tracestate` that are kept; the W3C text asks for as many.
    package static let stateBytesMax = 512

    private static let headCount = 8
    private static let parentCount = 25

    private let bytes: ByteView

    /// - Returns: nil when there are no bytes, or none that `write` made.
    package init?(_ bytes: ByteView) {
        guard bytes.count >= Self.headCount, bytes[0] <= 1, bytes[1] <= Self.linksMax else { return nil }
        self.bytes = bytes
        guard self.stateStart + self.stateCount == bytes.count, self.stateCount <= Self.stateBytesMax else {
            return nil
        }
    }

    /// What the push's sender said; nil when it said nothing.
    package var parent: TraceParent? { self.bytes[0] == 0 ? nil : self.parent(at: Self.headCount) }

    /// The sender's `tracestate`; empty when there is none.
    package var state: ByteView { self.bytes.dropFirst(self.stateStart) }

    /// How many of the pushes it stands for have a trace that is kept.
    package var linkCount: Int { Int(self.bytes[1]) }

    /// How many more there were.
    package var linksDropped: UInt32 { UInt32(littleEndian: self.bytes.load(UInt32.self, at: 4)) }

    /// The trace of a push that it stands for, the newest at 0.
    package func link(_ index: Int) -> TraceParent {
        self.parent(at: Self.headCount + (Int(self.bytes[0]) + index) * Self.parentCount)
    }

    /// Appends the trace of a push that stands for itself alone.
    ///
    /// - `state`: at most `stateBytesMax` bytes.
    package static func write(_ parent: TraceParent, state: ByteView, to buffer: inout ByteBuffer) {
        self.writeHead(hasParent: true, links: 0, stateCount: state.count, dropped: 0, to: &buffer)
        self.write(parent, to: &buffer)
        buffer.append(state)
    }

    /// Appends the trace of a push that stands for an older one as well.
    ///
    /// - Parameter newer: nil when that push has no trace.
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
        buffer.appendLittleEndian(parent.trace.first)
        buffer.appendLittleEndian(parent.trace.second)
        buffer.appendLittleEndian(parent.parent)
        buffer.append(parent.flags)
    }

    private var stateCount: Int { Int(UInt16(littleEndian: self.bytes.load(UInt16.self, at: 2))) }

    private var stateStart: Int {
        Self.headCount + (Int(self.bytes[0]) + self.linkCount) * Self.parentCount
    }

    private func parent(at start: Int) -> TraceParent {
        TraceParent(
            trace: .init(first: self.bytes.word(at: start), second: self.bytes.word(at: start + 8)),
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

/// Puts together the traces of pushes that take the place of others.
struct TraceJoiner: ~Copyable {
    /// Where they are put together.
    private var joined = ByteBuffer()

    /// The content of an arriving push, with the traces of a waiting one that it takes the place of.
    mutating func content(of push: Push, inPlaceOf older: PushContent?) -> PushContent {
        var trace = push.trace
        if let older = older.flatMap({ PushTrace($0.trace) }) { trace = self.join(PushTrace(trace), older) }
        return PushContent(apnsID: push.apnsID, collapseID: push.collapseID, payload: push.payload, trace: trace)
    }

    /// What is in `newer`, with the traces of an older push that is coalesced into it; nil when that has none.
    mutating func content(of newer: PushContent, inPlaceOf older: PushContent) -> PushContent? {
        guard let trace = PushTrace(older.trace) else { return nil }
        return PushContent(
            apnsID: newer.apnsID,
            collapseID: newer.collapseID,
            payload: newer.payload,
            trace: self.join(PushTrace(newer.trace), trace)
        )
    }

    /// Both traces in one; valid until the next call.
    private mutating func join(_ newer: PushTrace?, _ older: PushTrace) -> ByteView {
        self.joined.removeAll()
        PushTrace.write(newer, standingFor: older, to: &self.joined)
        return self.joined.view
    }
}
