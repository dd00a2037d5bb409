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

    /// The bytes of the payload.
    package private(set) var length: Int
    private var type: UInt8
    private var flags: UInt8
    /// The stream, and a bit that means nothing.
    private var stream: UInt32

    /// - Parameter bytes: nine at least.
    @inline(__always)
    init(_ bytes: ByteView) {
        let first = UInt64(bigEndian: bytes.load(UInt64.self, at: 0))
        self.length = Int(first >> 40)
        self.type = UInt8(truncatingIfNeeded: first >> 32)
        self.flags = UInt8(truncatingIfNeeded: first >> 24)
        self.stream = UInt32(truncatingIfNeeded: first << 8) | UInt32(bytes[8])
    }

    var isData: Bool { self.type == Self.data }
    var isHeaders: Bool { self.type == Self.headers }
    var isGoAway: Bool { self.type == Self.goAway }
    /// The number of the stream, without the reserved bit; 0 for the connection.
    package var streamNumber: Int32 { Int32(truncatingIfNeeded: self.stream & 0x7FFF_FFFF) }
    /// Whether no CONTINUATION follows.
    var endsBlock: Bool { self.flags & Self.endHeaders != 0 }
    /// Whether DATA or HEADERS are the last frame of their stream, but for those that continue its block.
    var endsStream: Bool { self.flags & Self.endStream != 0 }
    /// Whether the payload of HEADERS begins with a byte that says how many of its last are to be thrown away.
    var isPadded: Bool { self.isHeaders && self.flags & Self.padded != 0 }
    /// Whether DATA or HEADERS have no room for the byte that says how much padding they have.
    package var isTooShortForPadding: Bool {
        self.length == 0 && self.flags & Self.padded != 0 && (self.isData || self.isHeaders)
    }
    /// Whether five bytes come before the block that once gave the stream a place among others.
    var hasPriority: Bool { self.isHeaders && self.flags & Self.priority != 0 }

    /// Whether the frame goes on with the block that another has begun.
    func continues(_ other: FrameHead) -> Bool {
        self.type == Self.continuation && self.streamNumber == other.streamNumber
    }

    /// The same frame without the piece of a block that is in it.
    ///
    /// - Parameter endsBlock: whether the library may take the block as ended.
    func withoutBlock(endsBlock: Bool) -> FrameHead {
        var head = self
        head.length = self.hasPriority ? 5 : 0
        if self.isHeaders { head.flags &= ~Self.padded }
        if !endsBlock { head.flags &= ~Self.endHeaders }
        return head
    }

    /// The same frame with a payload of another length.
    func withLength(_ length: Int) -> FrameHead {
        var head = self
        head.length = length
        return head
    }

    /// An empty CONTINUATION frame that ends the block of the stream.
    var end: FrameHead {
        var head = self
        head.length = 0
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

/// Cuts the pieces of field blocks out of what a peer sends, and says where DATA begins.
///
/// A block is in a HEADERS frame and those that continue it: RFC 9113 §6.2 and §6.10.
@safe
package struct FrameCutter: ~Copyable {
    /// What the next bytes are.
    package enum Part {
        /// Bytes of other frames, of the preface, or of a frame that is at fault.
        case other(ByteView)
        /// What has come of a piece of a block.
        case block(Piece)
        /// DATA that is not within a block, or HEADERS that are too short: their head, and what has come of the whole
        /// frame.
        case begun(FrameHead, ByteView)
    }

    /// What has come of the piece of a block that one frame carries.
    package struct Piece {
        let head: FrameHead
        /// The five bytes of it that are no part of the block, or none.
        package let priority: ByteView
        /// The bytes of the block, without priority and padding; valid as long as those that were cut.
        package let bytes: ByteView
        /// Whether it is the first of its frame.
        package let beginsFrame: Bool
        /// Whether it is the last of its frame.
        package let endsFrame: Bool

        var endsBlock: Bool { self.endsFrame && self.head.endsBlock }
    }

    private let frameBytesMax: Int
    /// The beginning of a frame that is too short to tell where its block begins.
    private var partial = ByteBuffer()
    /// Whether `partial` was handed out.
    private var isPartialTaken = false
    /// What is still to come of the preface, or of a frame that has no piece of a block.
    private var otherBytes = 24
    /// True if that is a GOAWAY frame. While no stream is open the library ignores everything behind one, but it checks
    /// this only at the beginning of a call. So the next frames are another part: they are ignored however bytes come.
    private var isWithinGoAway = false
    /// The frame whose piece of a block has come in part, and what is still to come of that piece.
    private var cut: FrameHead?
    private var cutBytes = 0
    /// What is still to come of its padding, for nobody.
    private var padding = 0
    /// The last frame of a block that goes on in another.
    private var unfinished: FrameHead?
    /// How many frames have begun, as far as their heads have come, and the number of the one that began the block.
    private var framesBegun = 0
    private var blockBegun = 0

    /// Whether more of a block is to come.
    var isWithinBlock: Bool { self.unfinished != nil || self.cut != nil }

    /// Which frame has begun and not ended, or has begun a block that has not: the same number as long as it is the
    /// same one; 0 when the next byte begins a frame. The preface counts as a frame.
    package var unfinishedFrame: Int {
        if self.isWithinBlock { return self.blockBegun }
        if !self.partial.isEmpty { return self.framesBegun + 1 }
        return self.otherBytes > 0 || self.padding > 0 ? max(1, self.framesBegun) : 0
    }

    /// A cutter for a connection whose preface is to come.
    ///
    /// - Parameter frameBytesMax: the most bytes of a frame's payload; longer ones are left to the library.
    package init(frameBytesMax: Int) {
        self.frameBytesMax = frameBytesMax
    }

    /// The next part of what has come, which is taken off `bytes`, and is valid until the next call; nil when nothing
    /// is left.
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
            } else if self.isTold(head) {
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

    /// Goes on with a frame whose beginning was kept.
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
        return self.isTold(head) ? .begun(head, self.partial.view) : .other(self.partial.view)
    }

    /// - Returns: whether so many bytes of the frame are there.
    private mutating func fill(to count: Int, _ bytes: inout ByteView) -> Bool {
        self.partial.append(bytes.takeFirst(min(bytes.count, max(0, count - self.partial.count))))
        return self.partial.count >= count
    }

    /// Begins with a frame that has a piece of a block.
    ///
    /// - Parameter frame: as much of it as stands before the piece, at least; where that is `bytes`, it is taken off.
    /// - Returns: nil when the frame is at fault.
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

    /// Whether there is a piece of a block in the frame, which is not at fault as far as its head can tell.
    @inline(__always)
    private func hasPiece(_ head: FrameHead) -> Bool {
        guard self.unfinished.map(head.continues) ?? head.isHeaders else { return false }
        return head.length <= self.frameBytesMax && FrameHead.bytes + head.length >= Self.bytesBeforeBlock(head)
    }

    /// Whether the session looks at the head of the frame, which has no piece of a block.
    @inline(__always)
    private func isTold(_ head: FrameHead) -> Bool {
        self.unfinished == nil && (head.isData || head.isTooShortForPadding)
    }

    @inline(__always)
    private static func bytesBeforeBlock(_ head: FrameHead) -> Int {
        FrameHead.bytes + (head.isPadded ? 1 : 0) + (head.hasPriority ? 5 : 0)
    }
}

