/// A view of bytes that another value owns.
///
/// A view is valid only during the call that passes it. A callee that needs the bytes longer must copy them. Every
/// access is checked against `count`.
@safe
@usableFromInline
package struct ByteView: BitwiseCopyable {
    @usableFromInline
    let base: UnsafeRawPointer?

    /// The number of bytes.
    @usableFromInline
    package let count: Int

    /// Creates a view of `buffer`, which must outlive the view.
    @inlinable
    package init(_ buffer: UnsafeRawBufferPointer) {
        unsafe self.base = buffer.baseAddress
        self.count = buffer.count
    }

    /// Creates a view of a constant, which is always valid.
    @inlinable
    package init(_ constant: StaticString) {
        unsafe self.base = UnsafeRawPointer(constant.utf8Start)
        self.count = constant.utf8CodeUnitCount
    }

    /// Creates an empty view.
    @inlinable
    package init() {
        unsafe self.base = nil
        self.count = 0
    }

    @inlinable
    package var isEmpty: Bool { self.count == 0 }

    @inlinable
    package subscript(index: Int) -> UInt8 {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: self.count), "index out of range")
        return unsafe self.base.unsafelyUnwrapped.load(fromByteOffset: index, as: UInt8.self)
    }

    @inlinable
    package subscript(range: Range<Int>) -> ByteView {
        precondition(range.lowerBound >= 0 && range.upperBound <= self.count, "range out of bounds")
        return unsafe ByteView(
            UnsafeRawBufferPointer(
                start: self.base.map { unsafe $0 + range.lowerBound },
                count: range.count
            )
        )
    }

    /// The same bytes as a buffer, for calls into C.
    @inlinable
    package var buffer: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: self.base, count: self.count)
    }

    /// Loads a value that `ByteBuffer.append(memoryOf:)` wrote at `offset`. The offset need not be aligned.
    @inlinable
    package func load<Value: BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        precondition(offset >= 0 && offset <= self.count - MemoryLayout<Value>.size, "offset out of bounds")
        return unsafe self.base.unsafelyUnwrapped.loadUnaligned(fromByteOffset: offset, as: Value.self)
    }

    /// Returns the `count` bytes that start at `start`.
    @inlinable
    @inline(__always)
    package func slice(_ start: Int, count: Int) -> ByteView {
        precondition(start >= 0 && count >= 0 && start <= self.count - count, "slice out of bounds")
        guard count > 0 else { return ByteView() }
        return unsafe ByteView(UnsafeRawBufferPointer(start: self.base.unsafelyUnwrapped + start, count: count))
    }

    /// Returns the bytes from `start` to the end.
    @inlinable
    package func dropFirst(_ start: Int) -> ByteView {
        self[start..<self.count]
    }

    @inlinable
    package func firstIndex(of byte: UInt8) -> Int? {
        var index = 0
        while index + 8 <= self.count {
            // A bit is set for the first matching byte, and perhaps for later bytes that do not match. The lowest bit
            // is therefore exact.
            let difference = self.word(at: index) ^ (UInt64(byte) &* 0x0101_0101_0101_0101)
            let same = (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
            if same != 0 { return index + same.trailingZeroBitCount >> 3 }
            index += 8
        }
        while index < self.count {
            if self[index] == byte { return index }
            index += 1
        }
        return nil
    }

    @inlinable
    @inline(__always)
    package func starts(with prefix: StaticString) -> Bool {
        let prefix = ByteView(prefix)
        return prefix.count <= self.count && prefix.isStart(of: self)
    }

    @inlinable
    package static func == (left: ByteView, right: ByteView) -> Bool {
        left.count == right.count && left.isStart(of: right)
    }

    /// Returns true if `other` starts with these bytes. This view must have at least the size of `Word`, and `other`
    /// must not be shorter than this view.
    @inlinable
    @inline(__always)
    func agrees<Word: FixedWidthInteger & BitwiseCopyable>(with other: ByteView, in word: Word.Type) -> Bool {
        let (left, right) = unsafe (self.base.unsafelyUnwrapped, other.base.unsafelyUnwrapped)
        // The last word may overlap the previous word.
        let last = self.count - MemoryLayout<Word>.size
        var index = 0
        while index < last {
            let isSame =
                unsafe left.loadUnaligned(fromByteOffset: index, as: Word.self)
                == right.loadUnaligned(fromByteOffset: index, as: Word.self)
            guard isSame else { return false }
            index += MemoryLayout<Word>.size
        }
        return unsafe left.loadUnaligned(fromByteOffset: last, as: Word.self)
            == right.loadUnaligned(fromByteOffset: last, as: Word.self)
    }

    /// Returns true if the bytes equal a constant. Inlined, this compiles to a few instructions.
    @inlinable
    @inline(__always)
    package static func == (left: ByteView, right: StaticString) -> Bool {
        let right = ByteView(right)
        return left.count == right.count && right.isStart(of: left)
    }

    /// Returns true if `other` starts with these bytes. `other` must not be shorter than this view.
    @inlinable
    @inline(__always)
    func isStart(of other: ByteView) -> Bool {
        if self.count >= 8 { return self.agrees(with: other, in: UInt64.self) }
        if self.count >= 4 { return self.agrees(with: other, in: UInt32.self) }
        return self.count == 0 || self.agrees(with: other, in: UInt8.self)
    }

    /// Returns true if the bytes equal `other`, ignoring the case of ASCII letters.
    @inlinable
    package func equalsIgnoringCase(_ other: StaticString) -> Bool {
        let other = ByteView(other)
        guard self.count == other.count else { return false }
        for index in 0..<self.count where self[index].lowercasedASCII != other[index].lowercasedASCII {
            return false
        }
        return true
    }

    /// The bytes as a string. Each ill-formed UTF-8 sequence becomes U+FFFD.
    package var string: String {
        unsafe String(decoding: self.buffer, as: UTF8.self)
    }

    /// A copy of the bytes.
    package var array: [UInt8] {
        unsafe [UInt8](self.buffer)
    }

    /// The value of a decimal number that has only digits, without sign or space.
    ///
    /// - Returns: nil for an empty view, other characters, or a value that does not fit in `UInt64`.
    @inlinable
    package var decimal: UInt64? {
        guard self.count > 0 else { return nil }
        var value: UInt64 = 0
        for index in 0..<self.count {
            let digit = self[index] &- 0x30
            guard digit <= 9 else { return nil }
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = scaled.addingReportingOverflow(UInt64(digit))
            guard !overflow && !carry else { return nil }
            value = sum
        }
        return value
    }
}

