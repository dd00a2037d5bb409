/// What a configuration permits: an identifier, or all that begin alike.
package struct IdentifierPattern: Hashable, Sendable {
    /// The identifier, or, with `.*` at its end, the beginning and `.*` for one or more further characters.
    package let text: String

    /// The longest identifier and the longest pattern, in bytes.
    package static let bytesMax = 255

    package init(_ text: String) {
        self.text = text
    }

    /// Whether `identifier` is one of those that the pattern stands for.
    package func matches(_ identifier: String) -> Bool {
        guard let beginning = self.beginning else { return identifier.utf8.elementsEqual(self.text.utf8) }
        return identifier.utf8.count > beginning.utf8.count && identifier.utf8.starts(with: beginning.utf8)
    }

    /// What all that it stands for begin with, up to the dot; nil when it is one identifier.
    package var beginning: Substring? {
        self.text.utf8.suffix(2).elementsEqual(".*".utf8) ? self.text.dropLast() : nil
    }

    /// Whether it is an identifier, or one and `.*`.
    package var isWellFormed: Bool {
        guard self.text.utf8.count <= Self.bytesMax else { return false }
        return Self.isIdentifier(self.text.utf8.dropLast(self.beginning == nil ? 0 : 2))
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
