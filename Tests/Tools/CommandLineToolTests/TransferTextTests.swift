import BackgroundTransfers
import CommandLineTool
import Foundation
import Testing
import Wire

@Suite("Text about transfers", .timeLimit(.minutes(15)))
struct TransferTextTests {
    @Test(
        "Numbers of bytes are in the largest unit that leaves at least one",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345, "12.3 kB"), (999_949, "999.9 kB"),
            (999_950, "1.0 MB"), (27_000_000, "27.0 MB"), (.max, "9.2 EB"), (-5, "0 B"),
        ] as [(Int64, String)]
    )
    func bytes(count: Int64, text: String) {
        #expect(ByteText.text(count) == text)
    }

    @Test("The rate is that of the last seconds, and starts over with the entity")
    func meter() {
        var meter = RateMeter(window: 5000)
        #expect(meter.rate == nil)
        for second in 0...10 { meter.saw(Double(second) * 1000, at: Int64(second) * 1000) }
        #expect(meter.rate == 1000)
        // No bytes have arrived for the length of the window.
        meter.saw(10_000, at: 12_500)
        #expect((meter.rate ?? 0) < 800)
        for second in 13...20 { meter.saw(10_000, at: Int64(second) * 1000) }
        #expect(meter.rate == 0)
        meter.saw(0, at: 21_000)
        #expect(meter.rate == nil)
        meter.saw(500, at: 22_000)
        #expect(meter.rate == 500)
    }

    @Test("A line has the known values: part, bytes, rate, remaining time, and what holds it")
    func line() {
        let whole = TransferProgressLine(count: 1, endedCount: 0, bytes: 45, total: 100, rate: 11)
        #expect(whole.text == "45 %  45 B of 100 B  11 B/s  5 s left")
        let several = TransferProgressLine(count: 3, endedCount: 1, bytes: 45, total: nil, rate: 11)
        #expect(several.text == "45 B  11 B/s  1 of 3 ended")
        let stalled = TransferProgressLine(count: 1, endedCount: 0, bytes: 0, total: 9, rate: 0, why: "It\u{1B} waits.")
        #expect(stalled.text == "0 %  0 B of 9 B  0 B/s  It? waits.")
        let empty = TransferProgressLine(count: 1, endedCount: 1, bytes: 0, total: 0, rate: nil)
        #expect(empty.text == "100 %  0 B of 0 B")
    }

    @Test("A bar fills the terminal and no more, and is left out without space")
    func bar() {
        let line = TransferProgressLine(count: 1, endedCount: 0, bytes: 50, total: 100, rate: nil)
        #expect(line.bar(width: 44) == "[==========>          ] 50 %  50 B of 100 B")
        #expect(line.bar(width: 200).count == 40 + 3 + line.text.count)
        #expect(line.bar(width: 25) == line.text)
        #expect(line.bar(width: 5) == "50 %")
        let full = TransferProgressLine(count: 1, endedCount: 1, bytes: 100, total: 100, rate: nil)
        #expect(full.bar(width: 43).hasPrefix("[=================="))
        for width in 1...120 { #expect(full.bar(width: width).count < max(2, width)) }
        let unknown = TransferProgressLine(count: 1, endedCount: 0, bytes: 50, total: nil, rate: nil)
        #expect(unknown.bar(width: 80) == "50 B")
    }

    private static func transfer(_ members: String) throws -> BackgroundTransfer {
        let id = String(repeating: "0a", count: 16)
        let text = #"{"transfer":"\#(id)","session":"s","kind":"download","url":"http://h/f",\#(members)}"#
        return try #require(BackgroundTransfer(try JSONReader.read(text)))
    }

    @Test("A list shows the progress of each transfer, and what holds it")
    func list() throws {
        #expect(TransferText.list([]) == "no transfers\n")
        let text = TransferText.list([
            try Self.transfer(#""state":"waiting","bytes":5,"total":10,"attempts":2,"why":"It waits for power.""#),
            try Self.transfer(
                #""state":"failed","bytes":5,"attempts":1,"error":{"reason":"HTTPStatus","message":"404\u001b"}"#
            ),
            try Self.transfer(#""state":"finished","bytes":10,"total":10,"attempts":1,"taken":true,"note":"n""#),
        ])
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
        #expect(
            lines == [
                "STATE BYTES TRIES URL", "waiting 5 B of 10 B 2 http://h/f It waits for power.",
                "failed 5 B 1 http://h/f HTTPStatus: 404?", "taken 10 B 1 http://h/f n",
            ]
        )
    }

    @Test("A command line says the whole transfer")
    func add() throws {
        let line = try ParsedCommand.running(words: [
            "transfer", "add", "s", "https://h/f", "--header", "Authorization: Bearer x", "--header", "accept:y",
            "--earliest-begin", "15m", "--sha256", String(repeating: "AB", count: 32), "--bytes-max", "7", "--note",
            "n",
        ])
        let request = try TransferCommands.request(line, now: 1000)
        #expect(request.headers == ["authorization": "Bearer x", "accept": "y"])
        #expect(request.earliestBegin == Date(timeIntervalSince1970: 901))
        #expect(request.sha256 == String(repeating: "ab", count: 32))
        #expect(request.bytesMax == 7 && request.note == "n" && request.kind == .download)
        let upload = try ParsedCommand.running("transfer add s http://h/f --upload f --method POST")
        let sent = try TransferCommands.request(upload, now: 0)
        #expect(sent.kind == .upload && sent.file == "f" && sent.method == "POST")
    }

    @Test(
        "An invalid transfer is refused, and the invalid part named",
        arguments: [
            (["ftp://h/f"], "URL is"), (["h/f"], "URL is"), (["http://h/f", "--header", "x"], "--header is not"),
            (["http://h/f", "--header", "@/nonexistent"], "/nonexistent cannot be read"),
            (["http://h/f", "--sha256", "ab"], "--sha256 is"),
            (["http://h/f", "--sha256", String(repeating: "\u{FF11}", count: 21) + "1"], "--sha256 is"),
            (["http://h/f", "--upload", "f", "--to", "t"], "--to is"),
            (["http://h/f", "--replace"], "--replace is"), (["http://h/f", "--earliest-begin", "soon"], "soon"),
        ]
    )
    func refused(words: [String], part: String) throws {
        let parsed = try ParsedCommand.running(words: ["transfer", "add", "s"] + words)
        let failure = #expect(throws: CommandFailure.self) { _ = try TransferCommands.request(parsed, now: 0) }
        #expect(failure?.message.contains(part) == true)
    }

    @Test("A session's options change only what they name")
    func session() throws {
        let line = try ParsedCommand.running("transfer session s --early-answers yes --request-timeout 5")
        var wanted = BackgroundSessionConfiguration()
        wanted.acceptsEarlyAnswers = true
        wanted.requestTimeout = .seconds(5)
        #expect(TransferSessionCommand.configuration(line) == wanted)
    }
}
