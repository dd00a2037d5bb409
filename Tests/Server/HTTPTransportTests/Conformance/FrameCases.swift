import HTTPTransport

/// RFC 9113 §3 and §4: the beginning of a connection, and the format of frames.
extension ConformanceCase {
    typealias Peer = ScriptedPeer

    static let ping = [UInt8](repeating: 7, count: 8)
    static let largest = [UInt8](repeating: 0, count: 16_384)
    static let waiting = Peer.request("/wait", stream: 1)
    static let open = Peer.request("/echo", stream: 1, ended: false)
    static let closed = Peer.request("/echo", stream: 1)
    static let begun = Peer.frame(.headers, flags: .endStream, stream: 1, Peer.headers("/echo"))
    /// A request on stream 3 with the newest entry of the dynamic table.
    static let fromTable = Peer.request(block: Peer.headers("/echo") + [0xBE], stream: 3)

    static let frames =
        Self.rules(
            opening: [],
            [
                .connectionError(.protocolError): [
                    "3.4 a preface that goes wrong": [UInt8]("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".utf8)
                ]
            ]
        )
        + Self.rules(
            opening: Peer.preface,
            [
                .connectionError(.protocolError): [
                    "3.4 no SETTINGS after the preface": Peer.frame(.ping, Self.ping),
                    "3.4 an answer to SETTINGS as the first frame": Peer.frame(.settings, flags: .ack),
                    "3.4 HEADERS as the first frame": Self.closed,
                ],
                .answered(200): [
                    "3.4 SETTINGS that change something right after the preface": Peer.frame(
                        .settings,
                        Peer.setting(.initialWindowSize, 1)
                    ) + Self.closed
                ],
            ]
        )
        + Self.rules([
            .ignored: [
                "4.1 an unknown type": Peer.frame(.unknown, flags: FrameFlags(rawValue: 0xFF), stream: 1, [1, 2, 3]),
                "4.1 an unknown type, on the connection": Peer.frame(.unknown),
                "4.1 flags that PING does not have": Peer.frame(.ping, flags: FrameFlags(rawValue: 0xFE), Self.ping),
                "4.1 flags that SETTINGS do not have": Peer.frame(.settings, flags: FrameFlags(rawValue: 0xFE)),
                "4.1 the reserved bit of a stream's number": Peer.frame(.ping, stream: 0x8000_0000, Self.ping),
            ],
            .answered(200): [
                "4.1 flags that DATA does not have": Self.open
                    + Peer.frame(.data, flags: FrameFlags(rawValue: 0xF7), stream: 1, [1]),
                "4.1 flags that HEADERS do not have": Peer.request(
                    block: Peer.headers("/echo"),
                    flags: FrameFlags(rawValue: 0xD7)
                ),
                "4.1 the reserved bit of a request's number": Peer.request(
                    block: Peer.headers("/echo"),
                    stream: 0x8000_0001
                ),
                "4.3 a field block in six pieces": Self.inPieces(Peer.headers("/echo")),
                "4.3 a field block whose first frame is empty": Peer.frame(.headers, flags: .endStream, stream: 1)
                    + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.headers("/echo")),
            ],
            .answered(413): [
                "4.2 DATA of the largest size": Self.open
                    + Peer.frame(.data, flags: .endStream, stream: 1, Self.largest)
            ],
            .connectionError(.frameSizeError): [
                "4.2 DATA over the largest size": Self.open + Peer.frame(.data, stream: 1, Self.largest + [0]),
                "4.2 HEADERS over the largest size": Peer.request(block: Self.largest + [0]),
                "4.2 SETTINGS over the largest size": Peer.frame(.settings, Self.largest + [0, 0]),
                "4.2 an unknown type over the largest size": Peer.frame(.unknown, Self.largest + [0]),
                "4.2 HEADERS too short for their priority": Peer.request(
                    block: [0, 0, 0, 0],
                    flags: [.whole, .priority]
                ),
                "4.2 padded HEADERS without the length of the padding": Peer.request(
                    block: [],
                    flags: [.whole, .padded]
                ),
                "4.2 padded DATA without the length of the padding": Self.open
                    + Peer.frame(.data, flags: .padded, stream: 1),
            ],
            .connectionError(.compressionError): [
                "4.3 a field block that is none": Peer.request(block: [0xFF, 0xFF, 0x7F]),
                "4.3 a field block that breaks off": Peer.request(block: [0x82, 0x40]),
            ],
            .connectionError(.protocolError): [
                "4.3 PRIORITY within a field block": Self.begun + Peer.frame(.priority, stream: 1, [0, 0, 0, 0, 15]),
                "4.3 HEADERS of another stream within a field block": Self.begun + Peer.request("/echo", stream: 3),
                "4.3 DATA within a field block": Self.begun + Peer.frame(.data, stream: 1, [1]),
            ],
        ])
        + Self.rules(
            after: Peer.request(block: Peer.headers("/echo") + [0x40, 1, 0x61, 1, 0x62] + Peer.field("X", "1")),
            stream: 3,
            [
                .answered(200): ["4.3 an entry that a malformed request put into the table": Self.fromTable]
            ]
        )

    /// Returns a request on stream 1 whose field block is split into about six frames.
    private static func inPieces(_ block: [UInt8]) -> [UInt8] {
        let size = (block.count + 5) / 6
        let parts = stride(from: 0, to: block.count, by: size).map { Array(block[$0..<min($0 + size, block.count)]) }
        var bytes = Peer.frame(.headers, flags: .endStream, stream: 1, parts[0])
        for (index, part) in parts.enumerated().dropFirst() {
            let flags: FrameFlags = index == parts.count - 1 ? .endHeaders : []
            bytes += Peer.frame(.continuation, flags: flags, stream: 1, part)
        }
        return bytes
    }
}

