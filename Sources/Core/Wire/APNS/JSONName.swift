/// The characters between the quotes of a JSON string that has been found well-formed.
struct JSONName {
    let text: ByteView
    let hasEscapes: Bool

    /// Whether the string is `name`, once escapes are resolved. `name` is made of letters and hyphens, which have no
    /// escape other than `\u`.
    func reads(_ name: StaticString) -> Bool {
        guard self.hasEscapes else { return self.text == name }
        let name = ByteView(name)
        var index = 0
        for position in 0..<name.count {
            guard index < self.text.count else { return false }
            guard self.text[index] == UInt8(ascii: "\\") else {
                guard self.text[index] == name[position] else { return false }
                index += 1
                continue
            }
            guard self.text[index + 1] == UInt8(ascii: "u"),
                self.codeUnit(at: index + 2) == UInt16(name[position])
            else { return false }
            index += 6
        }
        return index == self.text.count
    }

    /// The number that four hexadecimal digits stand for.
    private func codeUnit(at index: Int) -> UInt16 {
        var value: UInt16 = 0
        for digit in 0..<4 { value = value << 4 | UInt16(self.text[index + digit].hexDigitValue ?? 0) }
        return value
    }
}
