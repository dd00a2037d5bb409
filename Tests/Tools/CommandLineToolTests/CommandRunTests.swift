import CommandLineTool
import Glibc
import HTTPClient
import Testing
import WakeWorker
import Wire

@Suite("A command's environment, and its exit status")
struct CommandRunTests {
    @Test(
        "A payload reaches the command byte for byte",
        arguments: [
            "{\"aps\":{\"content-available\":1}}",
            "{ \"n\" : 1.000e999, \"s\":\"\\ud800 } ] \\\" , \" , \"a\":[1,{}] }",
            "{}", "{\"payload\":{\"wake\":\"forged\"}}",
        ]
    )
    func payload(text: String) throws {
        let data =
            "{\"wake\":\"w\\u0031\",\"device\":\"ab\",\"topic\":\"t\",\"attempt\":2,\"coalesced\":3,\n\"deadline\":99,"
        let message = try #require(WakeMessage(Array("\(data)\"payload\":\(text)}".utf8)))
        let wake = WakeNotification(message)
        #expect(String(decoding: wake.payload, as: UTF8.self) == text)
        #expect(
            wake.commandEnvironment == [
                "WAKEGATE_KIND": "push", "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t",
                "WAKEGATE_ATTEMPT": "2",
                "WAKEGATE_COALESCED": "3", "WAKEGATE_DEADLINE": "99",
            ]
        )
    }

    @Test("The trace of a wake is where tracing tools look for it")
    func trace() throws {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let text = """
            {"wake":"w","device":"ab","topic":"t","deadline":99,"traceparent":"\(parent)","tracestate":"a=1",
            "traceLinks":["x","y"],"payload":null}
            """
        let wake = WakeNotification(try #require(WakeMessage(Array(text.utf8))))
        #expect(wake.commandEnvironment["TRACEPARENT"] == parent)
        #expect(wake.commandEnvironment["TRACESTATE"] == "a=1")
        #expect(wake.traceLinks == ["x", "y"])
    }

    @Test(
        "A command's environment describes its task",
        arguments: [
            (
                #""kind":"continued","task":"a.b","title":"Export","subtitle":"of all""#,
                ["TASK": "a.b", "TITLE": "Export", "SUBTITLE": "of all", "KIND": "continued"]
            ),
            (#""kind":"processing","task":"a.b""#, ["TASK": "a.b", "KIND": "processing"]),
            (
                #""kind":"urlSession","session":"photos","count":3"#,
                ["SESSION": "photos", "COUNT": "3", "KIND": "urlSession"]
            ),
        ]
    )
    func task(members: String, variables: [String: String]) throws {
        let data = #"{"wake":"w1","device":"ab","topic":"t","attempt":2,"deadline":99,\#(members)}"#
        guard case .task(let message)? = WakeEvent(Array(data.utf8)) else {
            Issue.record("no task")
            return
        }
        let work = CommandWork(message)
        var expected = [
            "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t", "WAKEGATE_ATTEMPT": "2",
            "WAKEGATE_DEADLINE": "99",
        ]
        for (name, value) in variables { expected["WAKEGATE_\(name)"] = value }
        #expect(work.variables == expected)
        #expect(work.input.isEmpty)
        #expect(work.reportsProgress == (variables["KIND"] == "continued"))
        #expect(!work.isFailure(exitStatus: 0))
        for status in [1, 3, nil] as [Int32?] { #expect(work.isFailure(exitStatus: status)) }
    }

    @Test("For a push exit status 3 is not a failure")
    func push() throws {
        let message = try #require(WakeMessage(Array(#"{"wake":"w","device":"a","topic":"t","deadline":9}"#.utf8)))
        let work = CommandWork(WakeNotification(message))
        #expect(!work.reportsProgress)
        for status in [0, 3] as [Int32?] { #expect(!work.isFailure(exitStatus: status)) }
        for status in [1, nil] as [Int32?] { #expect(work.isFailure(exitStatus: status)) }
    }

    @Test("Each reason for the end of a wake has its own words")
    func expiration() {
        let reasons = BackgroundTaskExpiration.allCases
        #expect(Set(reasons.map { WorkerLog.text($0) }).count == reasons.count)
    }

    @Test("The end of a subscription is not blamed on a setting")
    func ended() {
        let broken = HTTPClientError(.broken, "Transferred a partial file")
        let text = WorkerLog.ending(broken, wasSubscribed: true)
        #expect(text == "the connection ended; the gateway may be restarting")
        #expect(WorkerLog.ending(broken, wasSubscribed: false) == nil)
        #expect(WorkerLog.ending(HTTPClientError(.untrusted, ""), wasSubscribed: true) == nil)
    }

    @Test("A script that exists but cannot be started may lack its interpreter")
    func interpreter() {
        let missing = "cannot be started: No such file or directory"
        #expect(WorkerLog.startFailure("./missing-script", ENOENT) == "./missing-script \(missing)")
        let interpreter = "(the interpreter that its first line names)"
        #expect(WorkerLog.startFailure("/bin/sh", ENOENT) == "/bin/sh \(missing) \(interpreter)")
        #expect(!WorkerLog.startFailure("/bin/sh", EACCES).contains("interpreter"))
    }

    @Test("The line about a wake that is not a push names the wake and its kind, and says that it is not answered")
    func refusal() {
        let line = WorkerLog.refusal("w1", "appRefresh")
        #expect(line.hasPrefix("wake w1 is of the kind appRefresh, "))
        #expect(line.contains("neither it nor another of its kind is answered"))
    }

    @Test(
        "Exit statuses are results",
        arguments: [
            (0, .newData), (3, .noData), (1, .failed), (127, .failed), (nil, .failed),
        ] as [(Int32?, BackgroundFetchResult)]
    )
    func results(status: Int32?, result: BackgroundFetchResult) {
        #expect(BackgroundFetchResult(exitStatus: status) == result)
    }
}

@Suite("Progress lines of a command", .timeLimit(.minutes(15)))
struct CommandProgressTests {
    @Test(
        "A line is a report, or nothing",
        arguments: [
            ("progress 10/100 Exporting", TaskProgress(completed: 10, total: 100, subtitle: "Exporting")),
            ("progress 0/0", TaskProgress(completed: 0, total: 0)),
            ("progress 7/9 ", TaskProgress(completed: 7, total: 9)),
            ("progress\t7/9\r", TaskProgress(completed: 7, total: 9)),
            ("  progress   1/2   a  b \r", TaskProgress(completed: 1, total: 2, subtitle: "a  b")),
            (
                "progress 9007199254740991/9007199254740991",
                TaskProgress(completed: BackgroundTaskProgress.unitsMax, total: BackgroundTaskProgress.unitsMax)
            ),
            ("progress 9007199254740992/1", nil), ("progress 9223372036854775808/1", nil), ("progress -1/2", nil),
            ("progress 1", nil), ("progress 1/", nil),
            ("progress /1", nil), ("progress 1/2/3", nil), ("progress 1.5/2", nil), ("progress +1/2", nil),
            ("Progress 1/2", nil), ("progress", nil), ("", nil), ("progress ١/٢", nil),
        ] as [(String, TaskProgress?)]
    )
    func lines(line: String, progress: TaskProgress?) {
        #expect(TaskProgress(line: Array(line.utf8)) == progress)
    }

    @Test("A text is cut between two characters, within the gateway's limit")
    func longText() throws {
        let line = "progress 1/2 " + String(repeating: "é", count: 200)
        let text = try #require(TaskProgress(line: Array(line.utf8))?.subtitle)
        #expect(text == String(repeating: "é", count: 128))
        let wide = "progress 1/2 a" + String(repeating: "👩‍👩‍👧‍👦", count: 20)
        let cut = try #require(TaskProgress(line: Array(wide.utf8))?.subtitle)
        #expect(cut == "a" + String(repeating: "👩‍👩‍👧‍👦", count: 10))
    }

    @Test("An endless line uses no more memory and is ignored, and the next one counts", arguments: [0, 1, 70_000])
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
        #expect(lines.received(Array("progress 2/2\n".utf8)[...]).newest == TaskProgress(completed: 2, total: 2))
    }

    @Test("The same progress is not reported again")
    func repetition() {
        var lines = ProgressLines()
        #expect(lines.received(Array("progress 1/2\n".utf8)[...]).newest == TaskProgress(completed: 1, total: 2))
        #expect(lines.received(Array("progress 1/2\n".utf8)[...]) == ProgressLines.Reading())
        #expect(lines.received(Array("progress 2/2\n".utf8)[...]).newest == TaskProgress(completed: 2, total: 2))
    }
}

@Suite("The commands' output becomes lines with the wake's id")
struct OutputLinesTests {
    @Test(
        "Lines are written complete, in any pieces",
        arguments: [["a\nbc\n\nd"], ["a", "\n", "b", "c\n", "\nd"], ["a\nb", "c\n\nd"]]
    )
    func lines(parts: [String]) {
        var lines = OutputLines(prefix: "w1")
        let found = parts.flatMap { lines.received(Array($0.utf8)[...]) }
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == ["w1 a\n", "w1 bc\n", "w1 \n"])
        #expect(lines.ended().map { String(decoding: $0, as: UTF8.self) } == "w1 d\n")
        #expect(lines.ended() == nil)
    }

    @Test("A line without an end is broken every 4096 bytes, and loses nothing", arguments: [4096, 4097, 8192, 10_000])
    func long(count: Int) {
        for step in [1000, 4096, 65_536] {
            var lines = OutputLines(prefix: "w")
            let input = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) } + [UInt8(ascii: "\n")]
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: input.count, by: step) {
                found += lines.received(input[start..<min(input.count, start + step)])
            }
            #expect(lines.ended() == nil)
            #expect(found.count == (count + 4095) / 4096)
            #expect(found.allSatisfy { $0.count <= 4096 + 3 && $0.starts(with: "w ".utf8) })
            #expect(found.flatMap { $0.dropFirst(2).dropLast() } == Array(input.dropLast()))
        }
    }

    @Test("Lines over the rate limit are dropped and counted, and later ones are printed")
    func rate() {
        var queue = OutputQueue()
        for _ in 0..<7000 { queue.append(Array("x\n".utf8), now: 0) }
        #expect(queue.next(1 << 20).count == 2 * 5000)
        queue.append(Array("y\n".utf8), now: 1000)
        let text = String(decoding: queue.next(1 << 20).dropFirst(2 * 5000), as: UTF8.self)
        #expect(text.hasPrefix("wakegate: 2000 lines"))
        #expect(text.hasSuffix("fast\ny\n"))
        for _ in 0..<999 { queue.append(Array("z\n".utf8), now: 1000) }
        queue.append(Array("over\n".utf8), now: 1000)
        #expect(String(decoding: queue.next(1 << 20).suffix(2), as: UTF8.self) == "z\n")
    }

    @Test("A reader that does not read costs at most a megabyte")
    func room() {
        var queue = OutputQueue()
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 4000)
        for number in 0..<10_000 { queue.append(line, now: Int64(number) * 1000) }
        for _ in 0..<10_000 { queue.appendOwn("us") }
        #expect(queue.next(.max).count <= 1 << 20)
        #expect(queue.next(.max).count > (1 << 20) - 4000)
        queue.wrote(queue.next(.max).count)
        #expect(queue.isEmpty)
        queue.append(Array("again\n".utf8), now: 100_000_000)
        #expect(String(decoding: queue.next(100), as: UTF8.self).contains("lines of the commands' output were dropped"))
    }

    @Test("Written output is not written again")
    func written() {
        var queue = OutputQueue()
        for number in 0..<100 { queue.append(Array("\(number)\n".utf8), now: 0) }
        var found: [UInt8] = []
        while !queue.isEmpty {
            let part = queue.next(7)
            found += part
            queue.wrote(part.count)
        }
        #expect(found == (0..<100).flatMap { Array("\($0)\n".utf8) })
    }
}
