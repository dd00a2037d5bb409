/// The token of a device: 16 to 100 bytes, usually 32, written as hexadecimal digits.
///
/// A token is 104 bytes of plain memory without references. Each word has eight bytes of the token, padded with zeros;
/// the first byte is in the lowest bits. The last four bytes of memory are the number of bytes. Tokens are therefore
/// equal if all of their words are equal.
@frozen
@usableFromInline
package struct DeviceToken: Hashable, BitwiseCopyable, Sendable {
    @usableFromInline
    var words: InlineArray<13, UInt64>

    /// The valid numbers of bytes.
    @inlinable
    package static var counts: ClosedRange<Int> { 16...100 }

    /// Creates an empty token, which `parse` can overwrite. No device has an empty token.
    @inlinable
    package init() {
        self.words = InlineArray(repeating: 0)
    }

    /// Parses hexadecimal digits of either case.
    ///
    /// - Returns: nil if `hex` is not 32 to 200 digits, or their number is odd.
    @inlinable
    package init?(hex: ByteView) {
        self.init()
        guard DeviceToken.parse(hex, into: &self) else { return nil }
    }

    /// Creates a token of 16 to 100 bytes; nil for any other count.
    package init?(bytes: ByteView) {
        guard DeviceToken.counts.contains(bytes.count) else { return nil }
        self.init()
        let whole = bytes.count >> 3
        for word in 0..<whole { self.words[word] = bytes.word(at: word * 8) }
        for index in (whole * 8)..<bytes.count {
            self.words[index >> 3] |= UInt64(bytes[index]) << UInt64((index & 7) * 8)
        }
        self.words[12] |= UInt64(bytes.count) << 32
    }

    /// Parses 32 to 200 hexadecimal digits of either case into `token`. Their number must be even.
    ///
    /// - Returns: false if the digits are malformed; `token` is then undefined.
    @inlinable
    package static func parse(_ hex: ByteView, into token: inout DeviceToken) -> Bool {
        let count = hex.count >> 1
        guard hex.count & 1 == 0, self.counts.contains(count) else { return false }
        token.words = InlineArray(repeating: 0)
        let whole = count >> 3
        for word in 0..<whole {
            let start = word * 16
            guard let bytes = HexadecimalWord.decode(hex.word(at: start), hex.word(at: start + 8)) else { return false }
            token.words[word] = bytes
        }
        for index in (whole * 8)..<count {
            guard let high = hex[index * 2].hexDigitValue, let low = hex[index * 2 + 1].hexDigitValue else {
                return false
            }
            token.words[index >> 3] |= UInt64(high << 4 | low) << UInt64((index & 7) * 8)
        }
        token.words[12] |= UInt64(count) << 32
        return true
    }

    /// The number of bytes.
    @inlinable
    package var count: Int { Int(truncatingIfNeeded: self.words[12] >> 32) }

    @inlinable
    package static func == (left: DeviceToken, right: DeviceToken) -> Bool {
        guard left.words[12] == right.words[12] else { return false }
        let words = min((left.count + 7) >> 3, 12)
        var difference: UInt64 = 0
        for index in 0..<words { difference |= left.words[index] ^ right.words[index] }
        return difference == 0
    }

    /// Feeds the used words to the hasher, which has a random seed in each process. If the hash of a token were fixed,
    /// clients could choose tokens that collide.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        for index in 0..<min((self.count + 7) >> 3, 12) { hasher.combine(self.words[index]) }
        hasher.combine(self.words[12])
    }

    /// Returns a hash of all bytes that is the same in every process. Any bits of the hash can be used.
    ///
    /// A table that clients fill must use a `HashKey` instead. Clients can choose tokens that collide under every seed
    /// of this hash.
    @inlinable
    package func hash64(seed: UInt64) -> UInt64 {
        let words = (self.count + 7) >> 3
        var state = FoldedProduct.of(seed ^ 0x9E37_79B9_7F4A_7C15, UInt64(self.count) ^ 0xE703_7ED1_A0B4_28DB)
        var index = 0
        while index + 1 < words {
            state = FoldedProduct.of(self.words[index] ^ 0xA076_1D64_78BD_642F, self.words[index + 1] ^ state)
            index += 2
        }
        if index < words { state = FoldedProduct.of(self.words[index] ^ 0xA076_1D64_78BD_642F, state) }
        return FoldedProduct.of(state ^ 0x8EBC_6AF0_9C88_C6E3, 0x5895_89B2_2C0F_7D1D)
    }

    /// The first eight bytes as a big-endian number, which sorts like the bytes.
    @inlinable
    package var beginning: UInt64 { self.words[0].byteSwapped }

    /// Calls `body` with the bytes, which are valid during the call.
    @inlinable
    package func withBytes<Result>(_ body: (ByteView) throws -> Result) rethrows -> Result {
        var words = self.words
        for index in words.indices { words[index] = words[index].littleEndian }
        let count = self.count
        return try unsafe withUnsafeBytes(of: &words) { buffer in
            let view = unsafe ByteView(UnsafeRawBufferPointer(rebasing: buffer[0..<count]))
            return try body(view)
        }
    }

    /// Appends the token as lower-case digits, two per byte.
    @inlinable
    package func writeHex(to buffer: inout ByteBuffer) {
        let count = self.count
        // A span avoids a copy of the array, which a subscript would make.
        let words = self.words.span
        for index in 0..<count >> 3 {
            let word = words[index]
            buffer.append(
                HexadecimalWord.encode(UInt32(truncatingIfNeeded: word)),
                HexadecimalWord.encode(UInt32(truncatingIfNeeded: word >> 32))
            )
        }
        let halves = count >> 2
        if halves & 1 == 1 {
            buffer.append(word: HexadecimalWord.encode(UInt32(truncatingIfNeeded: words[halves >> 1])))
        }
        guard count & 3 != 0 else { return }
        var digits = HexadecimalWord.encode(
            UInt32(truncatingIfNeeded: words[halves >> 1] >> UInt64((halves & 1) * 32))
        )
        for _ in 0..<(count & 3) * 2 {
            buffer.append(UInt8(truncatingIfNeeded: digits))
            digits >>= 8
        }
    }

    /// The token as lower-case digits, for uses where speed does not matter.
    package var hex: String {
        var buffer = ByteBuffer()
        self.writeHex(to: &buffer)
        return buffer.view.string
    }
}

