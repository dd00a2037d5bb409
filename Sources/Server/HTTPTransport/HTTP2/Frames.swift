package import Wire

/// The first nine bytes of a frame: RFC 9113 §4.1.
package struct FrameHead {
    static let bytes = 9
    private static let data: UInt8 = 0
    private static let headers: UInt8 = 1
    private static let goAway: UInt8 = 7
    private static let continuation: UInt8 = 9
    private static let endStream: UInt8 = 0x01
    private static let endHeaders: UInt8 = 0x04
    private static let padded: UInt8 = 0x08
    private static let priority: UInt8 = 0x20

    private var payloadBytes: UInt32
    private var type: UInt8
    private var flags: UInt8
    /// The stream number and the reserved bit.
    private var stream: UInt32

    /// - Parameter bytes: at least nine bytes.
    @inline(__always)
    init(_ bytes: ByteView) {
        let first = UInt64(bigEndian: bytes.load(UInt64.self, at: 0))
        self.payloadBytes = UInt32(truncatingIfNeeded: first >> 40)
        self.type = UInt8(truncatingIfNeeded: first >> 32)
        self.flags = UInt8(truncatingIfNeeded: first >> 24)
        self.stream = UInt32(truncatingIfNeeded: first << 8) | UInt32(bytes[8])
    }

    /// The length of the payload in bytes.
    package var length: Int { Int(self.payloadBytes) }
    var isData: Bool { self.type == Self.data }
    var isHeaders: Bool { self.type == Self.headers }
    var isGoAway: Bool { self.type == Self.goAway }
    /// The number of the stream, without the reserved bit; 0 for the connection.
    package var streamNumber: Int32 { Int32(truncatingIfNeeded: self.stream & 0x7FFF_FFFF) }
    /// True if no CONTINUATION frame follows.
    var endsBlock: Bool { self.flags & Self.endHeaders != 0 }
    /// True if a DATA or HEADERS frame ends its stream; CONTINUATION frames of its block may follow.
    var endsStream: Bool { self.flags & Self.endStream != 0 }
    /// True if the payload of HEADERS begins with the length of its padding.
    var isPadded: Bool { self.isHeaders && self.flags & Self.padded != 0 }
    /// True if a DATA or HEADERS frame is flagged as padded but has no room for the length of the padding.
    package var isTooShortForPadding: Bool {
        self.length == 0 && self.flags & Self.padded != 0 && (self.isData || self.isHeaders)
    }
    /// True if five bytes of the obsolete priority precede the block.
    var hasPriority: Bool { self.isHeaders && self.flags & Self.priority != 0 }

    /// Returns true if the frame continues the block that `other` has begun.
    func continues(_ other: FrameHead) -> Bool {
        self.type == Self.continuation && self.streamNumber == other.streamNumber
    }

    /// Returns the same frame without its piece of a block.
    ///
    /// - Parameter endsBlock: true if libnghttp2 may treat the block as ended.
    func withoutBlock(endsBlock: Bool) -> FrameHead {
        var head = self
        head.payloadBytes = self.hasPriority ? 5 : 0
        if self.isHeaders { head.flags &= ~Self.padded }
        if !endsBlock { head.flags &= ~Self.endHeaders }
        return head
    }

    /// Returns the same frame with a payload of another length.
    func withLength(_ length: Int) -> FrameHead {
        var head = self
        head.payloadBytes = UInt32(length)
        return head
    }

    /// An empty CONTINUATION frame that ends the block of the stream.
    var end: FrameHead {
        var head = self
        head.payloadBytes = 0
        head.type = Self.continuation
        head.flags = Self.endHeaders
        return head
    }

    func write(to buffer: inout ByteBuffer) {
        let first = UInt64(self.length) << 40 | UInt64(self.type) << 32 | UInt64(self.flags) << 24
        buffer.append(memoryOf: (first | UInt64(self.stream >> 8)).bigEndian)
        buffer.append(UInt8(truncatingIfNeeded: self.stream))
    }
}

