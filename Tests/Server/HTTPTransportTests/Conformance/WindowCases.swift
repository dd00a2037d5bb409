import HTTPTransport

/// RFC 9113 §6.9: flow control, as far as one frame tells.
extension ConformanceCase {
    static let windows: [ConformanceCase] = [
        .init("6.9", "WINDOW_UPDATE of nothing", Peer.update(0), .connectionError(.protocolError)),
        .init(
            "6.9",
            "WINDOW_UPDATE of nothing on a stream",
            Self.waiting + Peer.update(stream: 1, 0),
            .connectionError(.protocolError)
        ),
        .init(
            "6.9",
            "WINDOW_UPDATE of three bytes",
            Peer.frame(.windowUpdate, [0, 0, 1]),
            .connectionError(.frameSizeError)
        ),
        .init(
            "6.9",
            "WINDOW_UPDATE of five bytes",
            Peer.frame(.windowUpdate, [0, 0, 0, 1, 0]),
            .connectionError(.frameSizeError)
        ),
        .init("6.9", "the reserved bit of WINDOW_UPDATE", Peer.update(0x8000_0001), .ignored),
        .init(
            "6.9.1",
            "a connection window over 2^31-1",
            Peer.update(0x7FFF_FFFF),
            .connectionError(.flowControlError)
        ),
        .init(
            "6.9.1",
            "a connection window over 2^31-1 in two steps",
            Peer.update(0x7FFF_0000) + Peer.update(0x1_0000),
            .connectionError(.flowControlError)
        ),
        .init("6.9.1", "a connection window of 2^31-1", Peer.update(0x7FFF_0000), .ignored),
        .init(
            "6.9.1",
            "a stream window over 2^31-1",
            Self.waiting + Peer.update(stream: 1, 0x7FFF_FFFF),
            .streamError(.flowControlError)
        ),
        .init(
            "6.9.1",
            "a stream window over 2^31-1 in two steps",
            Self.waiting + Peer.update(stream: 1, 0x7FFF_0000) + Peer.update(stream: 1, 0x1_0000),
            .streamError(.flowControlError)
        ),
        .init(
            "6.9.2",
            "INITIAL_WINDOW_SIZE that takes a stream's window over 2^31-1",
            Self.waiting + Peer.update(stream: 1, 0x7FFF_0000) + Peer.frame(.settings, Peer.setting(4, 0x1_0000)),
            .connectionError(.flowControlError)
        ),
    ]
}
