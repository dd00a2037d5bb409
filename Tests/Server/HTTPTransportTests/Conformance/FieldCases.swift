import HTTPTransport

/// RFC 9113 §8.2: what a field may be.
extension ConformanceCase {
    static let fields =
        Self.malformed.map { name, field in
            ConformanceCase(
                "8.2",
                name,
                Peer.request(block: Peer.headers("/echo") + field),
                .streamError(.protocolError)
            )
        }
        + Self.wellFormed.map { name, field in
            ConformanceCase("8.2", name, Peer.request(block: Peer.headers("/echo") + field), .answered(200))
        }
        + Self.malformed.map { name, field in
            ConformanceCase(
                "8.2",
                "\(name), among the trailers",
                Self.open + Peer.frame(.headers, Flags.whole, stream: 1, field),
                .streamError(.protocolError)
            )
        }

    private static let malformed: [(String, [UInt8])] = [
        ("a name with capitals", Peer.field("X-Name", "1")),
        ("a name that is empty", Peer.field("", "1")),
        ("a name with a space", Peer.field("x name", "1")),
        ("a name with a colon", Peer.field("x:name", "1")),
        ("a name with a control character", Peer.field("x\u{1}name", "1")),
        ("a name beyond ASCII", Peer.field("x\u{E9}", "1")),
        ("a value with NUL", Peer.field("x", "a\0b")),
        ("a value with LF", Peer.field("x", "a\nb")),
        ("a value with CR", Peer.field("x", "a\rb")),
        ("a value that begins with a space", Peer.field("x", " a")),
        ("a value that ends with a tab", Peer.field("x", "a\t")),
        ("connection", Peer.field("connection", "close")),
        ("keep-alive", Peer.field("keep-alive", "1")),
        ("proxy-connection", Peer.field("proxy-connection", "close")),
        ("transfer-encoding", Peer.field("transfer-encoding", "chunked")),
        ("upgrade", Peer.field("upgrade", "h2c")),
        ("te that is not trailers", Peer.field("te", "gzip")),
    ]

    private static let wellFormed: [(String, [UInt8])] = [
        ("te of trailers", Peer.field("te", "trailers")),
        ("an empty value", Peer.field("x", "")),
        ("a value with a space and a tab within", Peer.field("x", "a \tb")),
        ("a value beyond ASCII", Peer.field("x", "\u{E9}")),
        ("every sign that a name may have", Peer.field("!#$%&'*+-.^_`|~09az", "1")),
        ("cookies in several fields", Peer.field("cookie", "a=b") + Peer.field("cookie", "c=d")),
        ("the same field twice", Peer.field("x", "1") + Peer.field("x", "1")),
        ("expect", Peer.field("expect", "100-continue")),
    ]
}
