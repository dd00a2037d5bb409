import HTTPTransport

/// RFC 9113 §8: the parts of a request.
extension ConformanceCase {
    static let requests = Self.messages + Self.pseudoFields

    private static let path: [UInt8] = [0x04, 5] + [UInt8]("/echo".utf8)
    private static let host = Peer.field("host", "h")
    private static let authority = Peer.field(":authority", "h")

    private static func method(_ method: String) -> [UInt8] { Peer.field(":method", method) }

    /// Returns a POST to `/echo` with a content length.
    private static func announced(_ count: Int) -> [UInt8] {
        let block = Peer.headers("/echo", isPost: true) + Peer.field("content-length", "\(count)")
        return Peer.frame(.headers, flags: .endHeaders, stream: 1, block)
    }

    private static let messages =
        Self.rules([
            .answered(200): [
                "8.1 GET": Self.closed,
                "8.1 HEAD": Peer.request(block: Self.method("HEAD") + [0x86] + Self.path + Self.host),
                "8.1 POST": Self.open + Self.data,
                "8.1 POST with trailers": Self.open + Peer.frame(.data, stream: 1, [1]) + Self.trailers,
                "8.1 trailers without DATA": Self.open + Self.trailers,
                "8.1.1 DATA as long as content-length, padding not counted": Self.announced(3)
                    + Peer.frame(.data, flags: [.padded, .endStream], stream: 1, [2, 1, 2, 3, 0, 0]),
            ],
            .streamError(.protocolError): [
                "8.1 trailers that do not end the request": Self.open
                    + Peer.frame(.headers, flags: .endHeaders, stream: 1, Peer.field("a", "b")),
                "8.3 a pseudo-header field among the trailers": Self.open + Peer.request(block: [0x82]),
                "8.1.1 DATA shorter than content-length": Self.announced(3)
                    + Peer.frame(.data, flags: .endStream, stream: 1, [1, 2]),
                "8.1.1 DATA longer than content-length": Self.announced(3)
                    + Peer.frame(.data, flags: .endStream, stream: 1, [1, 2, 3, 4]),
                "8.1.1 DATA in several frames longer than content-length": Self.announced(3)
                    + Peer.frame(.data, stream: 1, [1, 2]) + Peer.frame(.data, flags: .endStream, stream: 1, [3, 4]),
                "8.1.1 DATA in several frames shorter than content-length": Self.announced(3)
                    + Peer.frame(.data, stream: 1, [1]) + Peer.frame(.data, flags: .endStream, stream: 1, [2]),
                "8.1.1 trailers before the content-length is reached": Self.announced(3)
                    + Peer.frame(.data, stream: 1, [1]) + Self.trailers,
            ],
        ])
        + Self.rules(
            .streamError(.protocolError),
            blocks: [
                "8.1.1 a content-length without DATA": Peer.headers("/echo") + Peer.field("content-length", "3"),
                "8.1.1 a non-numeric content-length": Peer.headers("/echo") + Peer.field("content-length", "x"),
                "8.1.1 two content-lengths": Peer.headers("/echo") + Peer.field("content-length", "0")
                    + Peer.field("content-length", "0"),
            ]
        )

    private static let pseudoFields =
        Self.rules(
            .streamError(.protocolError),
            blocks: [
                "8.3 an unknown pseudo-header field": [0x82, 0x86] + Self.path + Peer.field(":x", "1") + Self.host,
                "8.3 the pseudo-header field of a response": [0x82, 0x86] + Self.path + [0x88] + Self.host,
                "8.3 a pseudo-header field after a regular one": [0x82, 0x86] + Self.host + Self.path,
                "8.3 a pseudo-header field in capitals": Peer.field(":Method", "GET") + [0x86] + Self.path + Self.host,
                "8.3.1 no :method": [0x86] + Self.path + Self.host,
                "8.3.1 no :scheme": [0x82] + Self.path + Self.host,
                "8.3.1 no :path": [0x82, 0x86] + Self.host,
                "8.3.1 neither :authority nor host": [0x82, 0x86] + Self.path,
                "8.3.1 an empty :path": [0x82, 0x86, 0x04, 0] + Self.host,
                "8.3.1 a :path without a slash": [0x82, 0x86] + Peer.field(":path", "echo") + Self.host,
                "8.3.1 a :path of * without OPTIONS": [0x82, 0x86] + Peer.field(":path", "*") + Self.host,
                "8.3.1 two :method": [0x82, 0x82, 0x86] + Self.path + Self.host,
                "8.3.1 two :scheme": [0x82, 0x86, 0x86] + Self.path + Self.host,
                "8.3.1 two :path": [0x82, 0x86] + Self.path + Self.path + Self.host,
                "8.3.1 a space in :method": Self.method("GE T") + [0x86] + Self.path + Self.host,
                "8.5 CONNECT with :scheme and :path": Self.method("CONNECT") + [0x86] + Self.path
                    + Peer.field(":authority", "h:1"),
                "8.3.1 two :authority": [0x82, 0x86] + Self.path + Self.authority + Self.authority,
                "8.5 CONNECT without :authority": Self.method("CONNECT") + Self.host,
                "8.5 CONNECT for a :protocol, which we did not offer": Self.method("CONNECT") + [0x86] + Self.path
                    + Self.authority + Peer.field(":protocol", "websocket"),
            ]
        )
        + Self.rules([
            .delivered: [
                "8.3.1 OPTIONS for *": Peer.request(
                    block: Self.method("OPTIONS") + [0x86] + Peer.field(":path", "*") + Self.host
                ),
                "8.5 CONNECT": Peer.request(block: Self.method("CONNECT") + Peer.field(":authority", "h:1")),
            ]
        ])
}

