import CommandLineTool
import Testing
import wakegate

@Suite("How long a token is good")
struct TokenLifetimeTests {
    @Test(
        "A number and a unit are that many seconds",
        arguments: [("90d", 7_776_000), ("12h", 43_200), ("5m", 300), ("1s", 1), ("3650d", 315_360_000)]
            as [(String, Int64)]
    )
    func seconds(text: String, seconds: Int64) throws {
        #expect(try TokenLifetime.seconds(text) == seconds)
    }

    @Test(
        "Everything else is refused with what to write",
        arguments: [
            "", "d", "90", "0d", "-1d", "1.5d", "1w", "1 d", "3651d", "9223372036854775807d", "99999999999999999999s",
        ]
    )
    func wrong(text: String) {
        #expect {
            try TokenLifetime.seconds(text)
        } throws: {
            "\($0)".contains("--expires is \"\(text)\"") && "\($0)".contains("such as 90d")
        }
    }
}
