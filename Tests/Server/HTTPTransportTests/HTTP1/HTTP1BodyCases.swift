extension HTTP1Case {
    private static let post = "POST /a HTTP/1.1\r\nHost: h\r\n"
    private static let chunked = "\(post)Transfer-Encoding: chunked\r\n\r\n"

    /// Where a body ends (RFC 9112 §6).
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
            rule: "a body that is waited for",
            sent: [UInt8]("\(post)Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc".utf8),
            statuses: [100, 200],
            isEnded: false,
            requests: ["POST /a h abc"]
        ),
        HTTP1Case(
            rule: "a body that would be too large is not waited for, and nothing behind it is understood",
            sent: [UInt8]("\(post)Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n\(smuggled)".utf8),
            statuses: [413],
            isEnded: true,
            requests: nil
        ),
        HTTP1Case(
            rule: "a body that is too large is thrown away, and the next request answered",
            sent: [UInt8]("\(post)Content-Length: 5000\r\n\r\n\(String(repeating: "a", count: 5000))".utf8),
            statuses: [413],
            isEnded: false,
            requests: nil
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
            rule: "a bad request behind a good one",
            sent: [UInt8]("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\n\r\n\(smuggled)".utf8),
            statuses: [200, 400],
            isEnded: true,
            requests: ["GET /a h "]
        ),
        HTTP1Case(
            rule: "HEAD, whose answer has no body",
            sent: [UInt8]("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n".utf8),
            statuses: [200, 200],
            isEnded: false,
            requests: ["HEAD /a h ", "GET /b h "]
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
