import Wire

/// The frames that a session sent.
struct FrameList {
    /// The types of frames that a server may send: all but PRIORITY and PUSH_PROMISE (RFC 9113 §6).
    private enum FrameType: UInt8 {
        case data = 0
        case headers = 1
        case reset = 3
        case settings = 4
        case ping = 6
        case goAway = 7
        case windowUpdate = 8
        case continuation = 9
    }

    private let bytes: ByteView

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Checks that there are only complete frames of known types and sizes, and that the first one is SETTINGS.
    func check() throws(BrokenPromise) {
        var offset = 0
        while offset < self.bytes.count {
            try promise(self.bytes.count - offset >= 9, "a frame's head is cut short")
            let (count, type) = (self.count(at: offset), self.type(at: offset))
            try promise(offset > 0 || type == .settings, "the first frame is not SETTINGS")
            try promise(count <= 16_384, "a frame has \(count) bytes")
            try promise(type != nil, "a frame has the type \(self.bytes[offset + 3])")
            offset += 9 + count
            try promise(offset <= self.bytes.count, "a frame is cut short")
        }
    }

    /// True if a GOAWAY frame contains an error.
    var hasErrorGoAway: Bool {
        var offset = 0
        while offset + 9 <= self.bytes.count {
            let count = self.count(at: offset)
            if self.type(at: offset) == .goAway, count >= 8, offset + 17 <= self.bytes.count,
                self.bytes[offset + 13..<offset + 17].array != [0, 0, 0, 0]
            {
                return true
            }
            offset += 9 + count
        }
        return false
    }

    private func type(at offset: Int) -> FrameType? { FrameType(rawValue: self.bytes[offset + 3]) }

    private func count(at offset: Int) -> Int {
        Int(self.bytes[offset]) << 16 | Int(self.bytes[offset + 1]) << 8 | Int(self.bytes[offset + 2])
    }
}
