import Bytes

/// Reads what `ByteBuffer.appendLittleEndian` wrote, part by part.
///
/// Past the end it gives zeros and is not `isWhole` any more: whoever reads a record asks once, at its end.
struct RecordReader {
    private let bytes: ByteView
    private var offset = 0
    private var isShort = false

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Every part was there, and nothing is left.
    var isWhole: Bool { !self.isShort && self.offset == self.bytes.count }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type = Value.self) -> Value {
        guard self.take(MemoryLayout<Value>.size) else { return 0 }
        return Value(littleEndian: self.bytes.load(Value.self, at: self.offset - MemoryLayout<Value>.size))
    }

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
