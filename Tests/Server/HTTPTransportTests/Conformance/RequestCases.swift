import HTTPTransport

/// RFC 9113 §8: what a request is made of.
extension ConformanceCase {
    static let requests = Self.messages + Self.pseudoFields

    private static let path: [UInt8] = [0x04, 5] + [UInt8]("/echo".utf8)
    private static let host = Peer.field("host", "h")

    private static func method(_ method: String) -> [UInt8] { Peer.field(":method", method) }

    /// A POST to `/echo` that says how long it is.
    private static func announced(_ count: Int) -> [UInt8] {
        let block = Peer.headers("/echo", isPost: true) + Peer.field("content-length", "\(count)")
        return Peer.frame(.headers, Flags.endHeaders, stream: 1, block)
    }

    private static let messages: [ConformanceCase] = [
        .init("8.1", "GET", Self.closed, .answered(200)),
        .init(
            "8.1",
            "HEAD",
            Peer.request(block: Self.method("HEAD") + [0x86] + Self.path + Self.host),
            .answered(200)
        ),
        .init("8.1", "POST", Self.open + Peer.frame(.data, Flags.endStream, stream: 1, [1]), .answered(200)),
        .init(
            "8.1",
            "POST with trailers",
            Self.open + Peer.frame(.data, stream: 1, [1])
                + Peer.frame(.headers, Flags.whole, stream: 1, Peer.field("a", "b")),
            .answered(200)
        ),
        .init(
            "8.1",
            "trailers that do not end the request",
            Self.open + Peer.frame(.headers, Flags.endHeaders, stream: 1, Peer.field("a", "b")),
            .streamError(.protocolError)
        ),
        .init(
            "8.1",
            "trailers without DATA",
            Self.open + Peer.frame(.headers, Flags.whole, stream: 1, Peer.field("a", "b")),
            .answered(200)
        ),
        .init(
            "8.1.1",
            "DATA shorter than content-length",
            Self.announced(3) + Peer.frame(.data, Flags.endStream, stream: 1, [1, 2]),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "DATA longer than content-length",
            Self.announced(3) + Peer.frame(.data, Flags.endStream, stream: 1, [1, 2, 3, 4]),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "DATA in several frames longer than content-length",
            Self.announced(3) + Peer.frame(.data, stream: 1, [1, 2])
                + Peer.frame(.data, Flags.endStream, stream: 1, [3, 4]),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "DATA in several frames shorter than content-length",
            Self.announced(3) + Peer.frame(.data, stream: 1, [1]) + Peer.frame(.data, Flags.endStream, stream: 1, [2]),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "trailers before the content-length is reached",
            Self.announced(3) + Peer.frame(.data, stream: 1, [1])
                + Peer.frame(.headers, Flags.whole, stream: 1, Peer.field("a", "b")),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "DATA as long as content-length, padding not counted",
            Self.announced(3) + Peer.frame(.data, Flags.padded | Flags.endStream, stream: 1, [2, 1, 2, 3, 0, 0]),
            .answered(200)
        ),
        .init(
            "8.1.1",
            "a content-length without DATA",
            Peer.request(block: Peer.headers("/echo") + Peer.field("content-length", "3")),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "a content-length that is no number",
            Peer.request(block: Peer.headers("/echo") + Peer.field("content-length", "x")),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "a content-length that is too large a number",
            Peer.request(block: Peer.headers("/echo") + Peer.field("content-length", "99999999999999999999")),
            .streamError(.protocolError)
        ),
        .init(
            "8.1.1",
            "two content-lengths",
            Peer.request(
                block: Peer.headers("/echo") + Peer.field("content-length", "0") + Peer.field("content-length", "0")
            ),
            .streamError(.protocolError)
        ),
    ]

    private static let pseudoFields: [ConformanceCase] = [
        .init(
            "8.3",
            "a pseudo-header field nobody knows",
            Peer.request(block: [0x82, 0x86] + Self.path + Peer.field(":x", "1") + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3",
            "the pseudo-header field of a response",
            Peer.request(block: [0x82, 0x86] + Self.path + [0x88] + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3",
            "a pseudo-header field among the trailers",
            Self.open + Peer.frame(.headers, Flags.whole, stream: 1, [0x82]),
            .streamError(.protocolError)
        ),
        .init(
            "8.3",
            "a pseudo-header field after a regular one",
            Peer.request(block: [0x82, 0x86] + Self.host + Self.path),
            .streamError(.protocolError)
        ),
        .init(
            "8.3",
            "a pseudo-header field in capitals",
            Peer.request(block: Peer.field(":Method", "GET") + [0x86] + Self.path + Self.host),
            .streamError(.protocolError)
        ),
        .init("8.3.1", "no :method", Peer.request(block: [0x86] + Self.path + Self.host), .streamError(.protocolError)),
        .init("8.3.1", "no :scheme", Peer.request(block: [0x82] + Self.path + Self.host), .streamError(.protocolError)),
        .init("8.3.1", "no :path", Peer.request(block: [0x82, 0x86] + Self.host), .streamError(.protocolError)),
        .init(
            "8.3.1",
            "neither :authority nor host",
            Peer.request(block: [0x82, 0x86] + Self.path),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "an empty :path",
            Peer.request(block: [0x82, 0x86, 0x04, 0] + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "a :path without a slash",
            Peer.request(block: [0x82, 0x86] + Peer.field(":path", "echo") + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "a :path of * without OPTIONS",
            Peer.request(block: [0x82, 0x86] + Peer.field(":path", "*") + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "OPTIONS for *",
            Peer.request(block: Self.method("OPTIONS") + [0x86] + Peer.field(":path", "*") + Self.host),
            .answered(404)
        ),
        .init(
            "8.3.1",
            "two :method",
            Peer.request(block: [0x82, 0x82, 0x86] + Self.path + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "two :scheme",
            Peer.request(block: [0x82, 0x86, 0x86] + Self.path + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "two :path",
            Peer.request(block: [0x82, 0x86] + Self.path + Self.path + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "two :authority",
            Peer.request(
                block: [0x82, 0x86] + Self.path + Peer.field(":authority", "h") + Peer.field(":authority", "h")
            ),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "a space in :method",
            Peer.request(block: Self.method("GE T") + [0x86] + Self.path + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.3.1",
            "a control character in :path",
            Peer.request(block: [0x82, 0x86] + Peer.field(":path", "/ec\u{1}ho") + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.4",
            "a request that the server would have to push",
            Peer.request("/echo", stream: 2),
            .connectionError(.protocolError)
        ),
        .init(
            "8.5",
            "CONNECT",
            Peer.request(block: Self.method("CONNECT") + Peer.field(":authority", "h:1")),
            .answered(404)
        ),
        .init(
            "8.5",
            "CONNECT with :scheme and :path",
            Peer.request(block: Self.method("CONNECT") + [0x86] + Self.path + Peer.field(":authority", "h:1")),
            .streamError(.protocolError)
        ),
        .init(
            "8.5",
            "CONNECT without :authority",
            Peer.request(block: Self.method("CONNECT") + Self.host),
            .streamError(.protocolError)
        ),
        .init(
            "8.5",
            "CONNECT for a :protocol, which we did not offer",
            Peer.request(
                block: Self.method("CONNECT") + [0x86] + Self.path + Peer.field(":authority", "h")
                    + Peer.field(":protocol", "websocket")
            ),
            .streamError(.protocolError)
        ),
    ]
}
