package import Wire

/// Reads an array of one dimension that a server gave in binary; it must not outlive the bytes.
package struct PostgresElements {
    /// An element's bytes; nil for NULL.
    package struct Element {
        package let bytes: ByteView?
    }

    private static let headerBytes = 20

    /// How many elements are left.
    package private(set) var count: Int
    private var rest: ByteView

    /// - Returns: nil when the bytes are no such array.
    package init?(_ bytes: ByteView) {
        guard bytes.count >= 12 else { return nil }
        let dimensions = Int32(bigEndian: bytes.load(Int32.self, at: 0))
        if dimensions == 0 {
            self.count = 0
            self.rest = ByteView()
            return
        }
        guard dimensions == 1, bytes.count >= Self.headerBytes else { return nil }
        let count = Int(Int32(bigEndian: bytes.load(Int32.self, at: 12)))
        let rest = bytes.dropFirst(Self.headerBytes)
        // Each element has its length before it.
        guard count >= 0, count <= rest.count / 4 else { return nil }
        self.count = count
        self.rest = rest
    }

    /// The next element; nil at the end, and when the array is cut short.
    package mutating func next() -> Element? {
        guard self.count > 0, self.rest.count >= 4 else { return nil }
        let length = Int(Int32(bigEndian: self.rest.load(Int32.self, at: 0)))
        self.count -= 1
        guard length >= 0 else {
            self.rest = self.rest.dropFirst(4)
            return Element(bytes: nil)
        }
        guard length <= self.rest.count - 4 else {
            self.count = 0
            return nil
        }
        let bytes = self.rest.slice(4, count: length)
        self.rest = self.rest.dropFirst(4 + length)
        return Element(bytes: bytes)
    }
}