/// RFC 9113 §8.2: valid fields. `FieldRulesTests` has every byte of names and values.
extension ConformanceCase {
    static let fields =
        Self.malformed.flatMap { name, field in
            Self.rules(.streamError(.protocolError), blocks: ["8.2 \(name)": Peer.headers("/echo") + field])
        }
        + Self.wellFormed.flatMap { name, field in
            Self.rules(.answered(200), blocks: ["8.2 \(name)": Peer.headers("/echo") + field])
        }
        + Self.malformed.flatMap { name, field in
            let trailers = Peer.request(block: field)
            return Self.rules([.streamError(.protocolError): ["8.2 \(name), among the trailers": Self.open + trailers]])
        }

    private static let malformed: [(String, [UInt8])] = [
        ("a name with capitals", Peer.field("X-Name", "1")),
        ("a value with NUL", Peer.field("x", "a\0b")),
        ("connection", Peer.field("connection", "close")),
        ("keep-alive", Peer.field("keep-alive", "1")),
        ("proxy-connection", Peer.field("proxy-connection", "close")),
        ("transfer-encoding", Peer.field("transfer-encoding", "chunked")),
        ("upgrade", Peer.field("upgrade", "h2c")),
        ("te that is not trailers", Peer.field("te", "gzip")),
    ]

    private static let wellFormed: [(String, [UInt8])] = [
        ("te of trailers", Peer.field("te", "trailers")),
        ("cookies in several fields", Peer.field("cookie", "a=b") + Peer.field("cookie", "c=d")),
        ("the same field twice", Peer.field("x", "1") + Peer.field("x", "1")),
        ("expect", Peer.field("expect", "100-continue")),
    ]
}

/// RFC 9113 §6.9: flow control, as far as a single frame can test it.
extension ConformanceCase {
    static let windows = Self.rules([
        .connectionError(.protocolError): [
            "6.9 WINDOW_UPDATE of nothing": Peer.update(0),
            "6.9 WINDOW_UPDATE of nothing on a stream": Self.waiting + Peer.update(stream: 1, 0),
        ],
        .connectionError(.frameSizeError): [
            "6.9 WINDOW_UPDATE of three bytes": Peer.frame(.windowUpdate, [0, 0, 1]),
            "6.9 WINDOW_UPDATE of five bytes": Peer.frame(.windowUpdate, [0, 0, 0, 1, 0]),
        ],
        .ignored: [
            "6.9 the reserved bit of WINDOW_UPDATE": Peer.update(0x8000_0001),
            "6.9.1 a connection window of 2^31-1": Peer.update(0x7FFF_0000),
        ],
        .connectionError(.flowControlError): [
            "6.9.1 a connection window over 2^31-1": Peer.update(0x7FFF_FFFF),
            "6.9.1 a connection window over 2^31-1 in two steps": Peer.update(0x7FFF_0000) + Peer.update(0x1_0000),
            "6.9.2 INITIAL_WINDOW_SIZE that takes a stream's window over 2^31-1": Self.waiting
                + Peer.update(stream: 1, 0x7FFF_0000)
                + Peer.frame(.settings, Peer.setting(.initialWindowSize, 0x1_0000)),
        ],
        .streamError(.flowControlError): [
            "6.9.1 a stream window over 2^31-1": Self.waiting + Peer.update(stream: 1, 0x7FFF_FFFF),
            "6.9.1 a stream window over 2^31-1 in two steps": Self.waiting + Peer.update(stream: 1, 0x7FFF_0000)
                + Peer.update(stream: 1, 0x1_0000),
        ],
    ])
}

