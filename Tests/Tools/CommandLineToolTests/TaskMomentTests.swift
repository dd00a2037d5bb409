import CommandLineTool
import Testing

@Suite("When a task may begin, as the command line says it", .timeLimit(.minutes(15)))
struct TaskMomentTests {
    @Test(
        "A number and a unit are that long from now, and an instant is itself",
        arguments: [
            ("15m", 1_000_900_500), ("0s", 1_000_000_500), ("2h", 1_007_200_500), ("1d", 1_086_400_500),
            ("1970-01-01T00:00:00Z", 0), ("2026-11-23T17:00:00Z", 1_795_453_200_000),
            ("2026-11-23t17:00:00.25z", 1_795_453_200_250), ("2026-11-23 18:00:00.123999+01:00", 1_795_453_200_123),
            ("2026-11-23T11:30:00-05:30", 1_795_453_200_000), ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000), ("1970-03-01T00:00:00Z", 5_097_600_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999), ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] as [(String, Int64)]
    )
    func moments(text: String, moment: Int64) throws {
        #expect(try TaskMoment.milliseconds(text, now: 1_000_000_500) == moment)
    }

    @Test(
        "Everything else is refused with what to write",
        arguments: [
            "", "m", "15", "-1m", "+1m", "1.5h", "1w", "1 m", "99999999999999999999s", "9223372036854775807d",
            "9223372036854775s", "2026-11-23", "2026-11-23T17:00", "2026-11-23T17:00:00", "2026-11-23T17:00:00.Z",
            "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z",
            "2026-11-23T24:00:00Z", "2026-11-23T17:60:00Z", "2026-11-23T17:00:00+1:00", "2026-11-23T17:00:00+24:00",
            "1969-12-31T23:59:59Z", "1900-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00",
            "٢٠٢٦-11-23T17:00:00Z", "now",
        ]
    )
    func faults(text: String) {
        #expect {
            try TaskMoment.milliseconds(text, now: 0)
        } throws: {
            ($0 as? CommandFailure)?.status == .badUsage
                && "\($0)".hasPrefix("--earliest-begin is \"\(text)\"; write how long from now, such as 15m")
        }
    }
}
