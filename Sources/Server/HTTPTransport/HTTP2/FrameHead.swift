internal import Wire

/// The first nine bytes of a frame: RFC 9113 §4.1.
package struct FrameHead {
    static let bytes = 9
    private static let data: UInt8 = 0
    private static let headers: UInt8 = 1
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
