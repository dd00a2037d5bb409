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

    /// What `write` makes of a wake.
    private static func text(
        of push: Wake.Push?,
        kind: WakeKind = .push,
        topic: StaticString = "com.example.news",
        _ write: (Wake, inout JSONWriter) -> Void = { $0.write(to: &$1) }
    ) throws -> String {
        let token = try #require(DeviceToken(hex: ByteView("00ff10ef00ff10ef00ff10ef00ff10ef")))
        let wake = Wake(Self.id, kind: kind, device: token, topic: ByteView(topic), terms: Self.terms, push: push)
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

    @Test("Traces stand before all that a sender chooses but the id, and only what there is of them")
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

    @Test("Whatever bytes a payload has, its event is one event and UTF-8")
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
