/// Names a transfer: 128 unpredictable bits, 32 hexadecimal digits as text.
package struct TransferID: Hashable, BitwiseCopyable, Sendable, CustomStringConvertible {
    package let first: UInt64
    package let second: UInt64

    package init(_ bits: (UInt64, UInt64)) {
        self.first = bits.0
        self.second = bits.1
    }

    /// - Returns: nil unless there are 32 digits in lower case.
    package init?(_ text: some StringProtocol) {
        let digits = Array(text.utf8)
        guard digits.count == 32 else { return nil }
        var words: [UInt64] = [0, 0]
        for (index, digit) in digits.enumerated() {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.first = words[0]
        self.second = words[1]
    }

    package var description: String { Self.digits(self.first) + Self.digits(self.second) }

    private static func digits(_ word: UInt64) -> String {
        let text = String(word, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}
