import HTTPClient
import Testing

@Suite("Reading an event stream")
struct ServerSentEventParserTests {
    private func events(_ text: String) throws -> [ServerSentEvent] {
        var parser = ServerSentEventParser()
        return try parser.received(text.utf8)
    }

    private static func event(_ name: String, _ data: String, id: String = "") -> ServerSentEvent {
        ServerSentEvent(name: name, id: id, data: Array(data.utf8))
    }

    @Test(
        "Fields make events as the standard says, whole and byte by byte",
        arguments: [
            ("data: a\n\n", [event("message", "a")]),
            ("event: wake\nid: 7\ndata: a\ndata: b\n\n", [event("wake", "a\nb", id: "7")]),
            ("data:a\n\ndata:  b\n\n", [event("message", "a"), event("message", " b")]),
            (": keep-alive\n\n: again\ndata: x\n\n", [event("message", "x")]),
            ("event: wake\n\ndata: x\n\n", [event("message", "x")]),
            ("data\n\n", [event("message", "")]),
            ("data\ndata\n\n", [event("message", "\n")]),
            ("data: a\r\ndata: b\r\n\r\n", [event("message", "a\nb")]),
            ("data: a\rdata: b\r\r", [event("message", "a\nb")]),
            ("data: a\r\n\rdata: b\n\n", [event("message", "a"), event("message", "b")]),
            ("\u{FEFF}data: a\n\n", [event("message", "a")]),
            ("id: 1\ndata: a\n\ndata: b\n\n", [event("message", "a", id: "1"), event("message", "b", id: "1")]),
            ("id: 1\u{0}\ndata: a\n\n", [event("message", "a")]),
            ("retry: 5\nfoo: bar\ndata: a\n\n", [event("message", "a")]),
            ("data: unfinished\n", []),
            ("data: a:b\n\n", [event("message", "a:b")]),
        ]
    )
    func fields(text: String, expected: [ServerSentEvent]) throws {
        #expect(try self.events(text) == expected)
        var parser = ServerSentEventParser()
        var pieces: [ServerSentEvent] = []
        for byte in text.utf8 { pieces += try parser.received([byte]) }
        #expect(pieces == expected)
    }

    @Test("A line and an event longer than the limit end the stream")
    func limits() throws {
        var line = ServerSentEventParser(bytesMax: 16)
        #expect(try line.received("data: 0123456789\n\n".utf8).count == 1)
        #expect(throws: ServerSentEventParser.EventTooLarge(bytesMax: 16)) {
            try line.received("data: 01234567890".utf8)
        }
        var event = ServerSentEventParser(bytesMax: 16)
        #expect(throws: ServerSentEventParser.EventTooLarge(bytesMax: 16)) {
            try event.received("data: 01234567\ndata: 01234567\n".utf8)
        }
    }

    @Test(
        "A success has events, and any other answer has a body, truncated to 64 KiB",
        arguments: [200, 202, 203, 299]
    )
    func answers(status: Int) throws {
        var good = EventStreamReader()
        good.began(HTTPResponse(status: status, headers: [("wakegate-stream", "7")]))
        #expect(try good.received(Array("data: a\n\n".utf8)) == [Self.event("message", "a")])
        #expect(good.header("wakegate-stream") == "7" && good.whole(HTTPResponse(status: 200)).body.isEmpty)
        var bad = EventStreamReader()
        bad.began(HTTPResponse(status: 429))
        let message = "Wait. " + String(repeating: "x", count: 60_000)
        let body = Array(#"{"reason":"TooMany","message":"\#(message)"}"#.utf8)
        #expect(try bad.received(Array(body[..<9])).isEmpty && bad.received(Array(body[9...])).isEmpty)
        #expect(bad.whole(HTTPResponse(status: 429)).refusal?.words == "429 TooMany: \(message)")
        #expect(try bad.received([UInt8](repeating: 0x20, count: 10_000)).isEmpty)
        #expect(bad.whole(HTTPResponse(status: 429)).body.count == 65_536)
    }
}
