/// A device token as tables keep it: the usual 32 bytes in place, the rest of a longer one on the heap.
///
/// Whoever lets go of one calls `deallocate`.
@safe
@frozen
@usableFromInline
package struct StoredDeviceToken {
    @usableFromInline
    let inline: InlineArray<4, UInt64>
    /// The words behind those in place; nil when there are none but the last, which then says the count alone.
    @usableFromInline
    let rest: UnsafeMutablePointer<UInt64>?
    /// The number of bytes, at the end and in one byte: what holds a token has room for seven more then.
    @usableFromInline
    let count: UInt8

    /// How many words lie in place, and how many behind them.
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

    /// Appends the count of bytes, one byte, and the bytes.
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

    /// Whether this is `token`.
    @inlinable
    package func matches(_ token: borrowing DeviceToken) -> Bool {
        var difference: UInt64 = 0
        for index in 0..<Self.inlineCount { difference |= self.inline[index] ^ token.words[index] }
        guard difference == 0 else { return false }
        guard let rest = unsafe self.rest else { return token.words[12] == self.lastWord }
        for index in 0..<Self.restCount { unsafe difference |= rest[index] ^ token.words[Self.inlineCount + index] }
        return difference == 0
    }

    /// The last word of a token that lies in place.
    @inlinable
    var lastWord: UInt64 { UInt64(self.count) << 32 }
}