/// The frame or field block of which a part has come and not all.
package struct UnfinishedFrame {
    /// Which one, as `FrameCutter.unfinishedFrame` has it; 0 for none.
    private var number = 0
    /// When that was found first, in monotonic milliseconds.
    private var since: Int64 = 0

    /// None is known of.
    package init() {}

    /// Looks at what was left unfinished.
    ///
    /// - Parameters:
    ///   - number: as `FrameCutter.unfinishedFrame` has it.
    ///   - now: monotonic milliseconds.
    @inline(__always)
    package mutating func note(_ number: Int, now: Int64) {
        guard number != self.number else { return }
        self.number = number
        self.since = now
    }

    /// Since when the present one has been unfinished, in monotonic milliseconds; nil when there is none.
    package var unfinishedSince: Int64? { self.number == 0 ? nil : self.since }
}

extension ByteView {
    /// The first `count` bytes, which are taken off.
    @inline(__always)
    fileprivate mutating func takeFirst(_ count: Int) -> ByteView {
        let first = self.slice(0, count: count)
        self = self.slice(count, count: self.count - count)
        return first
    }
}

/// The heads of answers that the library has still to send, in the order in which it was asked to.
///
/// The library sends HEADERS frames without fields; each gets its own when it leaves.
@safe
struct AnswerHeads: ~Copyable {
    private static let prefixBytes = 8

    /// For each head the number of its stream, how many bytes its fields take, and these.
    private var queue = ByteBuffer()

    /// Adds the fields of an answer's head, or of an interim one, in HPACK.
    mutating func append(_ block: ByteView, for number: Int32) {
        precondition(block.count < 1 << 14, "the fields of a response fit into one frame")
        self.queue.append(memoryOf: number)
        self.queue.append(memoryOf: Int32(block.count))
        self.queue.append(block)
    }

    /// Appends a HEADERS frame, which has no field, with the fields of the answer that it begins.
    ///
    /// What the library has put into its block is kept: it says what size of table the block expects.
    mutating func move(into frame: ByteView, to output: inout ByteBuffer) {
        let head = FrameHead(frame)
        let fields = self.take(for: head.streamNumber)
        head.withLength(frame.count - FrameHead.bytes + fields.count).write(to: &output)
        output.append(frame.dropFirst(FrameHead.bytes), fields)
    }

    /// The fields of the answer on the stream, which is the first in the queue but for those of streams that are gone;
    /// valid until the queue changes.
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

    /// Frees what is kept for heads to come, unless there are some.
    mutating func freeSpareMemory() {
        if self.queue.isEmpty { self.queue.free() }
    }

    /// Forgets what is left: the library has nothing more to send.
    mutating func removeAll() {
        self.queue.removeAll(keepingBytesMax: 4096)
    }
}
