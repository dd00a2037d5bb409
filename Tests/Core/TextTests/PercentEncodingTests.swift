import Testing
import Wire

@Suite("Percent encoding")
struct PercentEncodingTests {
    @Test(
        "What is encoded is decoded once, whichever case its digits have",
        arguments: [
            ("", ""), ("com.example", "com.example"), ("a%20b", "a b"), ("%c3%A4", "\u{e4}"), ("%2541", "%41"),
            ("a+b", "a+b"), ("%00", "\u{0}"),
        ]
    )
    func decoded(written: String, text: String) {
        #expect(written.percentDecoded == text)
        #expect("<\(written)>".dropFirst().dropLast().percentDecoded == text)
    }

    @Test("What is cut, no digit, or no UTF-8 is nothing", arguments: ["%", "a%4", "%g0", "%0g", "%-1", "%ff", "%c3"])
    func refused(written: String) {
        #expect(written.percentDecoded == nil)
    }
}
