/// The filter for text that the command line and the log write: what other people chose must not reach a terminal as
/// it is.
///
/// A terminal obeys control characters, and it shows the text after a bidirectional control in another order, so that
/// a name can clear the screen or look like another name.
package enum TerminalText {
    /// Returns true if a terminal shows the character and does nothing else with it.
    ///
    /// Control characters (C0, DEL and C1), bidirectional controls and other invisible format characters, line and
    /// paragraph separators, private and unassigned characters are not shown. The two joiners are: Persian text and
    /// many emoji need them.
    package static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value >= 0x20 && scalar.value != 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: return false
        case .format: return scalar == "\u{200C}" || scalar == "\u{200D}"
        default: return true
        }
    }

    /// Returns the text as one line: each character that is not shown, line feeds and tabs included, becomes a question
    /// mark.
    package static func harmless(_ text: String) -> String {
        self.replacing(in: text) { _ in "?" }
    }

    /// Returns lines of text: each character that is not shown becomes a question mark, but line feeds and tabs stay.
    package static func lines(_ text: String) -> String {
        self.replacing(in: text) { $0 == "\n" || $0 == "\t" ? String($0) : "?" }
    }

    /// Returns JSON that says the same and contains only characters that are shown: the others become escapes of JSON.
    ///
    /// Line feeds and tabs between tokens stay; a carriage return there becomes a space.
    package static func json(_ text: String) -> String {
        self.replacing(in: text) { scalar in
            switch scalar {
            case "\n", "\t": String(scalar)
            case "\r": " "
            default: self.escaped(scalar)
            }
        }
    }

    /// Returns the escape of a character in a JSON string, such as `\u009b`; two escapes beyond U+FFFF.
    package static func escaped(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    private static func replacing(in text: String, _ replacement: (Unicode.Scalar) -> String) -> String {
        // Most text is printable ASCII, which needs no look at the tables of Unicode.
        guard !text.utf8.allSatisfy({ $0 &- 0x20 < 0x5F }) else { return text }
        var replaced = ""
        for scalar in text.unicodeScalars {
            if self.isShown(scalar) {
                replaced.unicodeScalars.append(scalar)
            } else {
                replaced += replacement(scalar)
            }
        }
        return replaced
    }
}

extension StringProtocol {
    /// The text with its `%41` decoded, as a query or a path of a URL has them (RFC 3986, section 2.1).
    ///
    /// Nil where a `%` is not followed by two hexadecimal digits, and where what comes out is not UTF-8.
    package var percentDecoded: String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.utf8.count)
        var rest = self.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(hexDigit), let low = rest.next().flatMap(hexDigit) else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// Finds what somebody meant to write.
package enum NearestMatch {
    /// The candidate closest to `word`, or nil when none is close enough to be meant.
    ///
    /// Letters are compared without regard to case. A candidate is close when at most one letter in three, and never
    /// more than three letters, have to change; of equally close ones the first wins.
    package static func find(_ word: String, in candidates: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased().unicodeScalars)
        // A word far longer than any name is no slip of the pen, and the table would be large.
        guard letters.count <= 128 else { return nil }
        var best: (candidate: String, distance: Int)?
        for candidate in candidates {
            let distance = self.distance(letters, Array(candidate.lowercased().unicodeScalars))
            let limit = min(3, max(1, max(letters.count, candidate.unicodeScalars.count) / 3))
            guard distance <= limit, distance < best?.distance ?? Int.max else { continue }
            best = (candidate, distance)
        }
        return best?.candidate
    }

    /// The least number of letters to insert, delete, replace or swap with their neighbour that turns one word into
    /// the other.
    private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in 0..<left.count {
            var current = [row + 1]
            for column in 0..<right.count {
                let replaced = last[column] + (left[row] == right[column] ? 0 : 1)
                var cost = min(replaced, last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
