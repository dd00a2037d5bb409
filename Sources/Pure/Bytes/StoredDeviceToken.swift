/// A device token as tables keep it: the usual 32 bytes in place, the rest of a longer one on the heap.
///
/// Whoever lets go of one calls `deallocate`.
@safe
@frozen
@usableFromInline
package struct StoredDeviceToken {
    @usableFromInline
    let inline: InlineArray<4, UInt64>
    @usableFromInline
    let rest: UnsafeMutablePointer<UInt64>?
    @usableFromInline
    let countWord: UInt64

    package init(_ token: DeviceToken) {
        self.inline = [token.words[0], token.words[1], token.words[2], token.words[3]]
        self.countWord = token.words[12]
        guard token.count > 32 else {
            unsafe self.rest = nil
            return
        }
        let rest = UnsafeMutablePointer<UInt64>.allocate(capacity: 8)
        for index in 0..<8 { unsafe rest[index] = token.words[4 + index] }
        unsafe self.rest = rest
    }

    package func deallocate() {
        unsafe self.rest?.deallocate()
    }

    /// Appends the count of bytes, one byte, and the bytes.
    package func store(to buffer: inout ByteBuffer) {
        let count = UInt8(truncatingIfNeeded: self.countWord >> 32)
        buffer.append(count)
        guard count == 32 else { return self.token.withBytes { buffer.append($0) } }
        for index in 0..<4 { buffer.append(word: self.inline[index]) }
    }

    /// The token.
    package var token: DeviceToken {
        var token = DeviceToken()
        for index in 0..<4 { token.words[index] = self.inline[index] }
        token.words[12] = self.countWord
        if let rest = unsafe self.rest {
            for index in 0..<8 { unsafe token.words[4 + index] = rest[index] }
        }
        return token
    }

    /// Whether this is `token`.
    @inlinable
    package func matches(_ token: borrowing DeviceToken) -> Bool {
        var difference = self.countWord ^ token.words[12]
        for index in 0..<4 { difference |= self.inline[index] ^ token.words[index] }
        guard difference == 0 else { return false }
        if let rest = unsafe self.rest {
            for index in 0..<8 { unsafe difference |= rest[index] ^ token.words[4 + index] }
        }
        return difference == 0
    }
}
