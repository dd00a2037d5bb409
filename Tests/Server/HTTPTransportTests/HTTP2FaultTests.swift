import HTTPTransport
import Testing

/// Every fault ends the offender with the error that RFC 9113 names, and nobody else.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP2FaultTests {
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let errorCode: Int

        init(_ name: String, _ errorCode: Int, _ bytes: [UInt8]) {
            self.testDescription = name
            self.errorCode = errorCode
            self.bytes = bytes
        }
    }

    private typealias Peer = ScriptedPeer

    private static func repeated(_ count: Int, _ make: (Int) -> [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<count { bytes += make(index) }
        return bytes
    }

    /// The floods, and what ends a connection at once by its form.
    static var allFaults: [Fault] {
        Self.floods
            + ConformanceCase.all.filter(\.isImmediateConnectionError).filter { $0.opening.count > 24 }.compactMap {
                rule in
                guard case .connectionError(let codes) = rule.outcome else { return nil }
                return Fault(rule.testDescription, Int(codes[0].number), rule.sent)
            }
    }

    static let floods: [Fault] = [
        Fault(
            "a header block without end",
            11,
            Peer.frame(1, flags: 1, stream: 1, [0x82]) + Self.repeated(1500) { _ in Peer.frame(9, stream: 1) }
        ),
        Fault("a flood of PING", 11, Self.repeated(1500) { _ in Peer.frame(6, [UInt8](repeating: 0, count: 8)) }),
        Fault("a flood of SETTINGS", 11, Self.repeated(1500) { _ in Peer.frame(4) }),
        Fault("a flood of PRIORITY", 11, Self.repeated(1500) { _ in Peer.frame(2, stream: 1, [0, 0, 0, 0, 15]) }),
        Fault("a flood of WINDOW_UPDATE", 11, Self.repeated(1500) { _ in Peer.update(1) }),
        Fault(
            "a flood of WINDOW_UPDATE on a stream",
            11,
            Peer.request("/wait", stream: 1) + Self.repeated(1500) { _ in Peer.update(stream: 1, 1) }
        ),
        Fault(
            "a flood of GOAWAY",
            11,
            Peer.request("/wait", stream: 1)
                + Self.repeated(1500) { _ in Peer.frame(7, [UInt8](repeating: 0, count: 8)) }
        ),
        Fault(
            "a flood of streams that are reset",
            11,
            Self.repeated(1500) { index in
                Peer.request("/wait", stream: index * 2 + 1) + Peer.frame(3, stream: index * 2 + 1, Peer.bytes(8))
            }
        ),
        Fault(
            "a flood of streams that are reset without an error",
            11,
            Self.repeated(1500) { index in
                Peer.request("/wait", stream: index * 2 + 1) + Peer.frame(3, stream: index * 2 + 1, Peer.bytes(0))
            }
        ),
        Fault(
            "a flood of empty DATA",
            11,
            Peer.request("/echo", stream: 1, ended: false) + Self.repeated(1500) { _ in Peer.frame(0, stream: 1) }
        ),
    ]

    @Test("An answer that comes after a fault ended its connection harms nobody")
    func answerAfterFault() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(Peer.request("/wait", stream: 1) + Peer.frame(0, [0x78]))
        await server.log.wait(for: "closed 1")
        let other = try server.peer()
        other.send(Peer.request("/release", stream: 1))
        #expect(other.frame(type: 1, stream: 1)?.status == 200)
        try server.expectServed()
    }

    @Test(
        "Fields far over the limit, from a block within it, are reset and not looked at further",
        arguments: [false, true]
    )
    func fieldBomb(inTrailers: Bool) throws {
        let server = try TestServer()
        let peer = try server.peer()
        // An entry of 4,032 bytes, and references to it of one byte each.
        let entry = [0x40, 1, 0x78, 0x7F, 0xA1, 0x1E] + [UInt8](repeating: 0x76, count: 4000)
        let bomb = entry + [UInt8](repeating: 0xBE, count: 10_000)
        if inTrailers {
            peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false) + ScriptedPeer.frame(0, stream: 1, [1]))
            peer.send(ScriptedPeer.frame(1, flags: 5, stream: 1, bomb))
        } else {
            peer.send(ScriptedPeer.frame(1, flags: 5, stream: 1, ScriptedPeer.headers("/echo") + bomb))
        }
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == 11)
        // The table is as it would be, had all of it been looked at.
        peer.send(ScriptedPeer.frame(1, flags: 5, stream: 3, ScriptedPeer.headers("/echo") + [0xBE]))
        #expect(peer.frame(type: 1, stream: 3)?.status == 200)
        try server.expectServed()
    }
}
