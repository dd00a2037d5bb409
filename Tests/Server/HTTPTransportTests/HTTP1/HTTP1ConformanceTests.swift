import HTTPTransport
import Testing
import Wire

@Suite("HTTP/1.1 by RFC 9112, to the letter", .timeLimit(.minutes(15)))
struct HTTP1ConformanceTests {
    private static let all = HTTP1Case.lines + HTTP1Case.fields + HTTP1Case.lengths + HTTP1Case.chunks

    @Test("Every message has its answers, and nothing of it is taken for another", arguments: all)
    func answers(of each: HTTP1Case) {
        let fixture = HTTP1Fixture()
        fixture.receive(each.sent)
        self.check(each, fixture)
    }

    @Test("The same comes of the same bytes, one at a time", arguments: all.filter { $0.sent.count < 1_000 })
    func pieces(of each: HTTP1Case) {
        let whole = HTTP1Fixture()
        whole.receive(each.sent)
        let fixture = HTTP1Fixture()
        for byte in each.sent { fixture.receive([byte]) }
        #expect(fixture.requests == whole.requests)
        #expect(fixture.text == whole.text)
        self.check(each, fixture)
    }

    private func check(_ each: HTTP1Case, _ fixture: HTTP1Fixture) {
        #expect(fixture.statuses == each.statuses)
        if let requests = each.requests { #expect(fixture.requests == requests) }
        #expect(fixture.session.isFinished == each.isEnded)
        #expect(fixture.text.contains("connection: close\r\n") == each.isEnded)
        let (text, count) = (fixture.text, fixture.requests.count)
        fixture.receive([UInt8]("GET /next HTTP/1.1\r\nHost: n\r\n\r\n".utf8))
        if each.isEnded {
            #expect(fixture.text == text)
            #expect(fixture.requests.count == count)
        } else {
            #expect(fixture.requests.last == "GET /next n ")
            #expect(fixture.requests.count == count + 1)
        }
        fixture.session.end()
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(fixture.memory.streams.usedCount == 0)
    }

    @Test("The cases are many, and each has a name of its own")
    func cases() {
        #expect(Self.all.count > 150)
        #expect(Set(Self.all.map(\.rule)).count == Self.all.count)
    }

    @Test("A request that is refused has its answer, however much its client still sends, and then the end")
    func refusedOnASocket() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n")
        peer.send([UInt8](repeating: 0x61, count: 1_000_000))
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 400 Bad Request\r\n") == true)
        #expect(peer.text(through: "\n") == "There is more than one Content-Length.\n")
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test("Whoever sends its request and ends its side has the answer, however long")
    func halfClosed() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
        peer.endWriting()
        #expect(peer.text(through: "\r\n\r\n")?.contains("content-length: 300000\r\n") == true)
        #expect(peer.text(through: String(repeating: "a", count: 300_000)) != nil)
        #expect(peer.hasEnded())
    }