/// Separates the pieces of field blocks from the other received bytes, and reports the beginning of DATA frames.
///
/// A block consists of a HEADERS frame and the CONTINUATION frames after it: RFC 9113 §6.2 and §6.10.
@safe
package struct FrameCutter: ~Copyable {
    /// A part of the received bytes.
    package enum Part {
        /// Bytes of other frames, of the preface, or of a malformed frame.
        case other(ByteView)
        /// The received bytes of a piece of a block.
        case block(Piece)
        /// DATA outside of a block, or HEADERS that are too short: the frame's head, and the received bytes of the
        /// whole frame.
        case begun(FrameHead, ByteView)
    }

    /// The received bytes of the piece of a block in one frame.
    package struct Piece {
        let head: FrameHead
        /// The five bytes of the priority, which are not part of the block; may be empty.
        package let priority: ByteView
        /// The bytes of the block without priority and padding; valid as long as the bytes they were cut from.
        package let bytes: ByteView
        /// True if these are the first bytes of the frame's piece.
        package let beginsFrame: Bool
        /// True if these are the last bytes of the frame's piece.
        package let endsFrame: Bool

        var endsBlock: Bool { self.endsFrame && self.head.endsBlock }
    }

    private let frameBytesMax: Int
    /// The first bytes of a frame, too few to know where its block begins.
    private var partial = ByteBuffer()
    /// True if `partial` was returned.
    private var isPartialTaken = false
    /// The number of remaining bytes of the preface, or of a frame without a piece of a block.
    private var otherBytes = 24
    /// True if `otherBytes` belong to a GOAWAY frame. While no stream is open, libnghttp2 ignores all bytes after
    /// GOAWAY, but checks this only at the beginning of a call. So the part ends with the frame.
    private var isWithinGoAway = false
    /// The frame whose piece of a block is incomplete, and the number of remaining bytes of that piece.
    private var cut: FrameHead?
    private var cutBytes = 0
    /// The number of remaining bytes of the padding after the piece, which are dropped.
    private var padding = 0
    /// The last frame of a block that has not ended.
    private var unfinished: FrameHead?
    /// The number of frames whose heads are complete, and the ordinal of the frame that began the block.
    private var framesBegun = 0
    private var blockBegun = 0

    /// True if more of a block follows.
    var isWithinBlock: Bool { self.unfinished != nil || self.cut != nil }

    /// The number of the frame or field block that is incomplete, constant until it is complete; 0 if the next byte
    /// begins a frame. The preface counts as a frame.
    package var unfinishedFrame: Int {
        if self.isWithinBlock { return self.blockBegun }
        if !self.partial.isEmpty { return self.framesBegun + 1 }
        return self.otherBytes > 0 || self.padding > 0 ? max(1, self.framesBegun) : 0
    }

    /// Creates a cutter for a connection whose preface has not arrived.
    ///
    /// - Parameter frameBytesMax: the most bytes of a frame's payload; longer frames are passed to libnghttp2.
    package init(frameBytesMax: Int) {
        self.frameBytesMax = frameBytesMax
    }

    /// Returns the next part of the received bytes and removes it from `bytes`; nil if nothing is left. The part is
    /// valid until the next call.
    @inline(__always)
    package mutating func next(_ bytes: inout ByteView) -> Part? {
        if let cut = self.cut { return self.goOn(cut, &bytes) }
        if self.padding > 0 { self.padding -= bytes.takeFirst(min(self.padding, bytes.count)).count }
        guard self.partial.isEmpty else { return self.nextOfPartial(&bytes) }
        var count = min(self.otherBytes, bytes.count)
        self.otherBytes -= count
        while self.otherBytes == 0, !self.isWithinGoAway, bytes.count - count >= FrameHead.bytes {
            let head = FrameHead(bytes.dropFirst(count))
            if self.hasPiece(head) {
                guard count == 0, bytes.count >= Self.bytesBeforeBlock(head) else { break }
                self.framesBegun += 1
                if let piece = self.begin(head, bytes, &bytes) { return .block(piece) }
            } else if self.isReported(head) {
                guard count == 0 else { break }
                self.framesBegun += 1
                let here = min(FrameHead.bytes + head.length, bytes.count)
                self.otherBytes = FrameHead.bytes + head.length - here
                return .begun(head, bytes.takeFirst(here))
            } else {
                self.framesBegun += 1
                self.isWithinGoAway = head.isGoAway
            }
            let here = min(FrameHead.bytes + head.length, bytes.count - count)
            self.otherBytes = FrameHead.bytes + head.length - here
            count += here
        }
        guard count == 0 else {
            if self.otherBytes == 0 { self.isWithinGoAway = false }
            return .other(bytes.takeFirst(count))
        }
        self.partial.append(bytes)
        bytes = ByteView()
        return nil
    }

    /// Continues a frame whose beginning was kept.
    @inline(never)
    private mutating func nextOfPartial(_ bytes: inout ByteView) -> Part? {
        if self.isPartialTaken {
            self.isPartialTaken = false
            self.partial.free()
            return self.next(&bytes)
        }
        guard self.fill(to: FrameHead.bytes, &bytes) else { return nil }
        let head = FrameHead(self.partial.view)
        if self.hasPiece(head) {
            guard self.fill(to: Self.bytesBeforeBlock(head), &bytes) else { return nil }
            self.framesBegun += 1
            self.isPartialTaken = true
            if let piece = self.begin(head, self.partial.view, &bytes) { return .block(piece) }
        } else {
            self.framesBegun += 1
            self.isPartialTaken = true
        }
        self.otherBytes = FrameHead.bytes + head.length - self.partial.count
        self.isWithinGoAway = head.isGoAway && self.otherBytes > 0
        return self.isReported(head) ? .begun(head, self.partial.view) : .other(self.partial.view)
    }

    /// - Returns: true if `partial` holds `count` bytes of the frame.
    private mutating func fill(to count: Int, _ bytes: inout ByteView) -> Bool {
        self.partial.append(bytes.takeFirst(min(bytes.count, max(0, count - self.partial.count))))
        return self.partial.count >= count
    }

    /// Starts a frame that has a piece of a block.
    ///
    /// - Parameter frame: the frame at least up to the piece; if it is `bytes`, these bytes are removed from it.
    /// - Returns: nil if the frame is malformed.
    @inline(__always)
    private mutating func begin(_ head: FrameHead, _ frame: ByteView, _ bytes: inout ByteView) -> Piece? {
        let before = Self.bytesBeforeBlock(head)
        let padding = head.isPadded ? Int(frame[FrameHead.bytes]) : 0
        let cutBytes = FrameHead.bytes + head.length - before - padding
        guard cutBytes >= 0 else { return nil }
        if self.partial.isEmpty { _ = bytes.takeFirst(before) }
        self.padding = padding
        if self.unfinished == nil { self.blockBegun = self.framesBegun }
        self.unfinished = head.endsBlock ? nil : head
        let priorityBytes = head.hasPriority ? 5 : 0
        let priority = frame.slice(before - priorityBytes, count: priorityBytes)
        let piece = bytes.takeFirst(min(cutBytes, bytes.count))
        self.cutBytes = cutBytes - piece.count
        let endsFrame = self.cutBytes == 0
        self.cut = endsFrame ? nil : head
        return Piece(head: head, priority: priority, bytes: piece, beginsFrame: true, endsFrame: endsFrame)
    }

    private mutating func goOn(_ head: FrameHead, _ bytes: inout ByteView) -> Part? {
        guard bytes.count > 0 else { return nil }
        let piece = bytes.takeFirst(min(self.cutBytes, bytes.count))
        self.cutBytes -= piece.count
        let endsFrame = self.cutBytes == 0
        if endsFrame { self.cut = nil }
        return .block(
            Piece(head: head, priority: ByteView(), bytes: piece, beginsFrame: false, endsFrame: endsFrame)
        )
    }

    /// Returns true if the frame has a piece of a block, and its head is valid.
    @inline(__always)
    private func hasPiece(_ head: FrameHead) -> Bool {
        guard self.unfinished.map(head.continues) ?? head.isHeaders else { return false }
        return head.length <= self.frameBytesMax && FrameHead.bytes + head.length >= Self.bytesBeforeBlock(head)
    }

    /// Returns true if the session must see the head of a frame without a piece of a block.
    @inline(__always)
    private func isReported(_ head: FrameHead) -> Bool {
        self.unfinished == nil && (head.isData || head.isTooShortForPadding)
    }

    @inline(__always)
    private static func bytesBeforeBlock(_ head: FrameHead) -> Int {
        FrameHead.bytes + (head.isPadded ? 1 : 0) + (head.hasPriority ? 5 : 0)
    }
}

