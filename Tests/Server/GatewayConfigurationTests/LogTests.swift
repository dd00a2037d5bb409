import Engine
import Foundation
import Gateway
import Glibc
import ServiceManager
import Testing
import WakeGateTestKit
import Wire

@Suite("The log", .timeLimit(.minutes(15)))
struct LogTests {
    private func line(_ event: GatewayEvent, _ fields: [String: String] = [:]) -> LogLine {
        LogLine(time: 0, event: event, fields: fields)
    }

    @Test(
        "A value is quoted wherever it would be ambiguous",
        arguments: [
            ("plain", "plain"), ("127.0.0.1:2197,[::]:1", "127.0.0.1:2197,[::]:1"), ("", #""""#),
            ("two words", #""two words""#),
            ("a=b", #""a=b""#), (#"say "no""#, #""say \"no\"""#), ("a\\b", #""a\\b""#),
            ("x\n2026-01-01T00:00:00Z error forged", #""x\n2026-01-01T00:00:00Z error forged""#),
            ("a\r\u{1B}[31mred\u{7F}", #""a\r\u001b[31mred\u007f""#),
            ("a\u{85}b\u{2028}c\u{202E}", #""a\u0085b\u2028c\u202e""#),
            ("grün", #""grün""#), ("\u{1F600}\u{E0001}", "\"\u{1F600}\\udb40\\udc01\""),
        ]
    )
    func quoting(value: String, written: String) {
        let text = self.line(.history, ["trouble": value]).text
        #expect(text == "1970-01-01T00:00:00Z warning history trouble=\(written)")
    }

    @Test("A line of JSON is one object, whatever its values contain, and reads back unchanged")
    func json() throws {
        let value = "a \"b\" \n \u{2028} \\ \u{0} ü \u{9B}2J \u{202E}"
        let text = self.line(.webhookRefused, ["topic": value, "status": "503"]).json
        #expect(text.unicodeScalars.allSatisfy { TerminalText.isShown($0) }, "\(text)")
        let object = try JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        #expect(
            object == [
                "time": "1970-01-01T00:00:00Z", "level": "warning", "event": "webhookRefused", "topic": value,
                "status": "503",
            ]
        )
    }

    @Test("A journal entry has the event, the syslog priority, and each field under its own name")
    func journal() {
        let fields = SystemJournal.fields(self.line(.reloaded, ["policyVersion": "7", "changed": "two\nlines"]))
        #expect(
            fields == [
                #"MESSAGE=reloaded changed="two\nlines" policyVersion=7"#, "PRIORITY=6", "SYSLOG_IDENTIFIER=wakegate",
                "WAKEGATE_EVENT=reloaded", "WAKEGATE_CHANGED=two\nlines", "WAKEGATE_POLICY_VERSION=7",
            ]
        )
        let priorities = GatewayEvent.allCases.map { SystemJournal.fields(self.line($0))[1] }
        #expect(Set(priorities) == ["PRIORITY=3", "PRIORITY=4", "PRIORITY=6", "PRIORITY=7"])
    }

    @Test("A long value is truncated")
    func longValue() {
        let line = self.line(.history, ["trouble": String(repeating: "x", count: 100_000)])
        #expect(line.text.utf8.count < 1200)
        #expect(line.text.hasSuffix("x…\""))
    }

    @Test("Five lines of each cause are written in ten seconds, then one with the number of suppressed lines")
    func throttle() {
        var throttle = LogThrottle()
        func limit(_ name: String) -> LogLine { self.line(.limitMet, ["limit": name]) }
        let written = (0..<250).map { !throttle.admitted(limit("a"), now: 1000 + $0).isEmpty }
        #expect(written == (0..<250).map { $0 < LogThrottle.linesMax })
        // Other causes are logged separately.
        for other in [limit("b"), self.line(.history)] {
            let lines = throttle.admitted(other, now: 1300)
            #expect(lines == [other])
        }
        #expect(throttle.nextDue == 11_000)
        let early = throttle.takeDue(10_999)
        #expect(early == [])
        let due = throttle.takeDue(11_000)
        #expect(due.map(\.fields) == [["limit": "a", "suppressed": "245", "seconds": "10"]])
        #expect(throttle.nextDue == nil)
        let late = throttle.takeDue(100_000)
        #expect(late == [])
        let again = throttle.admitted(limit("a"), now: 11_000)
        #expect(again == [limit("a")], "another window")
    }

    @Test("A line after the end of a window begins another one, also before the suppressed lines were reported")
    func lateReport() {
        var throttle = LogThrottle()
        let line = self.line(.limitMet, ["limit": "a"])
        for _ in 0...LogThrottle.linesMax { _ = throttle.admitted(line, now: 0) }
        let late = throttle.admitted(line, now: LogThrottle.windowMilliseconds)
        #expect(late.map { $0.fields["suppressed"] } == ["1", nil])
        #expect(throttle.nextDue == nil)
    }

    @Test("The number of causes does not increase the memory and the output of the throttle")
    func causes() {
        var throttle = LogThrottle()
        let written = (0..<100_000).count { index in
            !throttle.admitted(self.line(.providerKeys, ["cause": "file \(index)"]), now: 5).isEmpty
        }
        #expect(written == LogThrottle.causesMax + LogThrottle.linesMax)
        let due = throttle.takeDue(.max)
        #expect(due.map { $0.fields["suppressed"] } == ["\(100_000 - written)"])
    }

    @Test("Lines below the level are not written, and a new level applies immediately")
    func levels() {
        let sink = RecordingSink()
        let log = GatewayLog(level: .warning, format: .text, sink: sink)
        log.write(.ready)
        log.write(.history)
        log.set(level: .debug, format: .text)
        log.write(.handshakeFailed)
        log.set(level: .error, format: .text)
        log.write(.limitMet)
        log.write(.storeFailed)
        log.close()
        #expect(sink.lines.map(\.event) == [.history, .handshakeFailed, .storeFailed])
    }

    @Test("A flush waits until the line is written, and logging continues")
    func flush() {
        let sink = RecordingSink()
        let log = GatewayLog(level: .info, format: .text, sink: sink)
        for count in 1...50 {
            log.write(.journalLossAccepted)
            log.flush(withinSeconds: 60)
            #expect(sink.lines.count == count)
        }
        log.close()
    }

    @Test("An accepted loss is logged before the journal discards anything")
    func lossTold() {
        for _ in 0..<20 {
            let sink = RecordingSink()
            let log = GatewayLog(level: .info, format: .text, sink: sink)
            Gateway.tell(StoreLoss(file: "/state/journal.sqlite", fault: "it is cut"), log)
            #expect(sink.lines.map(\.event) == [.journalLossAccepted])
            log.close()
        }
    }

    @Test("Logging never blocks on a slow reader: excess lines are dropped, counted and reported later")
    func stuckReader() throws {
        let sink = RecordingSink()
        sink.hold(true)
        let log = GatewayLog(level: .info, format: .text, sink: sink)
        let count = GatewayLog.linesMax * 3
        for _ in 0..<count { log.write(.reloaded) }
        sink.hold(false)
        log.close(withinSeconds: 60)
        let written = sink.lines.count { $0.event == .reloaded }
        let lost = sink.lines.compactMap { $0.event == .logLinesLost ? Int($0.fields["lines"] ?? "") : nil }
        // In addition to the waiting lines, the writer holds at most as many.
        #expect((GatewayLog.linesMax...GatewayLog.linesMax * 2).contains(written), "\(written)")
        #expect(lost.reduce(0, +) == count - written, "each line was written, or counted as not")
    }

    @Test("A failing sink loses only lines, and the loss is reported once it works again")
    func failingSink() throws {
        let sink = RecordingSink()
        sink.fail(true)
        let log = GatewayLog(level: .info, format: .text, sink: sink)
        for _ in 0..<3 { log.write(.history) }
        let limit = ContinuousClock.now + .seconds(60)
        // The three lines are lost, and so are later ones that find no room before the next write.
        var further = 0
        while sink.lines.isEmpty {
            try #require(ContinuousClock.now < limit)
            sink.fail(false)
            log.write(.stopped)
            further += 1
        }
        log.close()
        let lost = sink.lines.filter { $0.event == .logLinesLost }.compactMap { Int($0.fields["lines"] ?? "") }
        #expect(sink.lines.count { $0.event != .logLinesLost } + lost.reduce(0, +) == 3 + further)
    }

    @Test("Standard error receives whole lines, waits if necessary, and survives a reader that is gone")
    func standardError() throws {
        _ = signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [0, 0]
        // A child of another test that inherited the reading end would keep the pipe readable.
        try Children.alone {
            try #require(unsafe pipe(&ends) == 0)
            for end in ends { try #require(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
        }
        let sink = StandardError(descriptor: ends[1])
        #expect(sink.write(self.line(.ready, ["edge": "a b"]), .text))
        #expect(sink.write(self.line(.ready), .json))
        var bytes = [UInt8](repeating: 0, count: 1000)
        let count = unsafe read(ends[0], &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        #expect(text.hasPrefix("1970-01-01T00:00:00Z info ready edge=\"a b\"\n{\"event\":\"ready\""))
        close(ends[0])
        #expect(!sink.write(self.line(.ready), .text))
        close(ends[1])
        #expect(!StandardError(descriptor: -1).write(self.line(.ready), .text))
        let full = unsafe open("/dev/full", O_WRONLY)
        #expect(!StandardError(descriptor: full).write(self.line(.ready), .text))
        close(full)
    }

    @Test("The limits of ordinary operation are counted limits")
    func routine() {
        #expect(GatewayLimit.routineNames.isSubset(of: GatewayLimit.counterNames))
    }

    @Test("The lines that the article shows are formatted like written ones")
    func articleLines() throws {
        let shown = try #require(try Checkout.article("Logs").components(separatedBy: "\n```text\n").dropFirst().first)
        let lines = try #require(shown.components(separatedBy: "\n```\n").first).split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        for line in lines {
            let words = line.split(separator: " ").map(String.init)
            let event = try #require(GatewayEvent(rawValue: words[2]), "\(line)")
            let fields = words.dropFirst(3).map { $0.split(separator: "=").map(String.init) }
            let time = try #require(try? Date(words[0], strategy: .iso8601), "\(line)").timeIntervalSince1970
            let written = LogLine(
                time: Int64(time * 1000),
                event: event,
                fields: Dictionary(uniqueKeysWithValues: fields.map { ($0[0], $0[1]) })
            )
            #expect(written.text == line)
        }
    }

    @Test("The article has exactly the events of the code with their levels")
    func article() throws {
        let text = try Checkout.article("Logs")
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            row.split(separator: "|").prefix(2).map { $0.trimmingCharacters(in: [" ", "`"]) }
        }
        #expect(rows == GatewayEvent.allCases.map { [$0.rawValue, $0.level.rawValue] })
    }
}

/// Keeps the written lines, or blocks its writer while it is on hold.
final class RecordingSink: LogSink, @unchecked Sendable {
    private let condition = NSCondition()
    private var taken: [LogLine] = []
    private var isHeld = false
    private var fails = false

    var lines: [LogLine] { self.condition.withLock { self.taken } }

    func hold(_ isHeld: Bool) {
        self.condition.withLock {
            self.isHeld = isHeld
            self.condition.broadcast()
        }
    }

    func fail(_ fails: Bool) { self.condition.withLock { self.fails = fails } }

    func write(_ line: LogLine, _: LogFormat) -> Bool {
        self.condition.withLock {
            while self.isHeld { self.condition.wait() }
            if !self.fails { self.taken.append(line) }
            self.condition.broadcast()
            return !self.fails
        }
    }

    /// Waits for the next line about one of `events`, and takes it and all lines before it.
    func next(_ events: Set<GatewayEvent>) throws -> LogLine {
        try self.condition.withLock {
            let limit = Date(timeIntervalSinceNow: 60)
            while true {
                if let place = self.taken.firstIndex(where: { events.contains($0.event) }) {
                    defer { self.taken.removeSubrange(...place) }
                    return self.taken[place]
                }
                try #require(self.condition.wait(until: limit), "no \(events) in \(self.taken.map(\.text))")
            }
        }
    }
}
