import CommandLineTool
import Testing

@Suite("Text as wide as a terminal")
struct WrappedTextTests {
    @Test("A sentence that is too long goes on below itself, and no word of it is lost", arguments: 12...90)
    func sentence(width: Int) {
        let text =
            "The push waits until 2026-11-21T07:35:00Z: the last launch was at 2026-11-21T07:20:00Z, and launches "
            + "of priority 5 are 900 s apart."
        let lines = WrappedText.lines(text, width: width)
        #expect(lines.allSatisfy { $0.count <= width })
        #expect(lines.joined().filter { $0 != " " } == text.filter { $0 != " " })
        if width > 30 {
            let words = lines.flatMap { $0.split(separator: " ") }
            #expect(words == text.split(separator: " "), "no word is broken that has room")
        }
    }

    @Test("A value goes on below itself, and what has room stays as it is")
    func value() {
        let row = "conditions          battery=1 lowPowerMode=false network=true"
        #expect(WrappedText.lines(row + "\n\nnext", width: 80) == [row, "", "next"])
        let indent = String(repeating: " ", count: 20)
        let wrapped = ["conditions          battery=1", indent + "lowPowerMode=false", indent + "network=true"]
        #expect(WrappedText.lines(row, width: 40) == wrapped)
        #expect(WrappedText.lines(row, width: 0) == [row], "no terminal")
    }

    @Test("A word that has no room anywhere is broken")
    func word() {
        #expect(
            WrappedText.lines(String(repeating: "a", count: 25), width: 10) == [
                "aaaaaaaaaa", "  aaaaaaaa", "  aaaaaaa",
            ]
        )
        #expect(WrappedText.lines("ab", width: 1) == ["a", "b"])
    }

    @Test("Every moment is rounded the same way: up", arguments: [(999, 1), (1000, 1), (1001, 2), (0, 0)])
    func moment(milliseconds: Int, seconds: Int) {
        #expect(TimeText.instant(Double(milliseconds)) == "1970-01-01T00:00:0\(seconds)Z")
    }

    @Test(
        "A wait is as long as from one moment to the other, as both are told",
        arguments: [(900_000, "15 min"), (900_100, "15 min"), (899_000, "14 min 59 s"), (-900_000, "0 s")]
    )
    func wait(milliseconds: Int, text: String) {
        for now in [0, 1, 999] {
            let told = (milliseconds + now + 999) / 1000 - (now + 999) / 1000
            let wait = TimeText.wait(until: Double(milliseconds + now), now: Int64(now))
            #expect(wait == TimeText.duration(seconds: told))
            if milliseconds % 1000 == 0 { #expect(wait == text) }
        }
    }
}
