import Testing
import Wire

@Suite("Numbers of JSON")
struct JSONNumberTests {
    @Test(
        "A number of any size is taken as seconds, or said to be too large or too fine",
        arguments: [
            ("0", .exact(0)), ("-0", .exact(0)), ("-0.000", .exact(0)), ("0e999999999999999999999", .exact(0)),
            ("1.5", .exact(1500)), ("-1.5", .exact(-1500)), ("1e3", .exact(1_000_000)), ("0.0005", .tooFine),
            ("1e-400", .tooFine), ("1e-99999999999999999999", .tooFine), ("1e999", .tooLarge), ("1e308", .tooLarge),
            ("9223372036854775807", .tooLarge), ("-9223372036854775808", .tooLarge),
            ("1e99999999999999999999", .tooLarge), ("999999999999999", .exact(999_999_999_999_999_000)),
        ] as [(String, JSONNumber.Milliseconds)]
    )
    func milliseconds(text: String, expected: JSONNumber.Milliseconds) throws {
        guard case .number(let number) = try JSONReader.read(text) else {
            Issue.record("no number")
            return
        }
        #expect(number.milliseconds == expected)
        // Infinite past every double, and never none.
        #expect(!number.double.isNaN)
    }
}
