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
