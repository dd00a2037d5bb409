import Testing
import Wire

@Suite("Wakes as a gateway writes them")
struct WakeTests {
    private static let id = WakeID(random: (0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF))
    private static let idText = "00112233445566778899aabbccddeeff"
    private static let apnsID = "0123abcd-4567-89AB-cdef-0123456789ab"
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private static let terms = Wake.Terms(
        priority: 10,
        attempt: 2,
        coalesced: 3,
        receivedAt: 1_800_000_000_001,
        firstReceivedAt: 1_800_000_000_000,
        deadline: 1_800_000_030_000,
        timeLeft: 29_999
    )

    /// Returns the text that `write` produces for a wake.
    private static func text(
        of push: Wake.Push?,
        _ write: (Wake, inout JSONWriter) -> Void = { $0.write(to: &$1) }
    ) throws -> String {
        let token = try #require(DeviceToken(hex: ByteView("00ff10ef00ff10ef00ff10ef00ff10ef")))
        let topic = ByteView("com.example.news")
        let wake = Wake(Self.id, kind: .push, device: token, topic: topic, terms: Self.terms, push: push)
        var writer = JSONWriter()
        write(wake, &writer)
        return writer.buffer.view.string
    }

    private static func push(
        collapseID: StaticString = "",
        payload: StaticString = "{}",
        trace: WakeTrace = WakeTrace()
    ) throws -> Wake.Push {
        let id = try #require(Self.apnsID.withByteView { APNsID($0) })
        return Wake.Push(apnsID: id, collapseID: ByteView(collapseID), payload: ByteView(payload), trace: trace)
    }

