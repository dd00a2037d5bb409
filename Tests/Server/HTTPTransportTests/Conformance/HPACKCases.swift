import HTTPTransport

/// RFC 7541: what a field block may be.
extension ConformanceCase {
    static let hpack =
        Self.accepted.map { section, name, bytes in
            ConformanceCase(
                "HPACK \(section)",
                name,
                Peer.request(block: Peer.headers("/echo") + bytes),
                .answered(200)
            )
        }
        + Self.broken.map { section, name, bytes in
            ConformanceCase(
                "HPACK \(section)",
                name,
                Peer.request(block: Peer.headers("/echo") + bytes),
                .connectionError(.compressionError)
            )
        } + Self.tables

    /// The literals of RFC 7541 appendix C.4: in Huffman code, their lengths before them.
    private static let customKey: [UInt8] = [0x88, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xA9, 0x7D, 0x7F]
    private static let customValue: [UInt8] = [0x89, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xB8, 0xE8, 0xB4, 0xBF]
    private static let plainKey: [UInt8] = [1, 0x61]
    private static let plainValue: [UInt8] = [1, 0x62]
    /// `user-agent`, entry 58, as an index of four bits.
    private static let userAgent: UInt8 = 58 - 15

    private static let accepted: [(String, String, [UInt8])] = [
        ("6.1", "an indexed field", [0x90]),
        ("6.2.1", "a literal that is indexed, its name an entry", [0x7A] + Self.plainValue),
        ("6.2.1", "a literal that is indexed, its name an entry, in Huffman code", [0x7A] + Self.customValue),
        ("6.2.1", "a literal that is indexed", [0x40] + Self.plainKey + Self.plainValue),
        ("6.2.1", "a literal that is indexed, in Huffman code", [0x40] + Self.customKey + Self.customValue),
        ("6.2.1", "a literal that is indexed, then that entry", [0x40] + Self.plainKey + Self.plainValue + [0xBE]),
        ("6.2.2", "a literal that is not indexed, its name an entry", [0x0F, Self.userAgent] + Self.plainValue),
        (
            "6.2.2", "a literal that is not indexed, its name an entry, in Huffman code",
            [0x0F, Self.userAgent] + Self.customValue
        ),
        ("6.2.2", "a literal that is not indexed", [0x00] + Self.plainKey + Self.plainValue),
        ("6.2.2", "a literal that is not indexed, in Huffman code", [0x00] + Self.customKey + Self.customValue),
        ("6.2.3", "a literal that is never indexed, its name an entry", [0x1F, Self.userAgent] + Self.plainValue),
        (
            "6.2.3", "a literal that is never indexed, its name an entry, in Huffman code",
            [0x1F, Self.userAgent] + Self.customValue
        ),
        ("6.2.3", "a literal that is never indexed", [0x10] + Self.plainKey + Self.plainValue),
        ("6.2.3", "a literal that is never indexed, in Huffman code", [0x10] + Self.customKey + Self.customValue),
        (
            "5.1", "an index that takes a byte more than it needs",
            [0x0F, 0x80 | Self.userAgent, 0x00] + Self.plainValue
        ),
        ("5.2", "Huffman code that is as long as the literal", [0x00] + Self.plainKey + [0x81, 0x1F]),
    ]

    private static let broken: [(String, String, [UInt8])] = [
        ("2.3.3", "an index that the tables do not have", [0xC6]),
        ("2.3.3", "a name whose index the tables do not have", [0x7F, 0x07] + Self.plainValue),
        ("4.2", "a new table size at the end of a field block", [0x20]),
        ("4.2", "a new table size between two fields", [0x20] + Peer.field("a", "b")),
        ("5.1", "an index that overflows", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("5.1", "an index that breaks off", [0xFF, 0x80]),
        ("5.1", "a length that overflows", [0x00] + Self.plainKey + [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("5.2", "a literal that breaks off", [0x00] + Self.plainKey + [5, 0x62]),
        ("5.2", "a literal whose name breaks off", [0x00, 5, 0x61]),
        (
            "5.2", "Huffman code with more than seven bits of padding",
            [0x00] + Self.plainKey + [0x8A] + Self.customValue.dropFirst() + [0xFF]
        ),
        ("5.2", "Huffman code with zeros for padding", [0x00] + Self.plainKey + [0x81, 0x00]),
        ("5.2", "Huffman code with the end-of-string symbol", [0x00] + Self.plainKey + [0x84, 0xFF, 0xFF, 0xFF, 0xFF]),
        (
            "5.2", "Huffman code with the end-of-string symbol between others",
            [0x00] + Self.plainKey + [0x85, 0xFF, 0xFF, 0xFF, 0xFC, 0x1F]
        ),
        ("6.1", "index 0", [0x80]),
        ("6.2", "a value that is not there", [0x7A]),
    ]

    private static func block(_ update: [UInt8]) -> [UInt8] { Peer.request(block: update + Peer.headers("/echo")) }

    private static let tables: [ConformanceCase] = [
        .init(
            "HPACK 4.2",
            "a table size of 0, then the largest",
            Self.block([0x20, 0x3F, 0xE1, 0x1F]),
            .answered(200)
        ),
        .init("HPACK 4.2", "the table size that it is", Self.block([0x3F, 0xE1, 0x1F]), .answered(200)),
        .init(
            "HPACK 6.3",
            "a table size over the limit",
            Self.block([0x3F, 0xE2, 0x1F]),
            .connectionError(.compressionError)
        ),
        .init(
            "HPACK 6.3",
            "a table size that overflows",
            Self.block([0x3F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
            .connectionError(.compressionError)
        ),
        .init(
            "HPACK 4.3",
            "an entry that a smaller table has lost",
            after: Peer.request(block: Peer.headers("/echo") + [0x40] + Self.plainKey + Self.plainValue),
            Peer.frame(.headers, Flags.whole, stream: 3, [0x20] + Peer.headers("/echo") + [0xBE]),
            .connectionError(.compressionError)
        ),
        .init(
            "HPACK 4.4",
            "an entry larger than the table, which empties it",
            after: Peer.request(block: Peer.headers("/echo") + [0x40] + Self.plainKey + Self.plainValue),
            Peer.frame(
                .headers,
                Flags.whole,
                stream: 3,
                // 5,000 as an integer with a prefix of seven bits.
                Peer.headers("/echo") + [0x40] + Self.plainKey + [0x7F, 0x89, 0x26]
                    + [UInt8](repeating: 0x61, count: 5000) + [0xBE]
            ),
            .connectionError(.compressionError)
        ),
        .init(
            "HPACK 2.2",
            "an entry of another request's table",
            after: Peer.request(block: Peer.headers("/echo") + [0x40] + Self.plainKey + Self.plainValue),
            Peer.frame(.headers, Flags.whole, stream: 3, Peer.headers("/echo") + [0xBE]),
            stream: 3,
            .answered(200)
        ),
    ]
}