/// A device token in compact form: up to 32 bytes inline, and the rest of a longer token on the heap.
///
/// The owner must call `deallocate`.
@safe
@frozen
@usableFromInline
package struct StoredDeviceToken {
    @usableFromInline
    let inline: InlineArray<4, UInt64>
    /// The words after the inline words; nil if the token has at most 32 bytes.
    @usableFromInline
    let rest: UnsafeMutablePointer<UInt64>?
    /// The number of bytes. It is the last property and one byte long, so a containing type can use seven bytes of
    /// padding.
    @usableFromInline
    let count: UInt8

    /// The number of inline words, and the number of words in `rest`.
    @usableFromInline
    static var inlineCount: Int { 4 }
    @usableFromInline
    static var restCount: Int { 9 }

    package init(_ token: DeviceToken) {
        self.inline = [token.words[0], token.words[1], token.words[2], token.words[3]]
        self.count = UInt8(token.count)
        guard token.count > 32 else {
            unsafe self.rest = nil
            return
        }
        let rest = UnsafeMutablePointer<UInt64>.allocate(capacity: Self.restCount)
        for index in 0..<Self.restCount { unsafe rest[index] = token.words[Self.inlineCount + index] }
        unsafe self.rest = rest
    }

    package func deallocate() {
        unsafe self.rest?.deallocate()
    }

    /// Appends one byte with the number of bytes, then the bytes.
    package func store(to buffer: inout ByteBuffer) {
        buffer.append(self.count)
        guard self.count == 32 else { return self.token.withBytes { buffer.append($0) } }
        for index in 0..<Self.inlineCount { buffer.append(word: self.inline[index]) }
    }

    /// The token.
    package var token: DeviceToken {
        var token = DeviceToken()
        for index in 0..<Self.inlineCount { token.words[index] = self.inline[index] }
        guard let rest = unsafe self.rest else {
            token.words[12] = self.lastWord
            return token
        }
        for index in 0..<Self.restCount { unsafe token.words[Self.inlineCount + index] = rest[index] }
        return token
    }

    /// The first eight bytes as a big-endian number, which sorts like the bytes.
    @inlinable
    package var beginning: UInt64 { self.inline[0].byteSwapped }

    /// Returns true if this token equals `token`.
    @inlinable
    package func matches(_ token: borrowing DeviceToken) -> Bool {
        var difference: UInt64 = 0
        for index in 0..<Self.inlineCount { difference |= self.inline[index] ^ token.words[index] }
        guard difference == 0 else { return false }
        guard let rest = unsafe self.rest else { return token.words[12] == self.lastWord }
        for index in 0..<Self.restCount { unsafe difference |= rest[index] ^ token.words[Self.inlineCount + index] }
        return difference == 0
    }

    /// The last word of a token that is stored inline completely.
    @inlinable
    var lastWord: UInt64 { UInt64(self.count) << 32 }
}

/// The first 1 to 200 digits of a device token.
package struct TokenPrefix: Hashable, Sendable {
    /// The values of the digits, 0...15.
    private let digits: [UInt8]

    /// Parses hexadecimal digits of either case.
    ///
    /// - Returns: nil if `hex` is not 1 to 200 hexadecimal digits.
    package init?(hex: ByteView) {
        guard (1...DeviceToken.counts.upperBound * 2).contains(hex.count) else { return nil }
        let digits = hex.array.compactMap { $0.hexDigitValue }
        guard digits.count == hex.count else { return nil }
        self.digits = digits
    }

    /// Returns true if the token starts with these digits.
    package func begins(_ token: DeviceToken) -> Bool {
        guard self.digits.count <= token.count * 2 else { return false }
        return token.withBytes { bytes in
            self.digits.indices.allSatisfy { place in
                let byte = bytes[place >> 1]
                return self.digits[place] == (place & 1 == 0 ? byte >> 4 : byte & 0xF)
            }
        }
    }

    /// Returns the last token that sorts before all tokens with this prefix, in byte order; nil if there is none.
    package var predecessor: DeviceToken? {
        guard let place = self.digits.lastIndex(where: { $0 > 0 }) else { return nil }
        var digits = Array(self.digits[...place])
        digits[place] -= 1
        digits += [UInt8](repeating: 0xF, count: DeviceToken.counts.upperBound * 2 - digits.count)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        return bytes.withByteView { DeviceToken(bytes: $0) }
    }
}
