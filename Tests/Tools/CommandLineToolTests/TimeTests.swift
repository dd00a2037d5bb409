import CommandLineTool
import Testing
import Wire
import wakegate

@Suite("When a task may begin, as the command line says it", .timeLimit(.minutes(15)))
struct TaskMomentTests {
    @Test(
        "A duration is that long from now, and an instant is itself",
        arguments: [
            ("15m", 1_000_900_500), ("0s", 1_000_000_500), ("2h", 1_007_200_500), ("1d", 1_086_400_500),
            ("15", 1_000_015_500), ("1.5h", 1_005_400_500),
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
        "Any other text is refused with what to write",
        arguments: [
            "", "m", "-1m", "+1m", "1.0005s", "1w", "1795453200", "1 m", "99999999999999999999s",
            "9223372036854775807d", "9223372036854775s", "2026-11-23", "2026-11-23T17:00", "2026-11-23T17:00:00",
            "2026-11-23T17:00:00.Z",
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

@Suite("Durations")
struct DurationTextTests {
    @Test(
        "A number is seconds, and a unit multiplies it",
        arguments: [
            ("0", 0), ("90", 90_000), ("0.5", 500), ("1.25", 1250), ("0.001s", 1), ("30s", 30_000), ("10m", 600_000),
            ("1h", 3_600_000), ("7d", 604_800_000), ("0.5h", 1_800_000), ("36525d", 3_155_760_000_000),
        ] as [(String, Int64)]
    )
    func durations(text: String, milliseconds: Int64) {
        #expect(DurationText.milliseconds(text) == milliseconds)
    }

    @Test(
        "Any other text is refused",
        arguments: [
            "", "m", "-1", "+1", "1.", ".5", "1.0001", "1..5", "1.5.5", "1e3", "1 m", "1M", "1w", "1ms", "36526d",
            "9223372036854775807", "٣m", "1h30m", "NaN", "inf",
        ]
    )
    func faults(text: String) {
        #expect(DurationText.milliseconds(text) == nil)
    }
}

@Suite("Lifetimes of tokens")
struct TokenLifetimeTests {
    @Test(
        "A duration is that many seconds",
        arguments: [("90d", 7_776_000), ("12h", 43_200), ("5m", 300), ("1s", 1), ("90", 90), ("3650d", 315_360_000)]
            as [(String, Int64)]
    )
    func seconds(text: String, seconds: Int64) throws {
        #expect(try TokenLifetime.seconds(text) == seconds)
    }

    @Test(
        "Any other text is refused with what to write",
        arguments: [
            "", "d", "0d", "-1d", "0.5s", "1w", "1 d", "3651d", "9223372036854775807d", "99999999999999999999s",
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

@Suite("Text as wide as a terminal")
struct WrappedTextTests {
    @Test("A long sentence is wrapped below its beginning, without losing a word", arguments: 12...90)
    func sentence(width: Int) {
        let text =
            "The push waits until 2026-11-21T07:35:00Z: the last launch was at 2026-11-21T07:20:00Z, and launches "
            + "of priority 5 are 900 s apart."
        let lines = WrappedText.lines(text, width: width)
        #expect(lines.allSatisfy { $0.count <= width })
        #expect(lines.joined().filter { $0 != " " } == text.filter { $0 != " " })
        if width > 30 {
            let words = lines.flatMap { $0.split(separator: " ") }
            #expect(words == text.split(separator: " "), "a word that fits is not broken")
        }
    }

    @Test("A long value is wrapped below its beginning, and a short one stays unchanged")
    func value() {
        let row = "conditions          battery=1 lowPowerMode=false network=true"
        #expect(WrappedText.lines(row + "\n\nnext", width: 80) == [row, "", "next"])
        let indent = String(repeating: " ", count: 20)
        let wrapped = ["conditions          battery=1", indent + "lowPowerMode=false", indent + "network=true"]
        #expect(WrappedText.lines(row, width: 40) == wrapped)
        #expect(WrappedText.lines(row, width: 0) == [row], "no terminal")
    }

    @Test("A word that fits nowhere is broken")
    func word() {
        #expect(
            WrappedText.lines(String(repeating: "a", count: 25), width: 10) == [
                "aaaaaaaaaa", "  aaaaaaaa", "  aaaaaaa",
            ]
        )
        #expect(WrappedText.lines("ab", width: 1) == ["a", "b"])
    }

    @Test(
        "The time of a launch to come is rounded up, and every other time down",
        arguments: [(999, 0, 1), (1000, 1, 1), (1001, 1, 2), (0, 0, 0)]
    )
    func moment(milliseconds: Int, past: Int, due: Int) {
        #expect(TimeText.instant(Double(milliseconds)) == "1970-01-01T00:00:0\(past)Z")
        #expect(TimeText.due(Double(milliseconds)) == "1970-01-01T00:00:0\(due)Z")
    }

    @Test(
        "A wait is the difference between both times as printed",
        arguments: [(900_000, "15 min"), (900_100, "15 min"), (899_000, "14 min 59 s"), (-900_000, "0 s")]
    )
    func wait(milliseconds: Int, text: String) {
        for now in [0, 1, 999] {
            let told = (milliseconds + now + 999) / 1000 - (now + 999) / 1000
            let wait = TimeText.wait(until: Double(milliseconds + now), now: Int64(now))
            #expect(wait == DurationText.text(seconds: told))
            if milliseconds % 1000 == 0 { #expect(wait == text) }
        }
    }
}
