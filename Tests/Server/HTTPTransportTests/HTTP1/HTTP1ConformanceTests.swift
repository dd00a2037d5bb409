import HTTPTransport
import Testing
import Wire

@Suite("HTTP/1.1 by RFC 9112, to the letter", .timeLimit(.minutes(15)))
struct HTTP1ConformanceTests {
    private static let all = HTTP1Case.lines + HTTP1Case.fields + HTTP1Case.lengths + HTTP1Case.chunks

    @Test(
        "Every message gets its answers, whole or byte by byte, and no part of it is read as another message",
        arguments: all
    )
    func answers(of each: HTTP1Case) {
        let whole = HTTP1Fixture()
        whole.receive(each.sent)
        let (requests, text) = (whole.requests, whole.text)
        self.check(each, whole)
        guard each.sent.count < 1_000 else { return }
        let pieces = HTTP1Fixture()
        for byte in each.sent { pieces.receive([byte]) }
        #expect(pieces.requests == requests)
        #expect(pieces.text == text)
        self.check(each, pieces)
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

    @Test("There are many cases, with different names")
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

    @Test("A client that sends its request and closes its side gets the whole answer")
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

    @Test("Pipelined requests wait until the one before is answered")
    func pipelined() {
        let fixture = HTTP1Fixture()
        let next = [UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        fixture.receive([UInt8]("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(fixture.session.wantsToRead, "the session notices the end of the peer")
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
        "Bytes after a request for a stream are dropped, and the connection ends with that stream",
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

    @Test("A subscription that is granted later also drops the bytes after it")
    func behindLaterStream() {
        let fixture = HTTP1Fixture()
        let request = "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"
        fixture.receive([UInt8]((request + request).utf8))
        #expect(fixture.memory.requestBytes.held == request.utf8.count)
        #expect(fixture.session.beginStreaming(1, fixture.handler.response))
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(!fixture.session.wantsToRead)
    }

    @Test("After its answer a connection ends if too much of the request follows, or if it must end")
    func restOfBody() {
        let limits = TransportLimits { $0.discardedBytesMax = 5000 }
        for (count, isToldToEnd) in [(5000, true), (5001, false)] {
            let fixture = HTTP1Fixture(limits)
            fixture.receive([UInt8]("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5001\r\n\r\n".utf8))
            #expect(fixture.statuses == [413])
            fixture.receive([UInt8](repeating: 0x61, count: count))
            #expect(fixture.session.isFinished == !isToldToEnd)
            #expect(fixture.memory.tally.times(.discardedBytesMax) == (isToldToEnd ? 0 : 1))
            fixture.session.closeAfterAnswer()
            #expect(fixture.session.isFinished)
            #expect(fixture.memory.streams.usedCount == 0)
        }
    }

    @Test("Pending requests learn of the end of a connection; a later answer is dropped")
    func ended() {
        let fixture = HTTP1Fixture()
        fixture.receive([UInt8]("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(!fixture.session.peerEnded())
        fixture.session.end()
        #expect(fixture.handler.closed == [1])
        #expect(!fixture.session.respond(1, fixture.handler.response, body: nil))
        #expect(fixture.session.isFinished)
    }

    @Test("A request that takes too long is answered 408, and a connection without a request just ends")
    func time() {
        let limits = TransportLimits { $0.requestSeconds = 5 }
        for (sent, isAnswered) in [
            ("", false), ("G", true), ("GET /a HTTP/1.1\r\nHo", true),
            ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na", true),
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
            #expect(fixture.text.hasSuffix("\r\n\r\nThe request took too long to arrive.\n") == isAnswered)
            #expect(fixture.memory.tally.times(.requestSeconds) == (isAnswered ? 1 : 0))
        }
    }

    @Test(
        "A slow trickle of bytes does not extend a request's time",
        arguments: ["", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n"]
    )
    func drip(beginning: String) {
        let fixture = HTTP1Fixture()
        if !beginning.isEmpty { fixture.receive([UInt8](beginning.utf8)) }
        for byte in "GET /".utf8 {
            fixture.receive([byte])
            fixture.memory.now += 15_000
        }
        #expect(fixture.session.secondPassed())
        fixture.produce()
        #expect(fixture.statuses == [408])
    }

    @Test("Bytes of a partial request count as request bytes, and are refused over the limit")
    func room() {
        let fixture = HTTP1Fixture(TransportLimits { $0.requestBytesMax = 40 })
        fixture.receive([UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n".utf8))
        #expect(fixture.memory.requestBytes.held == 26)
        fixture.receive([UInt8]("a: 0123456789\r\n".utf8))
        #expect(fixture.statuses == [503])
        #expect(fixture.session.isFinished)
        #expect(fixture.memory.requestBytes.held == 0)
        #expect(fixture.memory.tally.times(.requestBytesMax) == 1)
    }

    @Test("A body over the limit of all requests is refused, its rest is discarded, and the next one is served")
    func bodyRoom() {
        let fixture = HTTP1Fixture(TransportLimits { $0.requestBytesMax = 100 })
        for bytes in [100, 101, 100] {
            fixture.receive([UInt8]("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: \(bytes)\r\n\r\n".utf8))
            fixture.receive([UInt8](repeating: 0x61, count: bytes))
        }
        #expect(fixture.statuses == [200, 503, 200])
        #expect(fixture.memory.tally.times(.requestBytesMax) == 1)
    }
}

extension HTTP1Case {
    private static let post = "POST /a HTTP/1.1\r\nHost: h\r\n"
    private static let chunked = "\(post)Transfer-Encoding: chunked\r\n\r\n"

    /// The end of a body (RFC 9112 §6).
    static let lengths: [HTTP1Case] = [
        .good("a length", "\(post)Content-Length: 3\r\n\r\nabc", "POST /a h abc"),
        .good("a length of nothing", "\(post)Content-Length: 0\r\n\r\n", "POST /a h "),
        .good("no length", "\(post)\r\n", "POST /a h "),
        .good("a length with zeros before it", "\(post)Content-Length: 0003\r\n\r\nabc", "POST /a h abc"),
        .good("a body of GET", "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "GET /a h abc"),
        .good(
            "a body that looks like a request",
            "\(post)Content-Length: \(smuggled.utf8.count)\r\n\r\n\(smuggled)",
            "POST /a h \(smuggled)"
        ),
        .bad("a length with a sign", "\(post)Content-Length: +5\r\n\r\nabcde\(smuggled)"),
        .bad("a length below nothing", "\(post)Content-Length: -1\r\n\r\n\(smuggled)"),
        .bad("an empty length", "\(post)Content-Length:\r\n\r\n\(smuggled)"),
        .bad("a length of blanks", "\(post)Content-Length: \t \r\n\r\n\(smuggled)"),
        .bad("a length with NUL", "\(post)Content-Length: 3\u{0}\r\n\r\nabc\(smuggled)"),
        .bad("a length with NUL before it", "\(post)Content-Length: \u{0}3\r\n\r\nabc\(smuggled)"),
        .bad("a length with a blank", "\(post)Content-Length: 3 3\r\n\r\nabc\(smuggled)"),
        .bad("a length in sixteens", "\(post)Content-Length: 0x3\r\n\r\nabc\(smuggled)"),
        .bad("a length with a point", "\(post)Content-Length: 3.0\r\n\r\nabc\(smuggled)"),
        .bad("a length of letters", "\(post)Content-Length: abc\r\n\r\nabc\(smuggled)"),
        .bad("a length that no number holds", "\(post)Content-Length: 18446744073709551616\r\n\r\n\(smuggled)"),
        .bad("two lengths", "\(post)Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc\(smuggled)"),
        .bad("two lengths that are the same", "\(post)Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc\(smuggled)"),
        .bad("a list of lengths", "\(post)Content-Length: 3, 3\r\n\r\nabc\(smuggled)"),
        .bad("a length with a blank before its colon", "\(post)Content-Length : 3\r\n\r\nabc\(smuggled)"),
        .bad(
            "a length, and chunks",
            "\(post)Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\(smuggled)"
        ),
        .bad(
            "chunks, and a length",
            "\(post)Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n\(smuggled)"
        ),
        .bad("an unknown coding", "\(post)Transfer-Encoding: gzip\r\n\r\n", 501),
        .bad("an unknown coding that looks like chunks", "\(post)Transfer-Encoding: xchunked\r\n\r\n", 501),
        .bad("identity, which is none", "\(post)Transfer-Encoding: identity\r\n\r\n", 501),
        .bad("an unknown coding before chunks", "\(post)Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        .bad("chunks before another coding", "\(post)Transfer-Encoding: chunked, gzip\r\n\r\n"),
        .bad("chunks twice", "\(post)Transfer-Encoding: chunked, chunked\r\n\r\n"),
        .bad("chunks twice, in two fields", "\(post)Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        .bad("two codings in two fields", "\(post)Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
        .bad("an empty coding", "\(post)Transfer-Encoding:\r\n\r\n\(smuggled)"),
        .bad("a coding in quotes", "\(post)Transfer-Encoding: \"chunked\"\r\n\r\n\(smuggled)"),
        .bad("a coding with a vertical tab", "\(post)Transfer-Encoding: \u{B}chunked\r\n\r\n\(smuggled)"),
        .bad("a coding behind a comma", "\(post)Transfer-Encoding: , chunked\r\n\r\n\(smuggled)"),
        .bad(
            "chunks with HTTP/1.0",
            "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\(smuggled)"
        ),
        .bad("another expectation", "\(post)Expect: 200-maybe\r\nContent-Length: 3\r\n\r\n", 417),
        HTTP1Case(
            "a body that is waited for",
            "\(post)Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
            [100, 200],
            requests: ["POST /a h abc"]
        ),
        HTTP1Case(
            "a body that would be too large is not waited for, and nothing behind it is understood",
            "\(post)Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n\(smuggled)",
            [413],
            isEnded: true
        ),
        HTTP1Case(
            "a body that is too large is thrown away, and the next request answered",
            "\(post)Content-Length: 5000\r\n\r\n\(String(repeating: "a", count: 5000))",
            [413]
        ),
        .last(
            "HTTP/1.0 waits for nothing",
            "POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
            "POST /a  abc"
        ),
        .good(
            "one request behind the other",
            "\(post)Content-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: i\r\n\r\nGET /c HTTP/1.1\r\nHost: j\r\n\r\n",
            "POST /a h abc",
            "GET /b i ",
            "GET /c j "
        ),
        HTTP1Case(
            "a bad request behind a good one",
            "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\n\r\n\(smuggled)",
            [200, 400],
            isEnded: true,
            requests: ["GET /a h "]
        ),
        .good(
            "HEAD, whose answer has no body",
            "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
            "HEAD /a h ",
            "GET /b h "
        ),
    ]

    /// Chunks (RFC 9112 §7.1).
    static let chunks: [HTTP1Case] = [
        .good("chunks", "\(chunked)3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n", "POST /a h abc0123456789"),
        .good("no chunk but the last", "\(chunked)000\r\n\r\n", "POST /a h "),
        .good(
            "the coding in any case",
            "\(post)transfer-encoding:\tChunked \r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
            "POST /a h 0123456789"
        ),
        .good("an extension", "\(chunked)3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n", "POST /a h abc"),
        .good("blanks before an extension", "\(chunked)3 \t;a\r\nabc\r\n0\r\n\r\n", "POST /a h abc"),
        HTTP1Case(
            "chunks that are too large together are thrown away, and the next request answered",
            "\(chunked)1\r\na\r\n1000\r\n\(String(repeating: "a", count: 4096))\r\n0\r\n\r\n",
            [413]
        ),
        .good("trailers", "\(chunked)3\r\nabc\r\n0\r\nHost: evil\r\nContent-Length: 9\r\n\r\n", "POST /a h abc"),
        .good(
            "chunks and a request behind them",
            "\(chunked)1\r\na\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /a h a",
            "GET /b h "
        ),
        .bad("a chunk without a size", "\(chunked)\r\nabc\r\n0\r\n\r\n"),
        .bad("a size with a sign", "\(chunked)+3\r\nabc\r\n0\r\n\r\n"),
        .bad("a size below nothing", "\(chunked)-3\r\nabc\r\n0\r\n\r\n"),
        .bad("a size with 0x", "\(chunked)0x3\r\nabc\r\n0\r\n\r\n"),
        .bad("a blank before a size", "\(chunked) 3\r\nabc\r\n0\r\n\r\n"),
        .bad("a blank behind a size", "\(chunked)3 \r\nabc\r\n0\r\n\r\n"),
        .bad("a size of sixteen digits and one", "\(chunked)10000000000000003\r\nabc\r\n0\r\n\r\n\(smuggled)"),
        .bad("a size with an underscore", "\(chunked)1_0\r\nabc\r\n0\r\n\r\n"),
        .bad("a bare LF behind a size", "\(chunked)3\nabc\r\n0\r\n\r\n"),
        .bad("a bare CR behind a size", "\(chunked)3\rabc\r\n0\r\n\r\n"),
        .bad("a bare LF in an extension", "\(chunked)3;a\nabc\r\n0\r\n\r\n"),
        .bad("NUL in an extension", "\(chunked)3;\0\r\nabc\r\n0\r\n\r\n"),
        .good(
            "a line with a size and an extension of 256 bytes",
            "\(chunked)3;" + String(repeating: "a", count: 252) + "\r\nabc\r\n0\r\n\r\n",
            "POST /a h abc"
        ),
        .bad(
            "a line with a size and an extension of 257 bytes",
            "\(chunked)3;" + String(repeating: "a", count: 253) + "\r\nabc\r\n0\r\n\r\n\(smuggled)"
        ),
        .bad("an extension without an end", "\(chunked)3;" + String(repeating: "a", count: 1_000)),
        .bad("a chunk longer than its size", "\(chunked)3\r\nabcd\r\n0\r\n\r\n"),
        .bad("a chunk shorter than its size", "\(chunked)5\r\nabc\r\n0\r\n\r\n\(smuggled)"),
        .bad("a bare LF behind a chunk", "\(chunked)3\r\nabc\n0\r\n\r\n\(smuggled)"),
        .bad("a bare CR behind a chunk", "\(chunked)3\r\nabc\r0\r\n\r\n\(smuggled)"),
        .bad("a bare LF behind the last chunk", "\(chunked)0\r\n\n\(smuggled)"),
        .bad("a trailer without a colon", "\(chunked)0\r\nabc\r\n\r\n"),
        .bad("a folded trailer", "\(chunked)0\r\na: b\r\n c\r\n\r\n"),
        .bad("NUL in a trailer", "\(chunked)0\r\na: \0\r\n\r\n"),
        .bad("trailers without an end", "\(chunked)0\r\n" + String(repeating: "a: b\r\n", count: 4_000), 431),
        .bad("a request as trailers", "\(chunked)0\r\n\(smuggled)"),
    ]
}

extension HTTP1Case {
    private static let host = "Host: h\r\n"

    /// Request lines and targets (RFC 9112 §2 and §3).
    static let lines: [HTTP1Case] = [
        .good("a request", "GET /a HTTP/1.1\r\n\(host)\r\n", "GET /a h "),
        .good("one empty line before a request", "\r\nGET /a HTTP/1.1\r\n\(host)\r\n", "GET /a h "),
        .bad("two empty lines before a request", "\r\n\r\nGET /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a bare LF before a request", "\nGET /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a blank before the method", " GET /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("two blanks behind the method", "GET  /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("two blanks before the version", "GET /a  HTTP/1.1\r\n\(host)\r\n"),
        .bad("a blank behind the version", "GET /a HTTP/1.1 \r\n\(host)\r\n"),
        .bad("a tab behind the method", "GET\t/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a form feed behind the method", "GET\u{C}/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a tab within the target", "GET /\tb HTTP/1.1\r\n\(host)\r\n"),
        .bad("a blank within the target", "GET /a b HTTP/1.1\r\n\(host)\r\n"),
        .bad("no target", "GET HTTP/1.1\r\n\(host)\r\n"),
        .bad("no method", "/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a method that is not a token", "G@T /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a method in brackets", "(GET) /a HTTP/1.1\r\n\(host)\r\n"),
        .good(
            "a method of its client's own",
            "M-SEARCH!#$%&'*+^_`|~1 /a HTTP/1.1\r\n\(host)\r\n",
            "M-SEARCH!#$%&'*+^_`|~1 /a h "
        ),
        .good("methods in small letters are others", "get /a HTTP/1.1\r\n\(host)\r\n", "get /a h "),
        .bad("no version, which HTTP/0.9 has not", "GET /a\r\n"),
        .bad("a version in small letters", "GET /a http/1.1\r\n\(host)\r\n"),
        .bad("a version of one digit", "GET /a HTTP/1\r\n\(host)\r\n"),
        .bad("a version of three digits", "GET /a HTTP/1.10\r\n\(host)\r\n"),
        .bad("another protocol", "GET /a ICAP/1.0\r\n\(host)\r\n"),
        .bad("HTTP/2.0 in a request line", "GET /a HTTP/2.0\r\n\(host)\r\n", 505),
        .bad("HTTP/0.9 in a request line", "GET /a HTTP/0.9\r\n\(host)\r\n", 505),
        .good("a later HTTP/1, as which it is answered", "GET /a HTTP/1.2\r\n\(host)\r\n", "GET /a h "),
        .last("HTTP/1.0, whose connection ends", "GET /a HTTP/1.0\r\n\(host)\r\n\(smuggled)", "GET /a h "),
        .last("HTTP/1.0 without a host", "GET /a HTTP/1.0\r\n\r\n", "GET /a  "),
        .last(
            "no host behind a request with one",
            "GET /a HTTP/1.1\r\n\(host)\r\nGET /b HTTP/1.0\r\n\r\n",
            "GET /a h ",
            "GET /b  "
        ),
        .last(
            "HTTP/1.0 that would keep its connection",
            "GET /a HTTP/1.0\r\n\(host)Connection: keep-alive\r\n\r\n",
            "GET /a h "
        ),
        .bad("a bare LF behind the request line", "GET /a HTTP/1.1\n\(host)\r\n"),
        .bad("bare LFs alone", "GET /a HTTP/1.1\nHost: h\n\n"),
        .bad("a bare CR in the request line", "GET /a\rb HTTP/1.1\r\n\(host)\r\n"),
        .bad("NUL in the target", "GET /a\0b HTTP/1.1\r\n\(host)\r\n"),
        .bad("DEL in the target", "GET /a\u{7F}b HTTP/1.1\r\n\(host)\r\n"),
        .bad("bytes beyond ASCII in the target", "GET /é HTTP/1.1\r\n\(host)\r\n"),
        .bad("a fragment", "GET /a#b HTTP/1.1\r\n\(host)\r\n"),
        .good("a target with a query", "GET /a?b=/c?d HTTP/1.1\r\n\(host)\r\n", "GET /a?b=/c?d h "),
        .good("a URL, whose host counts", "GET http://other:1/a?b HTTP/1.1\r\n\(host)\r\n", "GET /a?b other:1 "),
        .good("a URL without a path", "GET HTTP://other HTTP/1.1\r\n\(host)\r\n", "GET / other "),
        .good("a URL with a query alone", "GET http://other?b HTTP/1.1\r\n\(host)\r\n", "GET /?b other "),
        .bad("a URL without a host", "GET http:///a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a URL with a user", "GET http://me@other/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a URL, and no Host", "GET http://other/a HTTP/1.1\r\n\r\n"),
        .bad("a URL that is for TLS", "GET https://h/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a URL of another scheme", "GET ftp://h/a HTTP/1.1\r\n\(host)\r\n"),
        .bad("a relative target", "GET a HTTP/1.1\r\n\(host)\r\n"),
        .bad("an asterisk", "GET * HTTP/1.1\r\n\(host)\r\n"),
        .good("an asterisk with OPTIONS", "OPTIONS * HTTP/1.1\r\n\(host)\r\n", "OPTIONS * h "),
        .good("CONNECT to a host and port", "CONNECT h:80 HTTP/1.1\r\n\(host)\r\n", "CONNECT h:80 h "),
        .bad("CONNECT without a port", "CONNECT h HTTP/1.1\r\n\(host)\r\n"),
        .bad("CONNECT with a path", "CONNECT /a HTTP/1.1\r\n\(host)\r\n"),
        .bad("the first bytes of TLS", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}"),
        .bad("a request line without an end", "GET /" + String(repeating: "a", count: 20_000), 414),
        .bad(
            "a target that is too long",
            "GET /" + String(repeating: "a", count: 8_000) + " HTTP/1.1\r\n\(host)\r\n",
            414
        ),
        .bad("a head without an end", "GET /a HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 4_000), 431),
        .bad(
            "a field that is too large",
            "GET /a HTTP/1.1\r\n\(host)a: " + String(repeating: "b", count: 8_000) + "\r\n\r\n",
            431
        ),
        .bad("too many fields", "GET /a HTTP/1.1\r\n\(host)" + String(repeating: "a:\r\n", count: 250) + "\r\n", 431),
        .good(
            "many fields",
            "GET /a HTTP/1.1\r\n\(host)" + String(repeating: "a:\r\n", count: 200) + "\r\n",
            "GET /a h "
        ),
        .bad("blanks without an end", "GET /a HTTP/1.1\r\na:" + String(repeating: " ", count: 20_000), 431),
    ]

    /// Fields (RFC 9112 §5, RFC 9110 §5 and §7.2).
    static let fields: [HTTP1Case] = [
        .bad("no Host", "GET /a HTTP/1.1\r\n\r\n"),
        .bad("two Hosts", "GET /a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n"),
        .bad("two Hosts that are the same", "GET /a HTTP/1.1\r\nHost: h\r\nhost: h\r\n\r\n"),
        .bad("two Hosts with HTTP/1.0", "GET /a HTTP/1.0\r\nHost: h\r\nHost: i\r\n\r\n"),
        .good("an empty Host", "GET /a HTTP/1.1\r\nHost:\r\n\r\n", "GET /a  "),
        .good("blanks around Host", "GET /a HTTP/1.1\r\nHOST:\t h:80 \t\r\n\r\n", "GET /a h:80 "),
        .good("an address as Host", "GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /a [::1]:80 "),
        .bad("a Host with a user", "GET /a HTTP/1.1\r\nHost: me@h\r\n\r\n"),
        .bad("a blank before the colon of Host", "GET /a HTTP/1.1\r\nHost : h\r\n\r\n"),
        .bad("a blank before the colon of another", "GET /a HTTP/1.1\r\nHost: h\r\nOrigin : http://evil\r\n\r\n"),
        .bad("a tab before a colon", "GET /a HTTP/1.1\r\nHost: h\r\nOrigin\t: http://evil\r\n\r\n"),
        .bad("a folded value", "GET /a HTTP/1.1\r\nHost: h\r\nOrigin: http://h\r\n .evil\r\n\r\n"),
        .bad("a folded value, with a tab", "GET /a HTTP/1.1\r\nHost: h\r\na: b\r\n\tc: d\r\n\r\n"),
        .bad("a value on the line behind", "GET /a HTTP/1.1\r\nHost:\r\n h\r\n\r\n"),
        .bad("a blank before the first field", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n"),
        .bad("a line of blanks", "GET /a HTTP/1.1\r\nHost: h\r\n \r\n\r\n"),
        .bad("no colon", "GET /a HTTP/1.1\r\nHost: h\r\nabc\r\n\r\n"),
        .bad("no name", "GET /a HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n"),
        .bad("a name that is not a token", "GET /a HTTP/1.1\r\nHost: h\r\na[b]: c\r\n\r\n"),
        .bad("a name with a blank", "GET /a HTTP/1.1\r\nHost: h\r\na b: c\r\n\r\n"),
        .bad("a name beyond ASCII", "GET /a HTTP/1.1\r\nHost: h\r\né: c\r\n\r\n"),
        .bad("NUL in a name", "GET /a HTTP/1.1\r\nHost: h\r\na\0: c\r\n\r\n"),
        .bad("NUL in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\0c\r\n\r\n"),
        .bad("a control character in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\u{1}c\r\n\r\n"),
        .bad("DEL in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\u{7F}c\r\n\r\n"),
        .bad("a bare CR in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\rc: d\r\n\r\n"),
        .bad("a bare CR behind a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\r\r\n\r\n"),
        .bad("a bare LF in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: b\nc: d\r\n\r\n"),
        .bad("a bare LF as the empty line", "GET /a HTTP/1.1\r\nHost: h\r\n\n\(smuggled)"),
        .bad("a bare CR as the empty line", "GET /a HTTP/1.1\r\nHost: h\r\n\r\(smuggled)"),
        .good("bytes beyond ASCII in a value", "GET /a HTTP/1.1\r\nHost: h\r\na: é\r\n\r\n", "GET /a h "),
        .good("an empty value, and tabs in one", "GET /a HTTP/1.1\r\nHost: h\r\na:\r\nb: c\td\r\n\r\n", "GET /a h "),
        .last(
            "Connection: close",
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n\(smuggled)",
            "GET /a h "
        ),
        .good(
            "another connection option",
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade, closed\r\nUpgrade: h2c\r\n\r\n",
            "GET /a h "
        ),
    ]
}
