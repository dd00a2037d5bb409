/// Values in DER (X.690), one after the other, as far as the extensions of client certificates have them.
struct DERReader {
    enum Tag: UInt8 {
        case utf8String = 0x0C
        case sequence = 0x30
    }

    /// The most bytes in which a length is written; no certificate is longer than four of them can say.
    private static let lengthBytesMax = 4

    private var rest: ByteView

    init(_ bytes: ByteView) {
        self.rest = bytes
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    /// Takes the value that comes next.
    ///
    /// - Returns: its contents; nil when its tag is another one, it is cut short, or its length is not written as DER
    ///   has it: definite, and as short as can be.
    mutating func value(_ tag: Tag) -> ByteView? {
        guard self.rest.count >= 2, self.rest[0] == tag.rawValue else { return nil }
        var start = 2
        var count = Int(self.rest[1])
        if count >= 0x80 {
            let lengthBytes = count & 0x7F
            start += lengthBytes
            guard (1...Self.lengthBytesMax).contains(lengthBytes), start <= self.rest.count else { return nil }
            count = 0
            for index in 2..<start { count = count << 8 | Int(self.rest[index]) }
            guard count >= 0x80, count >> (8 * (lengthBytes - 1)) > 0 else { return nil }
        }
        guard count <= self.rest.count - start else { return nil }
        let contents = self.rest[start..<start + count]
        self.rest = self.rest.dropFirst(start + count)
        return contents
    }
}
