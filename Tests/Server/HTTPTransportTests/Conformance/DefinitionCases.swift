import HTTPTransport

/// RFC 9113 §6 and §7: each type of frame with an invalid stream, size or value, and with valid ones.
extension ConformanceCase {
    static let definitions =
        Self.dataAndHeaders + Self.priorityAndReset + Self.settings + Self.pushPingGoAway + Self.continuations

    private static let dataAndHeaders = Self.rules([
        .connectionError(.protocolError): [
            "6.1 DATA without a stream": Peer.frame(.data, [1]),
            "6.1 DATA whose padding is as long as the frame": Self.open
                + Peer.frame(.data, flags: [.padded, .endStream], stream: 1, [3, 0, 0]),
            "6.2 HEADERS without a stream": Peer.frame(.headers, flags: .whole, Peer.headers("/echo")),
            "6.2 HEADERS whose padding is longer than the frame": Peer.request(
                block: [200] + Peer.headers("/echo"),
                flags: [.whole, .padded]
            ),
        ],
        .answered(200): [
            "6.1 DATA that is padding alone": Self.open
                + Peer.frame(.data, flags: [.padded, .endStream], stream: 1, [2, 0, 0]),
            "6.1 DATA with padding": Self.open
                + Peer.frame(.data, flags: [.padded, .endStream], stream: 1, [1, 7, 0]),
            "6.1 DATA in several frames": Self.open + Peer.frame(.data, stream: 1, [1])
                + Peer.frame(.data, flags: .endStream, stream: 1, [2]),
            "6.1 empty DATA that ends the stream": Self.open + Peer.frame(.data, flags: .endStream, stream: 1),
            "6.2 HEADERS with padding": Peer.request(
                block: [2] + Peer.headers("/echo") + [0, 0],
                flags: [.whole, .padded]
            ),
            "6.2 HEADERS with padding and priority": Peer.request(
                block: [2, 0, 0, 0, 0, 15] + Peer.headers("/echo") + [0, 0],
                flags: [.whole, .padded, .priority]
            ),
        ],
    ])

    private static let priorityAndReset = Self.rules([
        .connectionError(.protocolError): [
            "6.3 PRIORITY without a stream": Peer.frame(.priority, [0, 0, 0, 0, 15]),
            "6.4 RST_STREAM without a stream": Peer.frame(.reset, Peer.bytes(.cancel)),
            "6.4 RST_STREAM on an idle stream": Peer.frame(.reset, stream: 9, Peer.bytes(.cancel)),
        ],
        .connectionError(.frameSizeError): [
            "6.3 PRIORITY of four bytes": Self.waiting + Peer.frame(.priority, stream: 1, [0, 0, 0, 0]),
            "6.3 PRIORITY of six bytes": Self.waiting + Peer.frame(.priority, stream: 1, [0, 0, 0, 0, 1, 2]),
            "6.4 RST_STREAM of three bytes": Self.waiting + Peer.frame(.reset, stream: 1, [0, 0, 8]),
            "6.4 RST_STREAM of five bytes": Self.waiting + Peer.frame(.reset, stream: 1, [0, 0, 0, 8, 0]),
        ],
    ])

    private static let settings = Self.rules([
        .connectionError(.frameSizeError): [
            "6.5 an answer to SETTINGS that has settings": Peer.frame(
                .settings,
                flags: .ack,
                Peer.setting(.initialWindowSize, 1)
            ),
            "6.5 SETTINGS of five bytes": Peer.frame(.settings, [0, 4, 0, 0, 0]),
        ],
        .connectionError(.protocolError): [
            "6.5 SETTINGS on a stream": Peer.frame(.settings, stream: 1),
            "6.5.2 ENABLE_PUSH of 2": Peer.frame(.settings, Peer.setting(.enablePush, 2)),
            "6.5.2 MAX_FRAME_SIZE of 16,383": Peer.frame(.settings, Peer.setting(.maxFrameSize, 16_383)),
            "6.5.2 MAX_FRAME_SIZE of 2^24": Peer.frame(.settings, Peer.setting(.maxFrameSize, 16_777_216)),
        ],
        .ignored: [
            "6.5.2 ENABLE_PUSH of 1": Peer.frame(.settings, Peer.setting(.enablePush, 1)),
            "6.5.2 INITIAL_WINDOW_SIZE of 2^31-1": Peer.frame(.settings, Peer.setting(.initialWindowSize, 0x7FFF_FFFF)),
            "6.5.2 MAX_FRAME_SIZE of 2^24-1": Peer.frame(.settings, Peer.setting(.maxFrameSize, 16_777_215)),
            "6.5.2 HEADER_TABLE_SIZE of 0": Peer.frame(.settings, Peer.setting(.headerTableSize, 0)),
            "6.5.2 HEADER_TABLE_SIZE of 2^32-1": Peer.frame(.settings, Peer.setting(.headerTableSize, .max)),
            "6.5.2 MAX_HEADER_LIST_SIZE of 0": Peer.frame(.settings, Peer.setting(.maxHeaderListSize, 0)),
            "6.5.2 an unknown setting": Peer.frame(.settings, Peer.setting(.unknown, .max)),
        ],
        .connectionError(.flowControlError): [
            "6.5.2 INITIAL_WINDOW_SIZE of 2^31": Peer.frame(.settings, Peer.setting(.initialWindowSize, 0x8000_0000))
        ],
        .answered(200): [
            "6.5.2 MAX_CONCURRENT_STREAMS of 0": Peer.frame(.settings, Peer.setting(.maxConcurrentStreams, 0))
                + Self.closed
        ],
        .connectionError(.enhanceYourCalm): [
            "10.5 hundreds of settings in a frame": Peer.frame(
                .settings,
                (0..<300).flatMap { _ in Peer.setting(.unknown, 1) }
            )
        ],
    ])

