import HTTPTransport
import Testing
import Wire

@Suite("The sessions of a loop pack their frames into one buffer")
struct SharedFrameBufferTests {
    private typealias Peer = ScriptedPeer

    @Test("Sessions that send a frame each in turn send what they would send alone")
    func interleaved() {
        let first = SessionFixture()
        let fixtures = [first, SessionFixture(beside: first), SessionFixture(beside: first)]
        var sent: [[UInt8]] = [[], [], []]
        var bodies: [[UInt8]] = []
        for (index, fixture) in fixtures.enumerated() {
            // Windows larger than any body, so that nothing but the turn holds a frame back.
            fixture.receive(Peer.update(1 << 20) + Peer.request("/wait", stream: 1) + Peer.request("/wait", stream: 3))
            fixture.receive(Peer.update(stream: 1, 1 << 20) + Peer.update(stream: 3, 1 << 20))
            let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7 &+ index * 85) }
            bodies.append(body)
            #expect(fixture.session.beginStreaming(1, Response()))
            #expect(body.withByteView { fixture.session.write(1, $0) } == body.count)
            fixture.session.finish(1)
            #expect(fixture.respond(3, body: "short"))
            fixture.receive(Peer.frame(6, [1, 2, 3, 4, 5, 6, 7, UInt8(index)]))
        }
        var turns = 0
        while turns < 1000 {
            var hasSent = false
            for (index, fixture) in fixtures.enumerated() {
                var output = ByteBuffer()
                // One frame a turn.
                fixture.session.produce(into: &output, bytesMax: 1)
                sent[index] += output.view.array
                hasSent = hasSent || !output.isEmpty
            }
            guard hasSent else { break }
            turns += 1
        }
        #expect(turns > 8)
        for (index, bytes) in sent.enumerated() {
            let frames = Peer.frames(in: bytes)
            let data = frames.filter { $0.type == 0 && $0.stream == 1 }.flatMap(\.payload)
            #expect(data == bodies[index])
            #expect(frames.filter { $0.type == 0 && $0.stream == 3 }.flatMap(\.payload) == Array("short".utf8))
            #expect(frames.contains { $0.type == 6 && $0.payload == [1, 2, 3, 4, 5, 6, 7, UInt8(index)] })
        }
    }

    @Test("A session that ends leaves the buffer to the others")
    func ended() {
        let first = SessionFixture()
        do {
            let second = SessionFixture(beside: first)
            second.receive(Peer.request("/echo", stream: 1))
            #expect(!second.produce().isEmpty)
        }
        first.receive(Peer.request("/wait", stream: 1))
        #expect(first.respond(1, body: "still here"))
        #expect(first.produce().contains { $0.type == 0 && $0.payload == Array("still here".utf8) })
    }
}
