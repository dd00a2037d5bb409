/// A filter for the text that the command line and the log print. Text from other sources must not reach a terminal
/// unfiltered.
///
/// A terminal interprets control characters, and it reorders the text after a bidirectional control. Without the
/// filter, a name could clear the screen or look like another name.
package enum TerminalText {
    /// Returns true if a terminal displays the character and does nothing else.
    ///
    /// The function returns false for control characters (C0, DEL and C1), line and paragraph separators, and private
    /// or unassigned characters. It also returns false for bidirectional controls and other invisible format
    /// characters. The two joiners are shown, because Persian text and many emoji need them.
    package static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value >= 0x20 && scalar.value != 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: return false
        case .format: return scalar == "\u{200C}" || scalar == "\u{200D}"
        default: return true
        }
    }

    /// Returns the text as one line. A question mark replaces each character that is not shown, such as a line feed or
    /// tab.
    package static func sanitized(_ text: String) -> String {
        self.replacing(in: text) { _ in "?" }
    }

    /// Returns the text with its line feeds and tabs. A question mark replaces each other character that is not shown.
    package static func lines(_ text: String) -> String {
        self.replacing(in: text) { $0 == "\n" || $0 == "\t" ? String($0) : "?" }
    }

    /// Returns equivalent JSON in which every character is shown. Other characters become escapes.
    ///
    /// Line feeds and tabs between tokens remain, and a carriage return becomes a space.
    package static func json(_ text: String) -> String {
        self.replacing(in: text) { scalar in
            switch scalar {
            case "\n", "\t": String(scalar)
            case "\r": " "
            default: self.escaped(scalar)
            }
        }
    }

    /// Returns the JSON escape of a character, such as `\u009b`. A character beyond U+FFFF becomes two escapes.
    package static func escaped(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    private static func replacing(in text: String, _ replacement: (Unicode.Scalar) -> String) -> String {
        // This path is fast: most text is printable ASCII and needs no Unicode tables.
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
    /// The text with percent-encoded bytes decoded, such as `%41` in the path or query of a URL (RFC 3986, section
    /// 2.1).
    ///
    /// The value is nil if a `%` is not followed by two hexadecimal digits, or if the result is not UTF-8.
    package var percentDecoded: String? {
        self.percentDecodedBytes.flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The bytes of the text with percent-encoded bytes decoded; nil if a `%` is not followed by two hexadecimal
    /// digits.
    package var percentDecodedBytes: [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.utf8.count)
        var rest = self.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next()?.hexDigitValue, let low = rest.next()?.hexDigitValue else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

/// Finds the known name that is most similar to a misspelled word.
package enum NearestMatch {
    /// Returns the candidate closest to `word`; nil if none is close enough.
    ///
    /// The comparison ignores case. A candidate is close if at most three letters have to change, and at most one
    /// letter in three. The first of several equally close candidates is returned.
    package static func find(_ word: String, in candidates: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased().unicodeScalars)
        // A much longer word is not a misspelling, and its table of distances would be large.
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

    /// Returns the minimum number of edits that turn one word into the other. An edit inserts, deletes or replaces a
    /// letter, or swaps two adjacent letters.
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
