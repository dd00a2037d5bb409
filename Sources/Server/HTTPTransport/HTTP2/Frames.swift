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
    /// The stream number with the reserved bit.
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
    /// True if no CONTINUATION frame follows this frame.
    var endsBlock: Bool { self.flags & Self.endHeaders != 0 }
    /// True if a DATA or HEADERS frame is the last of its stream, apart from CONTINUATION frames of its block.
    var endsStream: Bool { self.flags & Self.endStream != 0 }
    /// True if the payload of a HEADERS frame begins with the length of its padding.
    var isPadded: Bool { self.isHeaders && self.flags & Self.padded != 0 }
    /// True if a DATA or HEADERS frame has the flag for padding but no byte for its length.
    package var isTooShortForPadding: Bool {
        self.length == 0 && self.flags & Self.padded != 0 && (self.isData || self.isHeaders)
    }
    /// True if the obsolete priority (five bytes) precedes the block.
    var hasPriority: Bool { self.isHeaders && self.flags & Self.priority != 0 }

    /// Returns true if the frame continues the block of `other`.
    func continues(_ other: FrameHead) -> Bool {
        self.type == Self.continuation && self.streamNumber == other.streamNumber
    }

    /// Returns the frame without its part of a block.
    ///
    /// - Parameter endsBlock: true if libnghttp2 may consider the block complete.
    func withoutBlock(endsBlock: Bool) -> FrameHead {
        var head = self
        head.payloadBytes = self.hasPriority ? 5 : 0
        if self.isHeaders { head.flags &= ~Self.padded }
        if !endsBlock { head.flags &= ~Self.endHeaders }
        return head
    }

    /// Returns the frame with another payload length.
    func withLength(_ length: Int) -> FrameHead {
        var head = self
        head.payloadBytes = UInt32(length)
        return head
    }

    /// An empty CONTINUATION frame that ends the block of this stream.
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

