import Wire

/// Splits an input from its beginning. After the end, it returns zeros and empty views.
struct InputReader {
    private(set) var rest: ByteView

    init(_ input: ByteView) {
        self.rest = input
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    mutating func byte() -> UInt8 {
        guard !self.rest.isEmpty else { return 0 }
        defer { self.rest = self.rest.dropFirst(1) }
        return self.rest[0]
    }

    /// Returns the next `count` bytes, or all remaining bytes if there are fewer.
    mutating func view(_ count: Int) -> ByteView {
        let count = min(count, self.rest.count)
        defer { self.rest = self.rest.dropFirst(count) }
        return self.rest[0..<count]
    }

    /// Returns the bytes before the next `separator` and skips the separator, or returns all remaining bytes.
    mutating func view(until separator: UInt8) -> ByteView {
        let end = self.rest.firstIndex(of: separator) ?? self.rest.count
        defer { self.rest = self.rest.dropFirst(min(end + 1, self.rest.count)) }
        return self.rest[0..<end]
    }

    mutating func line() -> ByteView { self.view(until: 0x0A) }
}