extension UInt8 {
    /// The byte, with A...Z converted to a...z.
    @inlinable
    package var lowercasedASCII: UInt8 {
        self &- 0x41 < 26 ? self | 0x20 : self
    }

    /// The value of an ASCII hexadecimal digit in either case; nil for other bytes.
    @inlinable
    package var hexDigitValue: UInt8? {
        let digit = self &- 0x30
        if digit <= 9 { return digit }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    /// Returns true for an ASCII letter or digit, and for the ASCII characters of `others`.
    package func isLetterOrDigit(or others: String) -> Bool {
        (self | 0x20) &- 0x61 < 26 || self &- 0x30 < 10 || others.utf8.contains(self)
    }
}

extension [UInt8] {
    /// Calls `body` with a view of the array's bytes.
    package func withByteView<Result>(_ body: (ByteView) throws -> Result) rethrows -> Result {
        try unsafe self.withUnsafeBytes { buffer in
            let view = unsafe ByteView(buffer)
            return try body(view)
        }
    }
}

extension String {
    /// Calls `body` with a view of the string's UTF-8.
    package func withByteView<Result>(_ body: (ByteView) throws -> Result) rethrows -> Result {
        var text = self
        return try text.withUTF8 { utf8 in
            let view = unsafe ByteView(UnsafeRawBufferPointer(utf8))
            return try body(view)
        }
    }
}

extension ByteView {
    /// Returns the eight bytes at `index`. The first byte is in the lowest eight bits.
    @inlinable
    package func word(at index: Int) -> UInt64 {
        precondition(index >= 0 && index <= self.count - 8, "word out of bounds")
        return UInt64(
            littleEndian: unsafe self.base.unsafelyUnwrapped.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        )
    }

    /// Returns the four bytes at `index`. The first byte is in the lowest eight bits.
    @inlinable
    package func halfWord(at index: Int) -> UInt32 {
        precondition(index >= 0 && index <= self.count - 4, "half word out of bounds")
        return UInt32(
            littleEndian: unsafe self.base.unsafelyUnwrapped.loadUnaligned(fromByteOffset: index, as: UInt32.self)
        )
    }
}

extension ByteBuffer {
    /// Appends eight bytes. The lowest eight bits are the first byte.
    @inlinable
    package mutating func append(word: UInt64) {
        unsafe self.extend(8).storeBytes(of: word.littleEndian, as: UInt64.self)
    }

    /// Appends two words, one after the other.
    @inlinable
    package mutating func append(_ first: UInt64, _ second: UInt64) {
        let room = unsafe self.extend(16)
        unsafe room.storeBytes(of: first.littleEndian, as: UInt64.self)
        unsafe room.storeBytes(of: second.littleEndian, toByteOffset: 8, as: UInt64.self)
    }

    /// Appends four bytes. The lowest eight bits are the first byte.
    @inlinable
    package mutating func append(halfWord: UInt32) {
        unsafe self.extend(4).storeBytes(of: halfWord.littleEndian, as: UInt32.self)
    }
}

extension SIMD16<UInt8> {
    /// The first eight and the last eight bytes as words. The lowest eight bits of each word are its first byte.
    @inlinable
    @inline(__always)
    package var halves: SIMD2<UInt64> {
        unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
    }
}

extension ByteView {
    /// Returns the extent of the character at `index`. For ill-formed UTF-8, returns the extent of the bytes that one
    /// U+FFFD replaces (Unicode 16, 3.9: Substitution of Maximal Subparts).
    ///
    /// - Returns: the number of bytes, 1...4; and true if they encode a character in UTF-8 (RFC 3629).
    @inlinable
    package func sequence(at index: Int) -> (count: Int, isCharacter: Bool) {
        let first = self[index]
        // The bounds of the second byte exclude overlong forms, surrogates and numbers past U+10FFFF.
        var low: UInt8 = 0x80
        var high: UInt8 = 0xBF
        let count: Int
        switch first {
        case 0..<0x80: return (1, true)
        case 0xC2...0xDF: count = 2
        case 0xE0...0xEF:
            count = 3
            if first == 0xE0 { low = 0xA0 }
            if first == 0xED { high = 0x9F }
        case 0xF0...0xF4:
            count = 4
            if first == 0xF0 { low = 0x90 }
            if first == 0xF4 { high = 0x8F }
        default: return (1, false)
        }
        for place in 1..<count {
            guard index + place < self.count, low...high ~= self[index + place] else { return (place, false) }
            low = 0x80
            high = 0xBF
        }
        return (count, true)
    }

    /// True if the bytes are well-formed UTF-8.
    package var isUTF8: Bool {
        var index = 0
        while index < self.count {
            if index + 8 <= self.count, self.load(UInt64.self, at: index) & 0x8080_8080_8080_8080 == 0 {
                index += 8
                continue
            }
            let (count, isCharacter) = self.sequence(at: index)
            guard isCharacter else { return false }
            index += count
        }
        return true
    }
}