/// RFC 9113 §5: the states of a stream, its number, priorities, errors and extensions.
extension ConformanceCase {
    static let states = Self.closedStates + Self.numbers + Self.prioritiesAndErrors

    private static let priority = Peer.frame(.priority, stream: 1, [0, 0, 0, 0, 15])
    private static let reset = Peer.frame(.reset, stream: 1, Peer.bytes(.cancel))
    private static let data = Peer.frame(.data, flags: .endStream, stream: 1, [1])
    private static let trailers = Peer.request(block: Peer.field("a", "b"))
    private static let continuation = Peer.frame(.continuation, flags: .endHeaders, stream: 1, [0x82])

    /// Frames on a closed stream, which RFC 9113 §5.1 allows to be ignored or to be a connection error. DATA and
    /// HEADERS are an error unless they may have been in transit; after our RST_STREAM they are ignored.
    /// `StreamPhaseTests` has the frames in each state.
    private static let closedStates =
        Self.rules(
            after: Self.closed,
            [
                .connectionError(.streamClosed): ["5.1 closed: a second request": Self.closed],
                .connectionError([.protocolError, .streamClosed]): ["5.1 closed: CONTINUATION": Self.continuation],
                .ignored: ["5.1 closed: PRIORITY": Self.priority],
            ]
        )
        + Self.rules([
            .connectionError(.streamClosed): [
                "5.1 half-closed (remote) or closed: DATA right behind the request": Self.closed + Self.data,
                "5.1 closed by the client's RST_STREAM: DATA right behind it": Self.open + Self.reset + Self.data,
            ]
        ])
        + Self.rules(
            after: Self.closed + Peer.request("/wait", stream: 3),
            [
                .connectionError(.streamClosed): [
                    "5.1 closed: DATA, with newer streams": Self.data,
                    "5.1 closed: HEADERS, with newer streams": Self.trailers,
                ]
            ]
        )
        + Self.rules(
            after: Self.closed + Self.resetByServer(stream: 3),
            [
                .connectionError(.streamClosed): [
                    "5.1 closed: DATA, after the server has reset another stream": Self.data
                ]
            ]
        )
        + Self.rules(
            after: Self.resetByServer + Self.reset,
            [
                .connectionError(.streamClosed): [
                    "5.1 closed by the server's RST_STREAM, then by the client's: DATA": Self.data
                ]
            ]
        )

    /// A malformed request, which is reset before it has ended.
    private static let resetByServer = Self.resetByServer(stream: 1)

    private static func resetByServer(stream: Int) -> [UInt8] {
        let block = Peer.headers("/echo", isPost: true) + Peer.field("X", "1")
        return Peer.frame(.headers, flags: .endHeaders, stream: stream, block)
    }

    private static let numbers =
        Self.rules([
            .connectionError(.protocolError): [
                "5.1.1 HEADERS on an even number": Peer.request("/echo", stream: 2),
                "5.1.1 HEADERS on an even number that is lower than another": Peer.request("/wait", stream: 5)
                    + Peer.request("/echo", stream: 2),
                "5.1.1 HEADERS on a number that was skipped": Peer.request("/wait", stream: 5)
                    + Peer.request("/echo", stream: 3),
            ]
        ])
        + Self.rules(
            after: Peer.request("/wait", stream: 5),
            [
                .connectionError(.streamClosed): [
                    "5.1.1 DATA on a number that was skipped": Peer.frame(.data, stream: 3, [1])
                ]
            ]
        )
        + Self.rules(
            stream: 77,
            [
                .answered(200): [
                    "5.1.1 the first request on another number than 1": Peer.request("/echo", stream: 77)
                ]
            ]
        )

    private static let prioritiesAndErrors = Self.rules([
        .ignored: [
            "5.1 idle: PRIORITY": Self.priority,
            "5.3 PRIORITY on a stream that depends on one that is not there": Self.waiting
                + Peer.frame(.priority, stream: 1, [0, 0, 0, 99, 15]),
            "5.3 PRIORITY that is exclusive, of the greatest weight": Self.waiting
                + Peer.frame(.priority, stream: 1, [0x80, 0, 0, 0, 255]),
            "5.4.2 RST_STREAM twice": Self.waiting + Self.reset + Self.reset,
            "5.5 an extension's setting": Peer.frame(.settings, Peer.setting(.unknown, 7)),
            "5.5 an extension's frame on a stream": Self.waiting + Peer.frame(.unknown, stream: 1, [1]),
        ],
        .answered(200): [
            "5.1 idle: PRIORITY, then a request on a lower stream": Peer.frame(.priority, stream: 5, [0, 0, 0, 0, 15])
                + Self.closed,
            "5.3 HEADERS with a priority": Peer.request(
                block: [0, 0, 0, 0, 0] + Peer.headers("/echo"),
                flags: [.whole, .priority]
            ),
            "5.3 HEADERS with an exclusive dependency on a stream that is not there": Peer.request(
                block: [0x80, 0, 0, 9, 9] + Peer.headers("/echo"),
                flags: [.whole, .priority]
            ),
        ],
        .connectionError(.protocolError): [
            // RFC 9113 keeps priorities for clients of RFC 7540, whose §5.3.1 forbids this; libnghttp2 enforces it.
            "5.3 HEADERS that depend on their own stream": Peer.request(
                block: [0, 0, 0, 1, 15] + Peer.headers("/echo"),
                flags: [.whole, .priority]
            ),
            "5.3 PRIORITY that depends on its own stream": Self.waiting
                + Peer.frame(.priority, stream: 1, [0, 0, 0, 1, 15]),
            "5.1 idle: CONTINUATION": Self.continuation,
            "5.5 an extension's frame within a field block": Self.begun + Peer.frame(.unknown, stream: 1),
        ],
    ])
}
