import Testing
import Wire

@Suite("Nearest matches for misspelled words")
struct NearestMatchTests {
    private let names = ["launchInterval", "dailyLaunches", "edge", "admin"]

    @Test(
        "A misspelled name is corrected; a text too far from every name is not",
        arguments: [
            ("launchIntervl", "launchInterval"), ("LAUNCHINTERVAL", "launchInterval"), ("egde", "edge"),
            ("adminn", "admin"), ("dialyLaunches", "dailyLaunches"), ("ed", nil), ("xyz", nil), ("", nil),
        ]
    )
    func find(word: String, meant: String?) {
        #expect(NearestMatch.find(word, in: self.names) == meant)
    }

    @Test("The first of equally near names is taken, and a very long word is not compared")
    func bounds() {
        #expect(NearestMatch.find("cat", in: ["bat", "rat"]) == "bat")
        let long = String(repeating: "a", count: 129)
        #expect(NearestMatch.find(long, in: [long]) == nil)
        #expect(NearestMatch.find(String(long.dropLast()), in: [String(long.dropLast())]) != nil)
    }
}

@Suite("Percent encoding")
struct PercentEncodingTests {
    @Test(
        "Encoded text is decoded once, with digits of either case",
        arguments: [
            ("", ""), ("com.example", "com.example"), ("a%20b", "a b"), ("%c3%A4", "\u{e4}"), ("%2541", "%41"),
            ("a+b", "a+b"), ("%00", "\u{0}"),
        ]
    )
    func decoded(written: String, text: String) {
        #expect(written.percentDecoded == text)
        #expect("<\(written)>".dropFirst().dropLast().percentDecoded == text)
    }

    @Test("Invalid escapes and bad UTF-8 yield nil", arguments: ["%", "a%4", "%g0", "%0g", "%-1", "%ff", "%c3"])
    func refused(written: String) {
        #expect(written.percentDecoded == nil)
    }
}

@Suite("The filter of text that a terminal shows")
struct TerminalTextTests {
    /// Every character that a terminal interprets, or that changes the display order of others.
    static let hidden: [Unicode.Scalar] = {
        let ranges: [ClosedRange<UInt32>] = [
            0x00...0x1F, 0x7F...0x9F, 0x061C...0x061C, 0x200B...0x200B, 0x200E...0x200F, 0x2028...0x202E,
            0x2060...0x2069, 0xFEFF...0xFEFF, 0xFFF9...0xFFFB, 0xE0001...0xE0001, 0xE0020...0xE007F,
        ]
        return ranges.joined().compactMap { Unicode.Scalar($0) }
    }()

    @Test("Control characters and bidirectional controls become question marks in a line", arguments: hidden)
    func line(scalar: Unicode.Scalar) {
        #expect(TerminalText.sanitized("a\(scalar)b").unicodeScalars.elementsEqual("a?b".unicodeScalars))
    }

    @Test("Lines keep their line feeds and tabs, and no other control characters", arguments: hidden)
    func lines(scalar: Unicode.Scalar) {
        let expected = scalar == "\n" || scalar == "\t" ? "a\(scalar)b" : "a?b"
        #expect(TerminalText.lines("a\(scalar)b").unicodeScalars.elementsEqual(expected.unicodeScalars))
    }

    @Test("Filtered JSON says the same, without a character that is not shown", arguments: hidden)
    func json(scalar: Unicode.Scalar) throws {
        let text = "a\(scalar)b"
        // ASCII control characters are always escaped in a JSON string.
        let written = scalar.value < 0x20 ? TerminalText.escaped(scalar) : String(scalar)
        let filtered = TerminalText.json("{\r\n\t\"name\": \"a\(written)b\"}\n")
        #expect(filtered.unicodeScalars.allSatisfy { TerminalText.isShown($0) || $0 == "\n" || $0 == "\t" })
        let value = try JSONReader.read(filtered)
        #expect(value["name"] == .string(text))
    }

    @Test("Text of every script, emoji with joiners and combining marks pass the filter unchanged")
    func shown() {
        let text = "Grüße, 日本語, שלום, نرم\u{200C}افزار, 👩\u{200D}💻, e\u{301}, ✓ 100 %"
        #expect(TerminalText.sanitized(text) == text)
        #expect(TerminalText.lines(text) == text)
        #expect(TerminalText.json(text) == text)
    }

    @Test("CR LF counts as two characters, so that neither hides in a grapheme cluster")
    func graphemes() {
        #expect(TerminalText.sanitized("a\r\nb") == "a??b")
        #expect(TerminalText.lines("a\r\nb") == "a?\nb")
        #expect(TerminalText.sanitized("e\u{202E}\u{301}") == "e?\u{301}")
    }
}