/// RFC 7541: valid field blocks. `OutsideCorpusTests` has those of other encoders.
extension ConformanceCase {
    static let hpack =
        Self.accepted.flatMap { name, bytes in
            Self.rules(.answered(200), blocks: ["HPACK \(name)": Peer.headers("/echo") + bytes])
        }
        + Self.broken.flatMap { name, bytes in
            Self.rules(.connectionError(.compressionError), blocks: ["HPACK \(name)": Peer.headers("/echo") + bytes])
        } + Self.tables

    /// Literals of RFC 7541 appendix C.4: their lengths, then their Huffman code.
    private static let customKey: [UInt8] = [0x88, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xA9, 0x7D, 0x7F]
    private static let customValue: [UInt8] = [0x89, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xB8, 0xE8, 0xB4, 0xBF]
    private static let plainKey: [UInt8] = [1, 0x61]
    private static let plainValue: [UInt8] = [1, 0x62]
    /// `user-agent`, entry 58, as an index of four bits.
    private static let userAgent: UInt8 = 58 - 15

    private static let accepted: [(String, [UInt8])] = [
        ("6.2.1 a literal that is indexed, then that entry", [0x40] + Self.plainKey + Self.plainValue + [0xBE]),
        ("6.2.3 a literal that is never indexed, in Huffman code", [0x10] + Self.customKey + Self.customValue),
        (
            "5.1 an index that takes a byte more than it needs",
            [0x0F, 0x80 | Self.userAgent, 0x00] + Self.plainValue
        ),
        ("5.2 Huffman code that is as long as the literal", [0x00] + Self.plainKey + [0x81, 0x1F]),
    ]

    private static let broken: [(String, [UInt8])] = [
        ("2.3.3 an index that the tables do not have", [0xC6]),
        ("2.3.3 a name whose index the tables do not have", [0x7F, 0x07] + Self.plainValue),
        ("4.2 a new table size at the end of a field block", [0x20]),
        ("4.2 a new table size between two fields", [0x20] + Peer.field("a", "b")),
        ("5.1 an index that overflows", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("5.1 an index that breaks off", [0xFF, 0x80]),
        ("5.1 a length that overflows", [0x00] + Self.plainKey + [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("5.2 a literal that breaks off", [0x00] + Self.plainKey + [5, 0x62]),
        ("5.2 a literal whose name breaks off", [0x00, 5, 0x61]),
        (
            "5.2 Huffman code with more than seven bits of padding",
            [0x00] + Self.plainKey + [0x8A] + Self.customValue.dropFirst() + [0xFF]
        ),
        ("5.2 Huffman code with zeros for padding", [0x00] + Self.plainKey + [0x81, 0x00]),
        ("5.2 Huffman code with the end-of-string symbol", [0x00] + Self.plainKey + [0x84, 0xFF, 0xFF, 0xFF, 0xFF]),
        (
            "5.2 Huffman code with the end-of-string symbol between others",
            [0x00] + Self.plainKey + [0x85, 0xFF, 0xFF, 0xFF, 0xFC, 0x1F]
        ),
        ("6.1 index 0", [0x80]),
        ("6.2 a value that is not there", [0x7A]),
    ]

    private static func block(_ update: [UInt8]) -> [UInt8] { Peer.request(block: update + Peer.headers("/echo")) }

    private static let tables =
        Self.rules([
            .answered(200): [
                "HPACK 4.2 a table size of 0, then the largest": Self.block([0x20, 0x3F, 0xE1, 0x1F]),
                "HPACK 4.2 the table size that it is": Self.block([0x3F, 0xE1, 0x1F]),
            ],
            .connectionError(.compressionError): [
                "HPACK 6.3 a table size over the limit": Self.block([0x3F, 0xE2, 0x1F]),
                "HPACK 6.3 a table size that overflows": Self.block([0x3F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
            ],
        ])
        + Self.rules(
            after: Peer.request(block: Peer.headers("/echo") + [0x40] + Self.plainKey + Self.plainValue),
            [
                .connectionError(.compressionError): [
                    "HPACK 4.3 an entry that a smaller table has lost": Peer.request(
                        block: [0x20] + Peer.headers("/echo") + [0xBE],
                        stream: 3
                    )
                ]
            ]
        )
}
