import HTTPTransport
import Testing
import Wire

@Suite("HEAD")
struct HeadMethodTests {
    private typealias Peer = ScriptedPeer

    /// HEADERS of a request whose method is HEAD.
    private static func head(_ path: String, stream: Int = 1, ended: Bool = true) -> [UInt8] {
        let method: [UInt8] = [0x02, 4] + [UInt8]("HEAD".utf8)
        return Peer.frame(1, flags: ended ? 5 : 4, stream: stream, method + Peer.headers(path).dropFirst())
    }

    @Test("An answer has no content, whatever the handler gives")
    func respond() {
        let fixture = SessionFixture()
        for number in [1, 3] { fixture.receive(Self.head("/wait", stream: number)) }
        #expect(fixture.respond(1, body: "content"))
        #expect(fixture.respond(3))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [1, 1])
        #expect(frames.map(\.stream) == [1, 3])
        #expect(frames.allSatisfy { $0.flags & 1 == 1 })
        #expect(fixture.session.queuedBytes == 0)
        #expect(fixture.memory.streams.usedCount == 0)
        // The state of a stream is used again.
        fixture.receive(Peer.request("/wait", stream: 5))
        #expect(fixture.respond(5, body: "content"))
        #expect(fixture.produce().map(\.type) == [1, 0])
    }

    @Test("A streaming answer is its head alone, and is over when that has left")
    func streaming() {
        let fixture = SessionFixture()
        fixture.receive(Self.head("/wait"))
        _ = fixture.takeEvents()
        #expect(fixture.session.beginStreaming(1, Response()))
        _ = fixture.session.write(1, ByteView("content"))
        let frames = fixture.produce()
        #expect(frames.map(\.type) == [1])
        #expect(frames.first?.flags == 5)
        #expect(fixture.takeEvents() == ["closed 1"])
        #expect(fixture.session.queuedBytes == 0)
        #expect(fixture.session.write(1, ByteView("more")) == nil)
    }

    @Test("Neither a body that is too large nor one there is no room for brings content")
    func refusals() {
        var limits = TransportLimits()
        limits.requestBytesPerConnectionMax = 10
        for limits in [TransportLimits(), limits] {
            let fixture = SessionFixture(limits)
            fixture.receive(Self.head("/echo", ended: false))
            fixture.receive(Peer.frame(0, stream: 1, [UInt8](repeating: 0x61, count: 5000)))
            #expect(!fixture.produce().contains { $0.type == 0 })
        }
    }
}