    private static func trace() throws -> TraceParent { try #require(Self.parent.withByteView { TraceParent($0) }) }

    @Test("A push's wake has its members in their order")
    func whole() throws {
        let push = try Self.push(collapseID: "a\"b", payload: "{\"aps\":{\"content-available\":1}}")
        let expected =
            #"{"wake":"\#(Self.idText)","kind":"push","device":"00ff10ef00ff10ef00ff10ef00ff10ef","#
            + #""topic":"com.example.news","apnsID":"\#(Self.apnsID)","priority":10,"attempt":2,"coalesced":3,"#
            + #""receivedAt":1800000000001,"firstReceivedAt":1800000000000,"deadline":1800000030000,"timeLeft":29999,"#
            + #""collapseID":"a\"b","payload":{"aps":{"content-available":1}}}"#
        #expect(try Self.text(of: push) == expected)
    }

    @Test("A wake without a push has neither id nor payload")
    func empty() throws {
        let text = try Self.text(of: nil)
        #expect(text.contains(#""topic":"com.example.news","apnsID":null,"priority":10,"#))
        #expect(text.hasSuffix(#""timeLeft":29999,"collapseID":null,"payload":null}"#))
    }

    @Test("Trace members precede all values chosen by the sender except the id, and absent ones are left out")
    func traces() throws {
        let parent = try Self.trace()
        let whole = WakeTrace(parent: parent, state: ByteView("a=\"1\""), links: [parent, parent], linksDropped: 4)
        let text = try Self.text(of: try Self.push(trace: whole))
        let members =
            #","timeLeft":29999,"traceparent":"\#(Self.parent)","tracestate":"a=\"1\"","#
            + #""traceLinks":["\#(Self.parent)","\#(Self.parent)"],"traceLinksDropped":4,"collapseID":null,"#
        #expect(text.contains(members))
        let links = try Self.text(of: try Self.push(trace: WakeTrace(links: [parent])))
        #expect(links.contains(#","timeLeft":29999,"traceLinks":["\#(Self.parent)"],"collapseID":null,"#))
        let own = try Self.text(of: try Self.push(trace: WakeTrace(parent: parent)))
        #expect(own.contains(#","timeLeft":29999,"traceparent":"\#(Self.parent)","collapseID":null,"#))
    }

    @Test("The event of a wake carries its id and its object on one line")
    func event() throws {
        let push = try Self.push(payload: "{\"a\":\n\r\n\"\u{2028}\u{2029}\u{85}\"}")
        let object = try Self.text(of: push)
        #expect(object.hasSuffix(#""payload":{"a":   "\u2028\u2029\u0085"}}"#))
        let event = try Self.text(of: push) { $0.writeEvent(to: &$1) }
        #expect(event == "event: wake\nid: \(Self.idText)\ndata: \(object)\n\n")
    }

    @Test("A worker reads what a gateway writes", arguments: [false, true])
    func roundTrip(hasPush: Bool) throws {
        let parent = try Self.trace()
        let trace = WakeTrace(parent: parent, state: ByteView("a=\"1\""), links: [parent], linksDropped: 1)
        let push = try Self.push(collapseID: "c\u{2028}\u{E9}", payload: "{ \"n\" : 1.000e999 }", trace: trace)
        let text = try Self.text(of: hasPush ? push : nil)
        guard case .wake(.push(let read)) = StreamEvent(name: "wake", data: Array(text.utf8)) else {
            Issue.record("it is not read as a push's: \(text)")
            return
        }
        #expect([read.wake, read.device] == [Self.idText, "00ff10ef00ff10ef00ff10ef00ff10ef"])
        #expect(read.topic == "com.example.news" && [read.priority, read.attempt, read.coalesced] == [10, 2, 3])
        let moments = [read.receivedAt, read.firstReceivedAt, read.deadline]
        #expect(moments == [Self.terms.receivedAt, Self.terms.firstReceivedAt, Self.terms.deadline])
        #expect(read.timeLeft == Self.terms.timeLeft)
        #expect(read.apnsID == (hasPush ? Self.apnsID : nil) && read.collapseID == (hasPush ? "c\u{2028}\u{E9}" : nil))
        #expect(String(decoding: read.payload, as: UTF8.self) == (hasPush ? "{ \"n\" : 1.000e999 }" : ""))
        #expect(read.traceparent == (hasPush ? Self.parent : nil) && read.tracestate == (hasPush ? "a=\"1\"" : nil))
        #expect(read.traceLinks == (hasPush ? [Self.parent] : []))
    }

    @Test("A payload with any bytes yields one event in UTF-8")
    func anyBytes() throws {
        for byte in UInt8.min ... .max {
            let payload = [UInt8(ascii: "\""), byte, byte, UInt8(ascii: "\"")]
            let event = try payload.withByteView { payload in
                let id = try #require(Self.apnsID.withByteView { APNsID($0) })
                let push = Wake.Push(apnsID: id, collapseID: payload, payload: payload)
                return try Self.text(of: push) { $0.writeEvent(to: &$1) }
            }
            let lines = event.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
            #expect(lines.count == 5 && lines[3].isEmpty && lines[4].isEmpty && !event.utf8.contains(0x0D))
            #expect(event.unicodeScalars.allSatisfy { ![0x85, 0x2028, 0x2029].contains($0.value) })
        }
    }
}

@Suite("Wakes as a worker reads them")
struct WakeMessageTests {
    @Test("A wake without a push has no payload, and fields missing from older gateways get defaults")
    func empty() throws {
        let text = #"{"wake":"w","device":"ab","topic":"t","apnsID":null,"deadline":99,"payload":null}"#
        let wake = try #require(WakeMessage(Array(text.utf8)))
        #expect(wake.payload.isEmpty && wake.apnsID == nil && wake.timeLeft == nil && wake.attempt == 1)
    }

    @Test("A wake of gateway 50ad6a39 is read")
    func former() throws {
        let token = String(repeating: "4f", count: 32)
        let text = """
            {"wake":"e6a70d1f76c317979661ea3efe4fef2a","kind":"push","device":"\(token)","topic":"com.example.app",\
            "apnsID":"1A2b3C4d-0000-4000-8000-00000000000A","priority":5,"attempt":1,"coalesced":0,\
            "receivedAt":1795420409665,"firstReceivedAt":1795420409665,"deadline":1795420439665,"timeLeft":30000,\
            "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"vendor=1",\
            "collapseID":"edition","payload":{"aps":{"content-available":1},"edition":7}}
            """
        let wake = try #require(WakeMessage(Array(text.utf8)))
        #expect(wake.wake == "e6a70d1f76c317979661ea3efe4fef2a" && wake.device == token)
        #expect(wake.topic == "com.example.app" && wake.apnsID == "1A2b3C4d-0000-4000-8000-00000000000A")
        #expect(wake.collapseID == "edition" && wake.tracestate == "vendor=1" && wake.timeLeft == 30_000)
        #expect(String(decoding: wake.payload, as: UTF8.self) == #"{"aps":{"content-available":1},"edition":7}"#)
    }

