package import Wire

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
        while self.otherBytes == 0, bytes.count - count >= FrameHead.bytes {
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
            }
            let here = min(FrameHead.bytes + head.length, bytes.count - count)
            self.otherBytes = FrameHead.bytes + head.length - here
            count += here
        }
        guard count == 0 else { return .other(bytes.takeFirst(count)) }
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