    private static let pushPingGoAway = Self.rules([
        .connectionError(.protocolError): [
            "6.6 PUSH_PROMISE": Self.waiting + Peer.frame(.pushPromise, flags: .endHeaders, stream: 1, [0, 0, 0, 2]),
            "6.6 PUSH_PROMISE on an idle stream": Peer.frame(
                .pushPromise,
                flags: .endHeaders,
                stream: 1,
                [0, 0, 0, 2]
            ),
            "6.6 PUSH_PROMISE without a stream": Peer.frame(.pushPromise, flags: .endHeaders, [0, 0, 0, 2]),
            "6.7 PING on a stream": Peer.frame(.ping, stream: 1, Self.ping),
            "6.8 GOAWAY on a stream": Peer.frame(.goAway, stream: 1, [UInt8](repeating: 0, count: 8)),
        ],
        .connectionError(.frameSizeError): [
            "5.4.1 a PING that is wrong": Peer.frame(.ping, [1, 2, 3]),
            "6.7 PING of seven bytes": Peer.frame(.ping, [UInt8](repeating: 0, count: 7)),
            "6.7 PING of nine bytes": Peer.frame(.ping, [UInt8](repeating: 0, count: 9)),
            "6.8 GOAWAY of seven bytes": Peer.frame(.goAway, [UInt8](repeating: 0, count: 7)),
        ],
        .ignored: [
            "6.7 an answer to a PING that was not sent": Peer.frame(.ping, flags: .ack, Self.ping),
            "7 an unknown error code in RST_STREAM": Self.waiting + Peer.frame(.reset, stream: 1, [0, 0, 0, 0xFF]),
        ],
        .ended: [
            "6.8 GOAWAY with debug data": Peer.frame(.goAway, [UInt8](repeating: 0, count: 8) + Self.ping),
            "7 an unknown error code in GOAWAY": Peer.frame(.goAway, [0, 0, 0, 0, 0, 0, 0, 0xFF]),
        ],
    ])

    private static let continuations = Self.rules([
        .connectionError(.protocolError): [
            "6.10 CONTINUATION without a stream": Self.begun
                + Peer.frame(.continuation, flags: .endHeaders, Peer.field("a", "b")),
            "6.10 CONTINUATION of another stream": Self.begun
                + Peer.frame(.continuation, flags: .endHeaders, stream: 3, Peer.field("a", "b")),
            "6.10 CONTINUATION after the end of a field block": Self.waiting
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.field("a", "b")),
            "6.10 CONTINUATION after a CONTINUATION that ended the field block": Self.begun
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.field("a", "b"))
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.field("a", "b")),
            "6.10 CONTINUATION after DATA": Self.open + Peer.frame(.data, stream: 1, [1])
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.field("a", "b")),
            "6.10 another frame than CONTINUATION": Self.begun + Peer.frame(.ping, Self.ping),
            "6.10 SETTINGS within a field block": Self.begun + Peer.frame(.settings),
        ],
        .answered(200): [
            "6.10 several CONTINUATION frames": Self.begun + Peer.frame(.continuation, stream: 1, Peer.field("a", "b"))
                + Peer.frame(.continuation, stream: 1)
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, Peer.field("c", "d")),
            "6.10 flags that CONTINUATION does not have": Self.begun
                + Peer.frame(.continuation, flags: FrameFlags(rawValue: 0xFF), stream: 1, Peer.field("a", "b")),
        ],
    ])
}
