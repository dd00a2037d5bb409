import Policy
import Wire

/// Reads what `ByteBuffer.appendLittleEndian` wrote, part by part.
///
/// Past the end, and where something cannot be, it gives zeros and is not `isWhole` any more: whoever reads a record
/// asks once, at its end.
struct RecordReader {
    private let bytes: ByteView
    private var offset = 0
    private var isShort = false
    private var isImpossible = false

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Every part was there, and nothing is left.
    var isWhole: Bool { !self.isShort && !self.isImpossible && self.offset == self.bytes.count }

    /// Every part that was read was there, and something is left.
    var hasMore: Bool { !self.isShort && self.offset < self.bytes.count }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type = Value.self) -> Value {
        guard self.take(MemoryLayout<Value>.size) else { return 0 }
        return Value(littleEndian: self.bytes.load(Value.self, at: self.offset - MemoryLayout<Value>.size))
    }

    /// A moment at which something happened or will; sums and differences of such moments do not overflow.
    mutating func moment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.momentMax))
    }

    /// A moment that a stranger chose, such as an expiry: farther away than what happens, and no less safe.
    mutating func distantMoment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.distantMomentMax))
    }

    /// A count of what has happened since the beginning; thousands of them can be added up.
    mutating func count() -> Int64 { self.integer(0...Self.countMax) }

    /// An integer that must lie in `range`, or its lower bound.
    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ range: ClosedRange<Value>) -> Value {
        let value: Value = self.integer()
        if range.contains(value) { return value }
        self.isImpossible = true
        return range.lowerBound
    }

    /// 36 million years.
    private static let momentMax: Int64 = 1 << 60
    /// What `WallOffset.instant` gives at most lies below, wherever policy time stands.
    private static let distantMomentMax: Int64 = 3 << 61
    /// A hundred thousand a second for 89 years.
    private static let countMax: Int64 = 1 << 48

    /// The next `count` bytes, none when there are fewer.
    mutating func view(_ count: Int) -> ByteView {
        guard self.take(count) else { return ByteView() }
        return self.bytes[self.offset - count..<self.offset]
    }

    private mutating func take(_ count: Int) -> Bool {
        guard !self.isShort, count <= self.bytes.count - self.offset else {
            self.isShort = true
            return false
        }
        self.offset += count
        return true
    }
}

extension ByteBuffer {
    /// Appends the bytes of `value`, the lowest first.
    @inline(__always)
    mutating func appendLittleEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        self.append(memoryOf: value.littleEndian)
    }
}