/// Separates field blocks from the other received bytes, and reports the start of DATA frames.
///
/// A block consists of a HEADERS frame and the following CONTINUATION frames: RFC 9113 §6.2 and §6.10. A *piece* is the
/// part of a block in one frame, or the received bytes of that part.
@safe
package struct FrameCutter: ~Copyable {
    /// A part of the received bytes.
    package enum Part {
        /// Bytes of another frame, of the preface, or of a malformed frame.
        case other(ByteView)
        /// Received bytes of a block.
        case block(Piece)
        /// A DATA frame outside of a block, or a HEADERS frame that is too short: its head, and its received bytes.
        case begun(FrameHead, ByteView)
    }

    /// The received bytes of the part of a block in one frame.
    package struct Piece {
        let head: FrameHead
        /// The five bytes of the priority, which are not part of the block; empty if there is none.
        package let priority: ByteView
        /// The bytes of the block, without priority and padding. They are valid as long as the received bytes.
        package let bytes: ByteView
        /// True if the piece begins with the frame's first bytes of the block.
        package let beginsFrame: Bool
        /// True if the piece ends with the frame's last bytes of the block.
        package let endsFrame: Bool

        var endsBlock: Bool { self.endsFrame && self.head.endsBlock }
    }

    private let frameBytesMax: Int
    /// The first bytes of a frame, if they are too few to find the start of its block.
    private var partial = ByteBuffer()
    /// True if `partial` was returned by `next`.
    private var isPartialTaken = false
    /// The number of remaining bytes of the preface, or of a frame without a block.
    private var otherBytes = 24
    /// True if `otherBytes` belong to a GOAWAY frame. While no stream is open, libnghttp2 ignores all bytes after a
    /// GOAWAY frame, but checks this only at the start of a call. The part therefore ends with this frame.
    private var isWithinGoAway = false
    /// The frame whose piece is incomplete, and the number of remaining bytes of that piece.
    private var cut: FrameHead?
    private var cutBytes = 0
    /// The number of remaining bytes of the padding after the piece. They are discarded.
    private var padding = 0
    /// The last frame of a block that is incomplete.
    private var unfinished: FrameHead?
    /// The number of frames whose heads have arrived, and the value of this number when the current block began.
    private var framesBegun = 0
    private var blockBegun = 0

    /// True if more bytes of a block follow.
    var isWithinBlock: Bool { self.unfinished != nil || self.cut != nil }

    /// The number of the incomplete frame or field block; 0 if the next byte begins a frame. The value is constant
    /// until the frame or block is complete. The preface counts as a frame.
    package var unfinishedFrame: Int {
        if self.isWithinBlock { return self.blockBegun }
        if !self.partial.isEmpty { return self.framesBegun + 1 }
        return self.otherBytes > 0 || self.padding > 0 ? max(1, self.framesBegun) : 0
    }

    /// Creates a cutter for a connection whose preface has not arrived.
    ///
    /// - Parameter frameBytesMax: the maximum payload size of a frame in bytes. Larger frames are passed to libnghttp2.
    package init(frameBytesMax: Int) {
        self.frameBytesMax = frameBytesMax
    }

    /// Removes and returns the next part of the received bytes; nil if no part is left. The part is valid until the
    /// next call.
    @inline(__always)
    package mutating func next(_ bytes: inout ByteView) -> Part? {
        if let cut = self.cut { return self.resume(cut, &bytes) }
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

    /// Continues a frame whose first bytes are in `partial`.
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

    /// Moves bytes to `partial`.
    ///
    /// - Returns: true if `partial` has `count` bytes of the frame.
    private mutating func fill(to count: Int, _ bytes: inout ByteView) -> Bool {
        self.partial.append(bytes.takeFirst(min(bytes.count, max(0, count - self.partial.count))))
        return self.partial.count >= count
    }

    /// Begins a frame with a part of a block.
    ///
    /// - `frame`: the frame, at least up to its part of the block. If it is at the start of `bytes`, it is removed from
    ///   `bytes`.
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

    private mutating func resume(_ head: FrameHead, _ bytes: inout ByteView) -> Part? {
        guard bytes.count > 0 else { return nil }
        let piece = bytes.takeFirst(min(self.cutBytes, bytes.count))
        self.cutBytes -= piece.count
        let endsFrame = self.cutBytes == 0
        if endsFrame { self.cut = nil }
        return .block(
            Piece(head: head, priority: ByteView(), bytes: piece, beginsFrame: false, endsFrame: endsFrame)
        )
    }

    /// Returns true if the frame has a part of a block and a valid head.
    @inline(__always)
    private func hasPiece(_ head: FrameHead) -> Bool {
        guard self.unfinished.map(head.continues) ?? head.isHeaders else { return false }
        return head.length <= self.frameBytesMax && FrameHead.bytes + head.length >= Self.bytesBeforeBlock(head)
    }

    /// Returns true if the session must check the head of a frame without a block.
    @inline(__always)
    private func isReported(_ head: FrameHead) -> Bool {
        self.unfinished == nil && (head.isData || head.isTooShortForPadding)
    }

    @inline(__always)
    private static func bytesBeforeBlock(_ head: FrameHead) -> Int {
        FrameHead.bytes + (head.isPadded ? 1 : 0) + (head.hasPriority ? 5 : 0)
    }
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

/// The fields of answers that libnghttp2 has not sent, in the order of submission.
///
/// libnghttp2 produces HEADERS frames without fields. The fields are added when a frame is sent.
@safe
struct AnswerHeads: ~Copyable {
    private static let prefixBytes = 8

    /// For each head: the stream number, the length of its fields, and the fields.
    private var queue = ByteBuffer()

    /// Adds the HPACK-coded fields of the head of a final or interim answer.
    mutating func append(_ block: ByteView, for number: Int32) {
        precondition(block.count < 1 << 14, "the fields of a response fit into one frame")
        self.queue.append(memoryOf: number)
        self.queue.append(memoryOf: Int32(block.count))
        self.queue.append(block)
    }

    /// Appends an empty HEADERS frame of libnghttp2, followed by the fields of its answer.
    ///
    /// The frame keeps the bytes that libnghttp2 has put into the block. They announce the table size for the block.
    mutating func move(into frame: ByteView, to output: inout ByteBuffer) {
        let head = FrameHead(frame)
        let fields = self.take(for: head.streamNumber)
        head.withLength(frame.count - FrameHead.bytes + fields.count).write(to: &output)
        output.append(frame.dropFirst(FrameHead.bytes), fields)
    }

    /// Removes and returns the fields of the answer on a stream. Also removes fields of closed streams before them. The
    /// result is valid until the queue changes.
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

    /// Frees the memory of the queue if it is empty.
    mutating func freeSpareMemory() {
        if self.queue.isEmpty { self.queue.free() }
    }

    /// Removes all heads, because libnghttp2 has nothing more to send and their streams are closed.
    mutating func removeAll() {
        self.queue.removeAll(keepingBytesMax: 4096)
    }
}
