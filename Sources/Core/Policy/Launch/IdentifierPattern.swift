/// What a configuration permits, or a worker takes: an identifier or a session's name, or all that begin alike.
package struct IdentifierPattern: Hashable, Sendable {
    /// The identifier, or, with `.*` at its end, the beginning and `.*` for one or more further characters.
    package let text: String
    /// The identifier, or what all begin with that the pattern stands for, up to the dot.
    package let stem: String
    /// Whether it stands for one identifier alone.
    package let isExact: Bool

    /// The longest identifier and the longest pattern, in bytes.
    package static let bytesMax = 255

    package init(_ text: String) {
        self.text = text
        self.isExact = !text.utf8.suffix(2).elementsEqual(".*".utf8)
        self.stem = self.isExact ? text : String(text.dropLast())
    }

    /// Whether `identifier` is one of those that the pattern stands for.
    package func matches(_ identifier: String) -> Bool {
        // Equal strings may be of other characters, which are more bytes.
        guard !self.isExact else { return identifier.utf8.count == self.stem.utf8.count && identifier == self.stem }
        return identifier.utf8.count > self.stem.utf8.count && identifier.utf8.starts(with: self.stem.utf8)
    }

    /// Whether it is an identifier, or one and `.*`.
    package var isWellFormed: Bool {
        guard self.text.utf8.count <= Self.bytesMax else { return false }
        return Self.isIdentifier(self.text.utf8.dropLast(self.isExact ? 0 : 2))
    }

    /// Whether `text` can name a task or a session: 1 to 255 characters of A-Z a-z 0-9 . - _.
    package static func isIdentifier(_ text: some Collection<UInt8>) -> Bool {
        guard !text.isEmpty, text.count <= Self.bytesMax else { return false }
        return text.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