    @Test("An answer has a date, its length and the words of its status")
    func head() {
        let fixture = HTTP1Fixture()
        fixture.memory.wallSeconds = 784_111_777
        fixture.receive([UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(
            fixture.text
                == "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 2\r\n\r\nok"
        )
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] as [(Int64, String)] {
            fixture.memory.wallSeconds = second
            fixture.receive([UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            #expect(fixture.text.contains("date: \(text)\r\n"))
        }
    }

    @Test("A streaming answer has chunks; to HTTP/1.0 it has none, and to HEAD no body")
    func streaming() {
        for (method, version, body) in [
            ("GET", "1.1", "transfer-encoding: chunked\r\n\r\n3\r\none\r\n6\r\ntwofox\r\n0\r\n\r\n"),
            ("GET", "1.0", "connection: close\r\n\r\nonetwofox"), ("HEAD", "1.1", "GMT\r\n\r\n"),
        ] {
            let fixture = HTTP1Fixture()
            fixture.receive([UInt8]("\(method) /stream HTTP/\(version)\r\nHost: h\r\n\r\n".utf8))
            for (part, isLast) in [("one", false), ("two", true), ("fox", true)] {
                part.withByteView { _ = fixture.session.write(1, $0) }
                if !isLast { fixture.produce() }
            }
            fixture.session.finish(1)
            fixture.produce()
            #expect(fixture.text.hasSuffix(body), "\(fixture.text)")
            #expect(fixture.session.isFinished == (version == "1.0"))
        }
    }

    @Test("Requests behind one that waits are not asked for before it is answered, and wait in the socket")
    func pipelined() {
        let fixture = HTTP1Fixture()
        let next = [UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        fixture.receive([UInt8]("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(fixture.session.wantsToRead, "the end of the peer is to be seen")
        fixture.receive(next + next)
        #expect(!fixture.session.wantsToRead)
        #expect(fixture.requests == ["GET /wait h "])
        #expect(fixture.memory.requestBytes.held == 2 * next.count)
        fixture.handler.response.begin(status: 204)
        #expect(fixture.session.respond(1, fixture.handler.response, body: nil))
        fixture.produce()
        #expect(fixture.statuses == [204, 200, 200])
        #expect(fixture.requests.count == 3)
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(!fixture.text.prefix { $0 != "2" }.contains("content-length"))
    }

    @Test(
        "Nothing is kept of what comes behind a request for a stream, and the connection ends with that stream",
        arguments: ["", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"]
    )
    func behindStream(first: String) {
        let fixture = HTTP1Fixture()
        let next = "GET /b HTTP/1.1\r\nHost: h\r\n\r\n"
        fixture.receive([UInt8]((first + "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n" + next).utf8))
        fixture.handler.response.begin(status: 204)
        if first.contains("/wait") {
            #expect(fixture.session.respond(1, fixture.handler.response, body: nil))
            fixture.produce()
        }
        #expect(!fixture.session.wantsToRead)
        #expect(fixture.memory.requestBytes.held == 0)
        fixture.receive([UInt8](next.utf8))
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(fixture.text.hasSuffix("transfer-encoding: chunked\r\nconnection: close\r\n\r\n"))
        #expect(!fixture.session.isFinished)
        fixture.session.finish(first.isEmpty ? 1 : 2)
        fixture.produce()
        #expect(fixture.text.hasSuffix("\r\n\r\n0\r\n\r\n"))
        #expect(fixture.session.isFinished)
        #expect(fixture.requests.last == "GET /stream h ")
    }

    @Test("A subscription that is granted later leaves what came behind it, too")
    func behindLaterStream() {
        let fixture = HTTP1Fixture()
        let request = "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"
        fixture.receive([UInt8]((request + request).utf8))
        #expect(fixture.memory.requestBytes.held == request.utf8.count)
        #expect(fixture.session.beginStreaming(1, fixture.handler.response))
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(!fixture.session.wantsToRead)
    }

    @Test("A connection whose answer has left ends when too much of the rest comes, or when it is to end")
    func restOfBody() {
        var limits = TransportLimits()
        limits.discardedBytesMax = 5000
        for (count, isToldToEnd) in [(5000, true), (5001, false)] {
            let fixture = HTTP1Fixture(limits)
            fixture.receive([UInt8]("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5001\r\n\r\n".utf8))
            #expect(fixture.statuses == [413])
            fixture.receive([UInt8](repeating: 0x61, count: count))
            #expect(fixture.session.isFinished == !isToldToEnd)
            fixture.session.closeAfterAnswer()
            #expect(fixture.session.isFinished)
            #expect(fixture.memory.streams.usedCount == 0)
        }
    }

    @Test("Whoever waits hears of the end of a connection; an answer that comes later goes nowhere")
    func ended() {
        let fixture = HTTP1Fixture()
        fixture.receive([UInt8]("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(!fixture.session.peerEnded())
        fixture.session.end()
        #expect(fixture.handler.closed == [1])
        #expect(!fixture.session.respond(1, fixture.handler.response, body: nil))
        #expect(fixture.session.isFinished)
    }

    @Test("A request that takes too long is answered 408; a connection that asks nothing just ends")
    func time() {
        var limits = TransportLimits()
        limits.requestSeconds = 5
        for (sent, isAnswered) in [
            ("", false), ("G", true), ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na", true),
        ] {
            let fixture = HTTP1Fixture(limits)
            fixture.memory.now = 2000
            if !sent.isEmpty { fixture.receive([UInt8](sent.utf8)) }
            fixture.memory.now = (sent.isEmpty ? 1000 : 2000) + 5000
            #expect(fixture.session.secondPassed())
            fixture.memory.now += 1
            #expect(fixture.session.secondPassed() == isAnswered)
            fixture.produce()
            #expect(fixture.statuses == (isAnswered ? [408] : []))
            #expect(fixture.memory.tally.times(.requestSeconds) == (isAnswered ? 1 : 0))
        }
    }

    @Test("Bytes that come drop by drop do not put off the end of a request's time")
    func drip() {
        let fixture = HTTP1Fixture()
        for byte in "GET /".utf8 {
            fixture.receive([byte])
            fixture.memory.now += 15_000
        }
        #expect(fixture.session.secondPassed())
        fixture.produce()
        #expect(fixture.statuses == [408])
    }

    @Test("What arrives in part counts with the requests' bytes, and is refused where they have no room")
    func room() {
        var limits = TransportLimits()
        limits.requestBytesMax = 40
        let fixture = HTTP1Fixture(limits)
        fixture.receive([UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n".utf8))
        #expect(fixture.memory.requestBytes.held == 26)
        fixture.receive([UInt8]("a: 0123456789\r\n".utf8))
        #expect(fixture.statuses == [503])
        #expect(fixture.session.isFinished)
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(fixture.memory.tally.times(.requestBytesMax) == 1)
    }
}