    @Test(
        "Any number from a peer is safe to calculate with",
        arguments: [
            ("9223372036854775807", WakeMessage.timeLeftMax), ("-9223372036854775808", -WakeMessage.timeLeftMax),
            ("-1", -1), ("-0", 0), ("0", 0), ("3155760000000", 3_155_760_000_000),
            // Not an integer: treated as absent.
            ("9223372036854775808", nil), ("1e308", nil), ("1e999", nil), ("1e-400", nil), ("0.5", nil), ("true", nil),
        ] as [(String, Int64?)]
    )
    func numbers(number: String, timeLeft: Int64?) throws {
        let names = [
            "timeLeft", "deadline", "priority", "attempt", "coalesced", "receivedAt", "firstReceivedAt",
        ]
        let members = names.map { "\"\($0)\":\(number)" }.joined(separator: ",")
        let start = #""wake":"w","device":"ab","topic":"t""#
        #expect(WakeMessage.timeLeft(Array("{\"timeLeft\":\(number)}".utf8)) == timeLeft.map { max(0, $0) })
        let untimed = WakeMessage(Array("{\(start),\"deadline\":\(number)}".utf8))
        for clock in [Int64.min, -1, 0, 1_800_000_000_000, .max] {
            let left = untimed?.timeLeft(wallClock: clock) ?? 0
            #expect((-WakeMessage.timeLeftMax...WakeMessage.timeLeftMax).contains(left))
        }
        guard timeLeft != nil else { return #expect(untimed == nil) }
        let wake = try #require(WakeMessage(Array("{\(start),\(members)}".utf8)))
        #expect(wake.timeLeft == timeLeft && wake.timeLeft(wallClock: 7) == timeLeft)
        let instants = [wake.deadline, wake.receivedAt, wake.firstReceivedAt]
        #expect(instants.allSatisfy { (0...WakeMessage.instantMax).contains($0) })
        let counts = [wake.priority, wake.attempt, wake.coalesced]
        #expect(counts.allSatisfy { (0...WakeMessage.countMax).contains($0) })
    }

    @Test("A wake without a kind is a push's, and so is one with the kind push")
    func push() {
        let start = #"{"wake":"w","device":"ab","topic":"t","deadline":99"#
        let silent = WakeEvent(Array("\(start)}".utf8))
        #expect(silent == WakeEvent(Array(#"\#(start),"kind":"push"}"#.utf8)))
        guard case .push(let message) = silent else {
            Issue.record("it is read as another kind's")
            return
        }
        #expect(message.wake == "w")
    }

    @Test(
        "A wake of an unknown kind yields its kind and id, and is not read as a push",
        arguments: ["Push", "AppRefresh", "aKindOfTenYearsFromNow"]
    )
    func otherKinds(name: String) throws {
        let kind = try #require(WakeKind(name))
        for rest in ["", #","device":"ab","topic":"t","deadline":99,"task":"a.b","payload":{}"#] {
            let data = Array(#"{"wake":"w","kind":"\#(name)"\#(rest)}"#.utf8)
            #expect(WakeEvent(data) == .other(wake: "w", kind))
            #expect(WakeMessage(data) == nil)
        }
    }

    @Test(
        "A kind that no gateway names makes the event unreadable",
        arguments: [
            "7", "null", "[]", "\"\"", #""app refresh""#, #""a\nb""#, #""appRefr\u00e9sh""#, #""\u202e""#,
            "\"" + String(repeating: "a", count: WakeKind.lengthMax + 1) + "\"",
        ]
    )
    func badKinds(kind: String) {
        #expect(WakeEvent(Array(#"{"wake":"w","device":"ab","topic":"t","deadline":1,"kind":\#(kind)}"#.utf8)) == nil)
        #expect(WakeEvent(Array(#"{"kind":"appRefresh","device":"ab","topic":"t","deadline":1}"#.utf8)) == nil)
    }

    @Test(
        "Text that is not a wake is refused",
        arguments: [
            "", "[]", "{", "{\"wake\"", "{\"wake\":", "{\"wake\":\"a", "{\"wake\":\"a\"}", "{\"wake\":\"a\\",
            "{\"a\":[1}", "{,}", "{\"wake\":7,\"device\":\"b\",\"topic\":\"t\",\"deadline\":1}",
        ]
    )
    func refused(text: String) {
        #expect(WakeMessage(Array(text.utf8)) == nil)
    }
}

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