/// The frame or field block that has arrived only in part.
package struct UnfinishedFrame {
    /// The value of `FrameCutter.unfinishedFrame`; 0 for none.
    private var number = 0
    /// The time when that number was first seen, in monotonic milliseconds.
    private var since: Int64 = 0

    /// Creates the state without an unfinished frame.
    package init() {}

    /// Records the unfinished frame.
    ///
    /// - Parameters:
    ///   - number: the value of `FrameCutter.unfinishedFrame`.
    ///   - now: monotonic milliseconds.
    @inline(__always)
    package mutating func note(_ number: Int, now: Int64) {
        guard number != self.number else { return }
        self.number = number
        self.since = now
    }

    /// The time since which a frame is unfinished, in monotonic milliseconds; nil if none is.
    package var unfinishedSince: Int64? { self.number == 0 ? nil : self.since }
}

extension ByteView {
    /// Removes and returns the first `count` bytes.
    @inline(__always)
    fileprivate mutating func takeFirst(_ count: Int) -> ByteView {
        let first = self.slice(0, count: count)
        self = self.slice(count, count: self.count - count)
        return first
    }
}

/// The fields of answers that libnghttp2 has not sent yet, in the order of submission.
///
/// libnghttp2 sends HEADERS frames without fields; the fields are added when a frame is sent.
@safe
struct AnswerHeads: ~Copyable {
    private static let prefixBytes = 8

