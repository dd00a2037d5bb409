/// What the header fields of a push say, checked. The views are those `PushHeaders` was given.
package struct PushHead {
    /// The most bytes of a collapse id.
    package static let collapseIDBytesMax = 64

    /// The most bytes of a topic.
    package static let topicBytesMax = 255

    /// The identifier the sender chose; nil asks for a new one.
    package let id: APNsID?
    package let expiration: PushExpiration
    package let priority: PushPriority
    /// Nil when the sender did not say.
    package let type: PushType?
    /// At most 64 bytes; an empty one counts as absent.
    package let collapseID: ByteView
    /// 1 to 255 bytes, each a letter, a digit, `.`, `_` or `-`.
    package let topic: ByteView
    package let isDryRun: Bool

    /// Whether `text` may be a topic: 1 to 255 characters out of A-Z, a-z, 0-9, `.`, `_` and `-`.
    package static func isTopic(_ text: ByteView) -> Bool {
        guard !text.isEmpty, text.count <= self.topicBytesMax else { return false }
        // One bit for each ASCII character from 0, and from 64 on: `-`, `.` and digits; letters and `_`.
        let lower: UInt64 = 0x03FF_6000_0000_0000
        let upper: UInt64 = 0x07FF_FFFE_87FF_FFFE
        for index in 0..<text.count {
            let byte = text[index]
            guard byte < 0x80, (byte < 64 ? lower : upper) >> UInt64(byte & 63) & 1 == 1 else { return false }
        }
        return true
    }
}
