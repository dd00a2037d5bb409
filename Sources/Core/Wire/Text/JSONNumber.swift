/// A JSON number as it was written, so that no decimal is lost.
package struct JSONNumber: Hashable, Sendable {
    /// The number's text, as RFC 8259 allows it; JSON5 has infinities and NaN besides.
    package let text: String

    /// - Parameter text: a number as RFC 8259 allows it.
    init(text: String) {
        self.text = text
    }

    package init(_ double: Double) {
        self.text = Self.text(of: double)
    }

    /// A number without a fraction that says nothing.
    package static func text(of double: Double) -> String {
        let text = String(double)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// The nearest double; infinite when it is too large for one.
    package var double: Double { Double(self.text) ?? .infinity }

    /// A number of seconds in whole milliseconds.
    package enum Milliseconds: Hashable, Sendable {
        case exact(Int64)
        /// There are more than three decimals that are not zero.
        case tooFine
        case tooLarge
    }

    /// The number, taken as seconds, in milliseconds. Computed from the digits: a double would round.
    package var milliseconds: Milliseconds {
        var digits: [UInt8] = []
        var shift = 3
        var isNegative = false
        var isFraction = false
        var bytes = self.text.utf8[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "-") {
                isNegative = true
            } else if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                let exponent = Int(String(Substring(bytes)))
                // An exponent past any integer keeps its sign: far too large, or far too fine.
                let saturated = bytes.first == UInt8(ascii: "-") ? -1_000_000 : 1_000_000
                shift += max(-1_000_000, min(exponent ?? saturated, 1_000_000))
                break
            } else {
                if isFraction { shift -= 1 }
                if byte != UInt8(ascii: "0") || !digits.isEmpty { digits.append(byte - UInt8(ascii: "0")) }
            }
        }
        while digits.last == 0 {
            digits.removeLast()
            shift += 1
        }
        guard !digits.isEmpty else { return .exact(0) }
        guard shift >= 0 else { return .tooFine }
        guard digits.count + shift <= 18 else { return .tooLarge }
        var value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1) }
        for _ in 0..<shift { value *= 10 }
        return .exact(isNegative ? -value : value)
    }
}