    /// For each head the stream number, the length of its fields, and the fields.
    private var queue = ByteBuffer()

    /// Adds the HPACK-coded fields of the head of an answer or of an interim answer.
    mutating func append(_ block: ByteView, for number: Int32) {
        precondition(block.count < 1 << 14, "the fields of a response fit into one frame")
        self.queue.append(memoryOf: number)
        self.queue.append(memoryOf: Int32(block.count))
        self.queue.append(block)
    }

    /// Appends an empty HEADERS frame of libnghttp2 with the fields of its answer.
    ///
    /// The bytes that libnghttp2 has put into the block are kept: they announce the table size that the block expects.
    mutating func move(into frame: ByteView, to output: inout ByteBuffer) {
        let head = FrameHead(frame)
        let fields = self.take(for: head.streamNumber)
        head.withLength(frame.count - FrameHead.bytes + fields.count).write(to: &output)
        output.append(frame.dropFirst(FrameHead.bytes), fields)
    }

    /// Drops the fields of closed streams, and returns those of the answer on the stream; valid until the queue
    /// changes.
    private mutating func take(for number: Int32) -> ByteView {
        while true {
            let queued = self.queue.view
            let count = Int(queued.load(Int32.self, at: 4))
            let isWanted = queued.load(Int32.self, at: 0) == number
            let fields = queued.slice(Self.prefixBytes, count: count)
            self.queue.consume(Self.prefixBytes + count)
            if isWanted { return fields }
        }
    }

    /// Frees the memory for future heads if the queue is empty.
    mutating func freeSpareMemory() {
        if self.queue.isEmpty { self.queue.free() }
    }

    /// Removes all heads: libnghttp2 has nothing more to send.
    mutating func removeAll() {
        self.queue.removeAll(keepingBytesMax: 4096)
    }
}
