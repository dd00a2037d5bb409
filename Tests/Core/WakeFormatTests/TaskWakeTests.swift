import Testing
import Wire

@Suite("Wakes of background tasks as a gateway writes them")
struct TaskWakeTests {
    private static let id = WakeID(random: (0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF))
    private static let idText = "00112233445566778899aabbccddeeff"
    private static let start =
        #"","device":"00ff10ef00ff10ef00ff10ef00ff10ef","topic":"com.example.news","#
    private static let terms = Wake.Terms(
        attempt: 2,
        submittedAt: 1_800_000_000_001,
        deadline: 1_800_000_030_000,
        timeLeft: 29_999
    )

    private static func token() throws -> DeviceToken {
        try #require(DeviceToken(hex: ByteView("00ff10ef00ff10ef00ff10ef00ff10ef")))
    }

    /// Returns the text of a wake.
    private static func text(of work: Wake.Work, _ kind: WakeKind, trace: WakeTrace = WakeTrace()) throws -> String {
        let topic = ByteView("com.example.news" as StaticString)
        let wake = Wake(
            Self.id,
            kind: kind,
            device: try Self.token(),
            topic: topic,
            terms: Self.terms,
            work: work,
            trace: trace
        )
        var writer = JSONWriter()
        wake.write(to: &writer)
        return writer.buffer.view.string
    }

    @Test("A task's wake has its members in their order", arguments: [WakeKind.appRefresh, .processing, .continued])
    func task(kind: WakeKind) throws {
        let begin = #"{"wake":"\#(Self.idText)","kind":"\#(kind.name)\#(Self.start)"task":"com.example.a","#
        let time = #""attempt":2,"submittedAt":1800000000001,"deadline":1800000030000,"timeLeft":29999"#
        #expect(try Self.text(of: .task(ByteView("com.example.a")), kind) == begin + time + "}")
        let texts = Wake.Work.task(ByteView("com.example.a"), title: ByteView("a\"b"), subtitle: ByteView("c"))
        #expect(try Self.text(of: texts, kind) == begin + time + #","title":"a\"b","subtitle":"c"}"#)
        let subtitled = Wake.Work.task(ByteView("com.example.a"), subtitle: ByteView("c"))
        #expect(try Self.text(of: subtitled, kind) == begin + time + #","subtitle":"c"}"#)
    }

    @Test("A task's wake has the trace of its request")
    func trace() throws {
        let parent: StaticString = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let trace = WakeTrace(parent: TraceParent(ByteView(parent)), state: ByteView("a=1"))
        let written = try Self.text(of: .task(ByteView("a")), .processing, trace: trace)
        #expect(written.hasSuffix(#","timeLeft":29999,"traceparent":"\#(parent)","tracestate":"a=1"}"#), "\(written)")
        guard case .wake(.task(let read))? = StreamEvent(name: "wake", data: Array(written.utf8)) else {
            Issue.record("it is not read as a task's: \(written)")
            return
        }
        #expect(read.traceparent == "\(parent)" && read.tracestate == "a=1")
    }

