/// What the request line of a push says: the method, and the path with the device token in it.
package enum PushTarget {
    /// The path of every push, before the token.
    private static let prefix: StaticString = "/3/device/"

    /// Checks method and path, in this order, and reads the token.
    ///
    /// `/3/device` without the last slash is not the path of a push.
    /// - `path`: The path with its query, as received.
    /// - `token`: Where the token is written.
    /// - Returns: Whether there is one: an even number of hexadecimal digits, 32 to 200 of them. That there is none is
    ///   the last thing a push is refused for of those that need no knowledge of devices; `token` is without meaning
    ///   then.
    /// - Throws: `methodNotAllowed`; `missingDeviceToken` for `/3/device/`; `badPath` for every other path that is not
    ///   `/3/device/` and one more segment, and for any query.
    package static func readToken(
        method: ByteView,
        path: ByteView,
        into token: inout DeviceToken
    ) throws(APNSReason) -> Bool {
        guard method == "POST" else { throw .methodNotAllowed }
        guard path.starts(with: self.prefix) else { throw .badPath }
        let digits = path.dropFirst(ByteView(self.prefix).count)
        guard !digits.isEmpty else { throw .missingDeviceToken }
        // Among digits there is no delimiter.
        if DeviceToken.parse(digits, into: &token) { return true }
        guard !self.hasDelimiter(digits) else { throw .badPath }
        return false
    }

    /// Whether a `/` or a `?` is among the characters.
    private static func hasDelimiter(_ text: ByteView) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var index = 0
        while index + 8 <= text.count {
            let word = text.word(at: index)
            // The two characters differ in one bit, and so do no others from both.
            let difference = (word | ones &* 0x10) ^ ones &* UInt64(UInt8(ascii: "?"))
            guard (difference &- ones) & ~difference & (ones &* 0x80) == 0 else { return true }
            index += 8
        }
        while index < text.count {
            guard text[index] | 0x10 != UInt8(ascii: "?") else { return true }
            index += 1
        }
        return false
    }
}
