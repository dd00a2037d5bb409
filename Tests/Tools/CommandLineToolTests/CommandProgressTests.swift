import CommandLineTool
import Testing

@Suite("Progress that a command tells", .timeLimit(.minutes(15)))
struct CommandProgressTests {
    @Test(
        "A line is a report, or nothing",
        arguments: [
            ("progress 10/100 Exporting", CommandProgress(completed: 10, total: 100, text: "Exporting")),
            ("progress 0/0", CommandProgress(completed: 0, total: 0)),
            ("progress 7/9 ", CommandProgress(completed: 7, total: 9)),
            ("progress\t7/9\r", CommandProgress(completed: 7, total: 9)),
            ("  progress   1/2   a  b \r", CommandProgress(completed: 1, total: 2, text: "a  b")),
            (
                "progress 9007199254740991/9007199254740991",
                CommandProgress(completed: CommandProgress.countMax, total: CommandProgress.countMax)
            ),
            ("progress 9007199254740992/1", nil), ("progress 9223372036854775808/1", nil), ("progress -1/2", nil),
            ("progress 1", nil), ("progress 1/", nil),
            ("progress /1", nil), ("progress 1/2/3", nil), ("progress 1.5/2", nil), ("progress +1/2", nil),
            ("Progress 1/2", nil), ("progress", nil), ("", nil), ("progress ١/٢", nil),
        ] as [(String, CommandProgress?)]
    )
    func lines(line: String, progress: CommandProgress?) {
        #expect(CommandProgress(line: Array(line.utf8)) == progress)
    }

    @Test("A text is cut between two characters, within what a gateway takes")
    func longText() throws {
        let line = "progress 1/2 " + String(repeating: "é", count: 200)
        let text = try #require(CommandProgress(line: Array(line.utf8))?.text)
        #expect(text == String(repeating: "é", count: 128))
        let wide = "progress 1/2 a" + String(repeating: "👩‍👩‍👧‍👦", count: 20)
        let cut = try #require(CommandProgress(line: Array(wide.utf8))?.text)
        #expect(cut == "a" + String(repeating: "👩‍👩‍👧‍👦", count: 10))
    }

    @Test("Only whole lines count, however they come in pieces, and of many the newest", arguments: 1...9)
    func pieces(size: Int) {
        let text = Array("progress 1/9\n\nprogress 2/9 two\nnonsense\nprogress 3".utf8)
        var lines = ProgressLines()
        var newest: [CommandProgress] = []
        var faults: [String] = []
        for start in stride(from: 0, to: text.count, by: size) {
            let reading = lines.received(text[start..<min(start + size, text.count)])
            if let progress = reading.newest { newest.append(progress) }
            if let fault = reading.fault { faults.append(String(decoding: fault, as: UTF8.self)) }
        }
        #expect(newest.last == CommandProgress(completed: 2, total: 9, text: "two"))
        #expect(newest.first == CommandProgress(completed: 1, total: 9))
        #expect(faults == ["nonsense"])
        let rest = lines.received(Array("/9\n".utf8)[...])
        #expect(rest.newest == CommandProgress(completed: 3, total: 9))
    }

    @Test("Of one piece the newest line counts, and a line that is none hides it not")
    func newest() {
        var lines = ProgressLines()
        let reading = lines.received(Array("progress 1/9\nprogress 2/9\n?\nprogress 5/9 x\nwhat\n".utf8)[...])
        #expect(reading.newest == CommandProgress(completed: 5, total: 9, text: "x"))
        #expect(reading.fault == Array("?".utf8))
    }

    @Test("A line without end takes no more memory, is left out, and the next one counts", arguments: [0, 1, 70_000])
    func endless(more: Int) {
        var lines = ProgressLines()
        let start = Array("progress 1/2 ".utf8)
        let full = start + [UInt8](repeating: 0x61, count: ProgressLines.lineBytesMax - start.count)
        #expect(lines.received(full[...]) == ProgressLines.Reading())
        #expect(lines.received([UInt8](repeating: 0x61, count: more)[...]) == ProgressLines.Reading())
        let end = lines.received([0x0A])
        #expect((end.newest != nil) == (more == 0))
        #expect((end.fault == nil) == (more == 0))
        #expect((end.fault?.count ?? 0) <= ProgressLines.lineBytesMax)
        #expect(lines.received(Array("progress 2/2\n".utf8)[...]).newest == CommandProgress(completed: 2, total: 2))
    }

    @Test("The first is told at once, then the newest a second later, and the last at the end")
    func pace() {
        func progress(_ completed: Int64) -> CommandProgress { CommandProgress(completed: completed, total: 1000) }
        var pacer = ProgressPacer()
        #expect(pacer.nextMoment == nil)
        #expect(pacer.due(now: 50) == nil)
        pacer.reported(progress(1))
        #expect(pacer.due(now: 50) == progress(1))
        for completed in 2...500 { pacer.reported(progress(Int64(completed))) }
        #expect(pacer.nextMoment == 1050)
        #expect(pacer.due(now: 1049) == nil)
        #expect(pacer.due(now: 1050) == progress(500))
        #expect(pacer.due(now: 9000) == nil)
        // What was told is not told again.
        pacer.reported(progress(500))
        #expect(pacer.nextMoment == nil)
        pacer.reported(progress(600))
        #expect(pacer.due(now: 9000) == progress(600))
        pacer.reported(progress(700))
        pacer.reported(progress(1000))
        #expect(pacer.ended() == progress(1000))
        #expect(pacer.ended() == nil)
        #expect(pacer.nextMoment == nil)
    }

    @Test("Whoever tells something new at every moment is told of once a second")
    func flood() {
        var pacer = ProgressPacer()
        var told = 0
        for now in Int64(0)..<10_000 {
            pacer.reported(CommandProgress(completed: now, total: 10_000))
            if pacer.due(now: now) != nil { told += 1 }
        }
        #expect(told == 10)
        #expect(pacer.ended() == CommandProgress(completed: 9999, total: 10_000))
    }
}
