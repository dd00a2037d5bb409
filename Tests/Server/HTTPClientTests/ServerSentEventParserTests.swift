import Foundation
import HTTPClient
import Testing
import WakeGateTestKit

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
        "Fields make events as the standard says",
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
    }

    @Test("Events do not depend on how the stream is cut into pieces")
    func splits() throws {
        let seed = ProcessInfo.processInfo.environment["WAKEGATE_SEED"].flatMap { UInt64($0) } ?? 0x5EED
        var generator = SeededGenerator(seed: seed)
        var eventCount = 0
        for round in 0..<500 {
            let lines = ["data: é\u{1F4A4}", "data", ": c", "event: wake", "id: 4", "", "", "data:  {\"a\":1}"]
            let ends = ["\n", "\r", "\r\n"]
            var text = ""
            for _ in 0..<Int.random(in: 1...40, using: &generator) {
                text += lines[Int.random(in: 0..<lines.count, using: &generator)]
                text += ends[Int.random(in: 0..<ends.count, using: &generator)]
            }
            let whole = try self.events(text)
            eventCount += whole.count
            var parser = ServerSentEventParser()
            var pieces: [ServerSentEvent] = []
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let size = Int.random(in: 1...min(rest.count, 9), using: &generator)
                pieces += try parser.received(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(pieces == whole, "seed \(seed), round \(round)")
        }
        #expect(eventCount > 500, "seed \(seed): the streams held no events")
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
        "A success has events, and another answer a body, of which 64 KiB are kept",
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