    @Test("A continued task that launches again includes the progress to resume from")
    func resumed() throws {
        func end(_ resumption: Wake.Resumption?) throws -> String {
            let work = Wake.Work.task(ByteView("a"), title: ByteView("b"), resumption: resumption)
            let text = try Self.text(of: work, .continued)
            return String(try #require(text.split(separator: #""timeLeft":29999,"#).last))
        }
        #expect(try end(nil) == #""title":"b"}"#)
        #expect(try end(.noProgress) == #""title":"b","resumedFrom":null}"#)
        let plain = Wake.Resumption.progress(completed: 3, total: .max, title: ByteView(), subtitle: ByteView())
        #expect(
            try end(plain) == #""title":"b","resumedFrom":{"completed":3,"total":18446744073709551615}}"#
        )
        let told = Wake.Resumption.progress(completed: 0, total: 1, title: ByteView("c"), subtitle: ByteView("d"))
        #expect(
            try end(told)
                == #""title":"b","resumedFrom":{"completed":0,"total":1,"title":"c","subtitle":"d"}}"#
        )
    }

    @Test("A session's wake has its name and its count")
    func session() throws {
        let expected =
            #"{"wake":"\#(Self.idText)","kind":"urlSession\#(Self.start)"session":"photos","count":7,"#
            + #""attempt":2,"submittedAt":1800000000001,"deadline":1800000030000,"timeLeft":29999}"#
        #expect(try Self.text(of: .session(ByteView("photos"), count: 7), .urlSession) == expected)
    }

    @Test("A worker reads what a gateway writes", arguments: [WakeKind.appRefresh, .processing, .continued])
    func roundTrip(kind: WakeKind) throws {
        let title: StaticString = "a\u{2028}\n\u{E9}"
        let work = Wake.Work.task(ByteView("com.example.a"), title: ByteView(title), subtitle: ByteView("c"))
        let text = try Self.text(of: work, kind)
        #expect(text.utf8.allSatisfy { $0 != 0x0A } && !text.unicodeScalars.contains("\u{2028}"))
        guard case .wake(.task(let read))? = StreamEvent(name: "wake", data: Array(text.utf8)) else {
            Issue.record("it is not read as a task's: \(text)")
            return
        }
        #expect(read.work == .task("com.example.a", title: "a\u{2028}\n\u{E9}", subtitle: "c"))
        #expect([read.wake, read.device] == [Self.idText, "00ff10ef00ff10ef00ff10ef00ff10ef"])
        #expect(read.kind == kind && read.topic == "com.example.news" && read.attempt == 2)
        #expect(read.submittedAt == Self.terms.receivedAt && read.deadline == Self.terms.deadline)
        #expect(read.timeLeft == Self.terms.timeLeft)
        let session = try Self.text(of: .session(ByteView("photos"), count: 7), .urlSession)
        guard case .wake(.task(let finished))? = StreamEvent(name: "wake", data: Array(session.utf8)) else {
            Issue.record("it is not read as a session's: \(session)")
            return
        }
        #expect(finished.work == .session("photos", count: 7))
    }

    @Test("The event of a wake whose deadline is near reads back with its values")
    func expiring() {
        var writer = JSONWriter()
        Wake.writeExpiringEvent(Self.id, deadline: 1_700_000_030_000, timeLeft: 5000, to: &writer)
        let data = #"{"wake":"\#(Self.idText)","deadline":1700000030000,"timeLeft":5000}"#
        #expect(writer.buffer.view.string == "event: expiring\ndata: \(data)\n\n")
        let read = StreamEvent(name: "expiring", data: Array(data.utf8))
        #expect(read == .expiring(wake: Self.idText, deadline: 1_700_000_030_000, timeLeft: 5000))
    }

    @Test("The event of a wake that has expired says why, and is read so", arguments: ExpirationReason.allCases)
    func expired(reason: ExpirationReason) {
        var writer = JSONWriter()
        Wake.writeExpiredEvent(Self.id, reason: reason, to: &writer)
        let data = #"{"wake":"\#(Self.idText)","reason":"\#(reason.rawValue)"}"#
        #expect(writer.buffer.view.string == "event: expired\ndata: \(data)\n\n")
        let read = StreamEvent(name: "expired", data: Array(data.utf8))
        #expect(read == .expired(wake: Self.idText, reason))
    }

    @Test("The event of conditions has the device first")
    func conditions() throws {
        var writer = JSONWriter()
        Wake.writeConditionsEvent(try Self.token(), to: &writer) {
            $0.key("appState")
            $0.string("active" as StaticString)
        }
        let data = #"{"device":"00ff10ef00ff10ef00ff10ef00ff10ef","appState":"active"}"#
        #expect(writer.buffer.view.string == "event: conditions\ndata: \(data)\n\n")
    }
}

@Suite("Wakes of background tasks as a worker reads them")
struct TaskMessageTests {
    private static func read(_ data: String) -> TaskMessage? {
        guard case .task(let message)? = WakeEvent(Array(data.utf8)) else { return nil }
        return message
    }

    @Test("A session's wake has its name and how many transfers have finished")
    func session() throws {
        let start = #"{"wake":"w","kind":"urlSession","device":"ab","topic":"t","deadline":99"#
        let wake = try #require(Self.read(start + #","session":"photos","count":7,"submittedAt":5}"#))
        #expect(wake.work == .session("photos", count: 7) && wake.kind == .urlSession)
        #expect(Self.read(start + #","task":"photos"}"#) == nil)
    }

    @Test(
        "The progress to resume from is read, and ignored where it is invalid",
        arguments: [
            (#"{"completed":3,"total":9,"title":"T","subtitle":"S"}"#, "3/9 T S"),
            (#"{"completed":0,"total":0}"#, "0/0 - -"), ("null", nil), ("{}", nil), ("7", nil),
            (#"{"completed":-1,"total":9}"#, nil), (#"{"completed":1,"total":"9"}"#, nil),
        ] as [(String, String?)]
    )
    func resumedFrom(value: String, text: String?) throws {
        let start = #"{"wake":"w","kind":"continued","device":"ab","topic":"t","task":"a","deadline":99"#
        let wake = try #require(Self.read(start + #","resumedFrom":\#(value)}"#))
        let read = wake.resumedFrom.map { "\($0.completed)/\($0.total) \($0.title ?? "-") \($0.subtitle ?? "-")" }
        #expect(read == text)
    }

    @Test("Missing optional members get default values")
    func short() throws {
        let start = #"{"wake":"w","kind":"processing","device":"ab","topic":"t","task":"a","deadline":99"#
        let wake = try #require(Self.read(start + "}"))
        #expect(wake.attempt == 1 && wake.submittedAt == 0 && wake.timeLeft == nil)
        #expect(wake.work == .task("a", title: nil, subtitle: nil) && wake.timeLeft(wallClock: 90) == 9)
        #expect(wake.timeLeft(wallClock: .min) == WakeMessage.timeLeftMax)
        let far = try #require(Self.read(start + #","timeLeft":9223372036854775807}"#))
        #expect(far.timeLeft(wallClock: 90) == WakeMessage.timeLeftMax)
    }

    @Test("A task's wake without its task or device cannot be read", arguments: 0..<5)
    func missing(left: Int) {
        let members = [
            #""wake":"w""#, #""device":"ab""#, #""topic":"t""#, #""task":"a""#, #""deadline":1"#,
        ]
        let present = members.enumerated().filter { $0.offset != left }.map(\.element).joined(separator: ",")
        #expect(WakeEvent(Array(#"{"kind":"appRefresh",\#(present)}"#.utf8)) == nil)
        #expect(WakeEvent(Array(#"{"kind":"appRefresh",\#(members.joined(separator: ","))}"#.utf8)) != nil)
    }
}
