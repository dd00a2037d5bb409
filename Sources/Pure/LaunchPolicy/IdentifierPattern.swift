/// What a configuration permits: an identifier, or all that begin alike.
package struct IdentifierPattern: Hashable, Sendable {
    /// The identifier, or, with `.*` at its end, the beginning and `.*` for one or more further characters.
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    /// Whether `identifier` is one of those that the pattern stands for.
    package func matches(_ identifier: String) -> Bool {
        let pattern = self.text.utf8
        guard pattern.suffix(2).elementsEqual([UInt8(ascii: "."), UInt8(ascii: "*")]) else {
            return identifier.utf8.elementsEqual(pattern)
        }
        let beginning = pattern.dropLast()
        return identifier.utf8.count > beginning.count && identifier.utf8.starts(with: beginning)
    }
}
