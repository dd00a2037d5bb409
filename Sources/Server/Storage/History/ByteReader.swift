import Wire

/// Reads numbers one behind the other; past the end, or where no writer wrote, they are 0 and `isDamaged` is set.
struct ByteReader {
    private let bytes: ByteView
    private(set) var offset: Int
    private(set) var isDamaged = false

    init(_ bytes: ByteView, at offset: Int = 0) {
        self.bytes = bytes
        self.offset = offset
    }

    var isAtEnd: Bool { self.offset >= self.bytes.count }

    mutating func byte() -> UInt8 {
        guard self.offset < self.bytes.count else { return self.fail() }
        defer { self.offset += 1 }
        return self.bytes[self.offset]
    }

    mutating func word() -> UInt64 {
        guard self.bytes.count - self.offset >= 8 else { return self.fail() }
        defer { self.offset += 8 }
        return self.bytes.word(at: self.offset)
    }

    mutating func halfWord() -> UInt32 {
        guard self.bytes.count - self.offset >= 4 else { return self.fail() }
        defer { self.offset += 4 }
        return self.bytes.halfWord(at: self.offset)
    }

    mutating func varint() -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = self.byte()
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return value }
        }
        return self.fail()
    }

    mutating func skip(_ count: Int) {
        guard self.bytes.count - self.offset >= count else { return self.fail() as Void }
        self.offset += count
    }

    mutating func fail() {
        self.isDamaged = true
        self.offset = self.bytes.count
    }

    private mutating func fail<Number: FixedWidthInteger>() -> Number {
        self.fail() as Void
        return 0
    }
}

extension ByteBuffer {
    /// Appends seven bits a byte, the lowest first; all bytes but the last have their top bit set.
    @inline(__always)
    mutating func append(varint value: UInt64) {
        guard value >= 0x80 else { return self.append(UInt8(truncatingIfNeeded: value)) }
        self.append(longVarint: value)
    }

    private mutating func append(longVarint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            self.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        self.append(UInt8(truncatingIfNeeded: rest))
    }
}

extension Int64 {
    /// The number with its sign in the lowest bit, so that small ones of either sign are short as varints.
    var zigzag: UInt64 { UInt64(bitPattern: (self << 1) ^ (self >> 63)) }

    init(zigzag: UInt64) {
        self = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }
}
