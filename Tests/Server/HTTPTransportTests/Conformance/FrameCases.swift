import HTTPTransport

/// RFC 9113 §3 and §4: how a connection begins, and what a frame is.
extension ConformanceCase {
    typealias Peer = ScriptedPeer
    typealias Flags = FrameFlags

    static let ping = [UInt8](repeating: 7, count: 8)
    static let largest = [UInt8](repeating: 0, count: 16_384)
    static let waiting = Peer.request("/wait", stream: 1)
    static let open = Peer.request("/echo", stream: 1, ended: false)
    static let closed = Peer.request("/echo", stream: 1)
    static let begun = Peer.frame(.headers, Flags.endStream, stream: 1, Peer.headers("/echo"))

    static let frames: [ConformanceCase] = [
        .init(
            "3.4",
            "a preface that goes wrong",
            opening: [],
            [UInt8]("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".utf8),
            .connectionError(.protocolError)
        ),
        .init(
            "3.4",
            "no SETTINGS after the preface",
            opening: Peer.preface,
            Peer.frame(.ping, Self.ping),
            .connectionError(.protocolError)
        ),
        .init(
            "3.4",
            "an answer to SETTINGS as the first frame",
            opening: Peer.preface,
            Peer.frame(.settings, Flags.ack),
            .connectionError(.protocolError)
        ),
        .init(
            "3.4",
            "HEADERS as the first frame",
            opening: Peer.preface,
            Self.closed,
            .connectionError(.protocolError)
        ),
        .init(
            "3.4",
            "SETTINGS that change something right after the preface",
            opening: Peer.preface,
            Peer.frame(.settings, Peer.setting(4, 1)) + Self.closed,
            .answered(200)
        ),
        .init("4.1", "a type nobody knows", Peer.frame(.unknown, 0xFF, stream: 1, [1, 2, 3]), .ignored),
        .init("4.1", "a type nobody knows, on the connection", Peer.frame(.unknown), .ignored),
        .init("4.1", "flags that PING does not have", Peer.frame(.ping, 0xFE, Self.ping), .ignored),
        .init(
            "4.1",
            "flags that DATA does not have",
            Self.open + Peer.frame(.data, 0xF7, stream: 1, [1]),
            .answered(200)
        ),
        .init(
            "4.1",
            "flags that HEADERS do not have",
            Peer.frame(.headers, 0xD7, stream: 1, Peer.headers("/echo")),
            .answered(200)
        ),
        .init("4.1", "flags that SETTINGS do not have", Peer.frame(.settings, 0xFE), .ignored),
        .init(
            "4.1",
            "the reserved bit of a stream's number",
            Peer.frame(.ping, stream: 0x8000_0000, Self.ping),
            .ignored
        ),
        .init(
            "4.1",
            "the reserved bit of a request's number",
            Peer.frame(.headers, Flags.whole, stream: 0x8000_0001, Peer.headers("/echo")),
            .answered(200)
        ),
        .init(
            "4.2",
            "DATA of the largest size",
            Self.open + Peer.frame(.data, Flags.endStream, stream: 1, Self.largest),
            .answered(413)
        ),
        .init(
            "4.2",
            "DATA over the largest size",
            Self.open + Peer.frame(.data, stream: 1, Self.largest + [0]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "HEADERS over the largest size",
            Peer.frame(.headers, Flags.whole, stream: 1, Self.largest + [0]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "SETTINGS over the largest size",
            Peer.frame(.settings, Self.largest + [0, 0]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "a type nobody knows over the largest size",
            Peer.frame(.unknown, Self.largest + [0]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "HEADERS too short for their priority",
            Peer.frame(.headers, Flags.whole | Flags.priority, stream: 1, [0, 0, 0, 0]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "padded HEADERS without the length of the padding",
            Peer.frame(.headers, Flags.whole | Flags.padded, stream: 1),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.2",
            "padded DATA without the length of the padding",
            Self.open + Peer.frame(.data, Flags.padded, stream: 1),
            .connectionError(.frameSizeError)
        ),
        .init(
            "4.3",
            "a field block that is none",
            Peer.request(block: [0xFF, 0xFF, 0x7F]),
            .connectionError(.compressionError)
        ),
        .init(
            "4.3",
            "a field block that breaks off",
            Peer.request(block: [0x82, 0x40]),
            .connectionError(.compressionError)
        ),
        .init(
            "4.3",
            "PRIORITY within a field block",
            Self.begun + Peer.frame(.priority, stream: 1, [0, 0, 0, 0, 15]),
            .connectionError(.protocolError)
        ),
        .init(
            "4.3",
            "HEADERS of another stream within a field block",
            Self.begun + Peer.request("/echo", stream: 3),
            .connectionError(.protocolError)
        ),
        .init(
            "4.3",
            "DATA within a field block",
            Self.begun + Peer.frame(.data, stream: 1, [1]),
            .connectionError(.protocolError)
        ),
        .init("4.3", "a field block in six pieces", Self.inPieces(Peer.headers("/echo")), .answered(200)),
        .init(
            "4.3",
            "a field block whose first frame is empty",
            Peer.frame(.headers, Flags.endStream, stream: 1)
                + Peer.frame(.continuation, Flags.endHeaders, stream: 1, Peer.headers("/echo")),
            .answered(200)
        ),
        .init(
            "4.3",
            "an entry that a malformed request put into the table",
            after: Peer.request(block: Peer.headers("/echo") + [0x40, 1, 0x61, 1, 0x62] + Peer.field("X", "1")),
            Peer.frame(.headers, Flags.whole, stream: 3, Peer.headers("/echo") + [0xBE]),
            stream: 3,
            .answered(200)
        ),
    ]

    /// A request on stream 1 whose field block comes in about six frames.
    private static func inPieces(_ block: [UInt8]) -> [UInt8] {
        let size = (block.count + 5) / 6
        let parts = stride(from: 0, to: block.count, by: size).map { Array(block[$0..<min($0 + size, block.count)]) }
        var bytes = Peer.frame(.headers, Flags.endStream, stream: 1, parts[0])
        for (index, part) in parts.enumerated().dropFirst() {
            let flags = index == parts.count - 1 ? Flags.endHeaders : Flags.none
            bytes += Peer.frame(.continuation, flags, stream: 1, part)
        }
        return bytes
    }
}
