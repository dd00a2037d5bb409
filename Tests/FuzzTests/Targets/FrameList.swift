import Wire

/// The frames that a session sent.
struct FrameList {
    private let bytes: ByteView

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Checks that there are only complete frames of known types and sizes, and that the first one is SETTINGS.
    func check() throws(BrokenPromise) {
        var offset = 0
        while offset < self.bytes.count {
            try promise(self.bytes.count - offset >= 9, "a frame's head is cut short")
            let (count, type) = (self.count(at: offset), self.bytes[offset + 3])
            try promise(offset > 0 || type == 4, "the first frame is of type \(type)")
            try promise(count <= 16_384, "a frame has \(count) bytes")
            try promise([0, 1, 3, 4, 6, 7, 8, 9].contains(type), "a frame has the type \(type)")
            offset += 9 + count
            try promise(offset <= self.bytes.count, "a frame is cut short")
        }
    }

    /// True if a GOAWAY frame contains an error.
    var hasErrorGoAway: Bool {
        var offset = 0
        while offset + 9 <= self.bytes.count {
            let count = self.count(at: offset)
            if self.bytes[offset + 3] == 7, count >= 8, offset + 17 <= self.bytes.count,
                self.bytes[offset + 13..<offset + 17].array != [0, 0, 0, 0]
            {
                return true
            }
            offset += 9 + count
        }
        return false
    }

    private func count(at offset: Int) -> Int {
        Int(self.bytes[offset]) << 16 | Int(self.bytes[offset + 1]) << 8 | Int(self.bytes[offset + 2])
    }
}
