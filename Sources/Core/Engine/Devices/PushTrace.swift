package import Wire

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
