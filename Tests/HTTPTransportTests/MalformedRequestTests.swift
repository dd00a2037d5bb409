import HTTPTransport
import Testing

/// Requests that RFC 9113 §8.1.1 calls malformed end their stream with PROTOCOL_ERROR, and nothing else.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct MalformedRequestTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// What is sent on stream 1.
        let bytes: [UInt8]

        init(_ name: String, _ bytes: [UInt8]) {
            self.testDescription = name
            self.bytes = bytes
        }

        /// One header block, which is the whole request.
        init(_ name: String, block: [UInt8]) {
            self.init(name, ScriptedPeer.frame(1, flags: 5, stream: 1, block))
        }
    }

    private typealias Peer = ScriptedPeer

    private static let path: [UInt8] = [0x04, 2, UInt8(ascii: "/"), UInt8(ascii: "x")]
    private static let whole = Peer.headers("/echo")

    static let cases: [Case] = [
        Case("a name with capitals", block: Self.whole + Peer.field("X-Name", "1")),
        Case("no method", block: [0x86] + Self.path),
        Case("no scheme", block: [0x82] + Self.path),
        Case("no path", block: [0x82, 0x86]),
        Case("an empty path", block: [0x82, 0x86, 0x04, 0]),
        Case("a path without a slash", block: [0x82, 0x86, 0x04, 1, UInt8(ascii: "x")]),
        Case("two methods", block: [0x82, 0x82, 0x86] + Self.path),
        Case("a status", block: [0x82, 0x86] + Self.path + [0x88]),
        Case("a pseudo-header field nobody knows", block: [0x82, 0x86] + Self.path + Peer.field(":x", "1")),
        Case("a pseudo-header field after a regular one", block: [0x82, 0x86] + Peer.field("x", "1") + Self.path),
        Case("connection", block: Self.whole + Peer.field("connection", "close")),
        Case("keep-alive", block: Self.whole + Peer.field("keep-alive", "1")),
        Case("proxy-connection", block: Self.whole + Peer.field("proxy-connection", "close")),
        Case("transfer-encoding", block: Self.whole + Peer.field("transfer-encoding", "chunked")),
        Case("upgrade", block: Self.whole + Peer.field("upgrade", "h2c")),
        Case("te that is not trailers", block: Self.whole + Peer.field("te", "gzip")),
        Case("a content-length that is no number", block: Self.whole + Peer.field("content-length", "x")),
        Case(
            "two content-lengths",
            block: Self.whole + Peer.field("content-length", "0") + Peer.field("content-length", "0")
        ),
        Case("a content-length without body", block: Self.whole + Peer.field("content-length", "3")),
        Case("less DATA than content-length", Self.announced(3) + Peer.frame(0, flags: 1, stream: 1, [1, 2])),
        Case("more DATA than content-length", Self.announced(3) + Peer.frame(0, stream: 1, [1, 2, 3, 4])),
        Case(
            "trailers that do not end the request",
            Peer.request("/echo", stream: 1, ended: false) + Peer.frame(1, flags: 4, stream: 1, Peer.field("a", "b"))
        ),
        Case(
            "a pseudo-header field among the trailers",
            Peer.request("/echo", stream: 1, ended: false) + Peer.frame(1, flags: 5, stream: 1, [0x82])
        ),
    ]

    private static func announced(_ count: Int) -> [UInt8] {
        let block = Peer.headers("/echo", isPost: true) + Peer.field("content-length", "\(count)")
        return Peer.frame(1, flags: 4, stream: 1, block)
    }

    @Test("A malformed request is reset, and its connection and others go on", arguments: Self.cases)
    func malformed(_ faulty: Case) throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(faulty.bytes)
        let answer = try #require(peer.nextFrame { $0.stream == 1 })
        #expect(answer.type == 3)
        #expect(answer.errorCode == 1)
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.body(stream: 3) == [])
        try server.expectServed()
    }

    static let allowed: [Case] = [
        Case("a frame of a type nobody knows", Peer.frame(0x42, flags: 0xFF, stream: 1, [1, 2, 3])),
        Case("a setting nobody knows", Peer.frame(4, Peer.setting(0x42, 7))),
        Case("PRIORITY on an idle stream", Peer.frame(2, stream: 9, [0, 0, 0, 0, 16])),
        Case("a field without a name", Peer.frame(1, flags: 5, stream: 1, Self.whole + Peer.field("", "x"))),
        Case(
            "trailers",
            Peer.request("/echo", stream: 1, ended: false) + Peer.frame(1, flags: 5, stream: 1, Peer.field("a", "b"))
        ),
        Case(
            "DATA with padding",
            Peer.request("/echo", stream: 1, ended: false) + Peer.frame(0, flags: 9, stream: 1, [2, 7, 0, 0])
        ),
        // libnghttp2 keeps nothing of a closed stream: it throws such frames away and gives their window back.
        Case(
            "DATA on a stream that was answered and closed",
            Peer.request("/echo", stream: 1) + Peer.frame(3, stream: 1, Peer.bytes(8)) + Peer.frame(0, stream: 1, [1])
        ),
        Case(
            "trailers to a stream that was reset half-way",
            Peer.request("/echo", stream: 1, ended: false) + Peer.frame(3, stream: 1, Peer.bytes(8))
                + Peer.frame(1, flags: 5, stream: 1, Peer.field("a", "b"))
        ),
    ]

    @Test("What a peer may send at any time changes nothing", arguments: Self.allowed)
    func mayCome(_ harmless: Case) throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(harmless.bytes + ScriptedPeer.request("/echo", stream: 3, ended: false))
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: 3, [5]))
        #expect(peer.body(stream: 3) == [5])
    }

    @Test("A preface that comes byte by byte is a preface")
    func splitPreface() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        let bytes = ScriptedPeer.preface + ScriptedPeer.frame(4) + ScriptedPeer.request("/echo", stream: 1)
        for byte in bytes { peer.send([byte]) }
        #expect(peer.frame(type: 1, stream: 1)?.status == 200)
    }
}
