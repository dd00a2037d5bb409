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
    ///
    /// - Returns: true if a GOAWAY frame contains an error.
    func check() throws(BrokenPromise) -> Bool {
        var hasErrorGoAway = false
        var offset = 0
        while offset < self.bytes.count {
            try promise(self.bytes.count - offset >= 9, "a frame's head is cut short")
            let (count, type) = (self.count(at: offset), self.type(at: offset))
            try promise(offset > 0 || type == .settings, "the first frame is not SETTINGS")
            try promise(count <= 16_384, "a frame has \(count) bytes")
            try promise(type != nil, "a frame has the type \(self.bytes[offset + 3])")
            let payload = offset + 9
            offset = payload + count
            try promise(offset <= self.bytes.count, "a frame is cut short")
            guard type == .goAway, count >= 8 else { continue }
            if self.bytes[payload + 4..<payload + 8].array != [0, 0, 0, 0] { hasErrorGoAway = true }
        }
        return hasErrorGoAway
    }

    private func type(at offset: Int) -> FrameType? { FrameType(rawValue: self.bytes[offset + 3]) }

    private func count(at offset: Int) -> Int {
        Int(self.bytes[offset]) << 16 | Int(self.bytes[offset + 1]) << 8 | Int(self.bytes[offset + 2])
    }
}
