import HTTPTransport
import Testing

@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP2ServerTests {
    @Test("The settings of APNs come first, before any request")
    func settings() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send(ScriptedPeer.preface)
        let first = try #require(peer.nextFrame())
        #expect(first.type == 4)
        let wanted = [(1, 4096), (3, 1000), (4, 65_535), (5, 16_384), (6, 8000)]
        #expect(first.payload == wanted.flatMap { ScriptedPeer.setting(UInt8($0.0), UInt32($0.1)) })
    }

    @Test("A request may begin at stream 3, have only a host, and is answered in one DATA frame")
    func hostOnly() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 3, ended: false))
        peer.send(ScriptedPeer.frame(0, stream: 3, [1, 2]) + ScriptedPeer.frame(0, flags: 1, stream: 3, [3]))
        let head = try #require(peer.frame(type: 1, stream: 3))
        // "x-authority: h" as a literal that is not indexed, its value in Huffman code or not.
        #expect(head.payload.count > 8)
        let data = try #require(peer.frame(type: 0, stream: 3))
        #expect(data.flags & 1 == 1)
        #expect(data.payload == [1, 2, 3])
    }

    @Test("A body over its limit is answered at once, then its stream is reset with NO_ERROR")
    func bodyTooLarge() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        peer.send(ScriptedPeer.frame(0, stream: 1, [UInt8](repeating: 0, count: 5000)))
        let data = try #require(peer.frame(type: 0, stream: 1))
        #expect(data.payload == [UInt8]("too large".utf8))
        #expect(data.flags & 1 == 1)
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == 0)
        // What is still under way is thrown away.
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: 1, [UInt8](repeating: 0, count: 5000)))
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.body(stream: 3) == [])
    }

    @Test("A body of exactly its limit is taken")
    func bodyAtLimit() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: 1, [UInt8](repeating: 9, count: 4096)))
        #expect(peer.body(stream: 1)?.count == 4096)
    }

    @Test("PING is answered with its own bytes")
    func ping() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.frame(6, [1, 2, 3, 4, 5, 6, 7, 8]))
        let answer = try #require(peer.frame(type: 6))
        #expect(answer.flags == 1)
        #expect(answer.payload == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test("A peer that does not answer PING is gone")
    func pingUnanswered() async throws {
        var limits = TransportLimits()
        limits.pingSeconds = 1
        let server = try TestServer(limits)
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/stream", stream: 1))
        #expect(peer.frame(type: 6)?.flags == 0)
        await server.log.wait(for: "closed 1")
        #expect(peer.hasEnded())
    }

    @Test("A peer that answers PING stays")
    func pingAnswered() throws {
        var limits = TransportLimits()
        limits.pingSeconds = 1
        let server = try TestServer(limits)
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/stream", stream: 1))
        for _ in 0..<3 {
            let ping = try #require(peer.frame(type: 6))
            peer.send(ScriptedPeer.frame(6, flags: 1, ping.payload))
        }
    }

    @Test("GOAWAY carries its reason; the stream is finished, then the connection ends")
    func goAway() throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/goaway", stream: 1))
        var goAway: ScriptedPeer.Frame?
        var answer: ScriptedPeer.Frame?
        while let frame = peer.nextFrame() {
            if frame.type == 7 { goAway = frame }
            if frame.type == 1 { answer = frame }
        }
        #expect(goAway?.errorCode == 0)
        #expect(goAway?.payload.dropFirst(8) == [UInt8]("{\"reason\":\"Shutdown\"}".utf8)[...])
        #expect(answer?.stream == 1)
    }

    @Test("After GOAWAY from the peer its open stream is answered, then the connection ends")
    func peerGoesAway() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/wait", stream: 1))
        await server.log.wait(for: "waiting 1")
        peer.send(ScriptedPeer.frame(7, ScriptedPeer.bytes(0) + ScriptedPeer.bytes(0)))
        let other = try server.peer()
        other.send(ScriptedPeer.request("/release", stream: 1))
        #expect(peer.body(stream: 1) == [UInt8]("released".utf8))
        #expect(peer.hasEnded())
    }

    @Test("The head of a streaming response leaves at once, and a reset is reported")
    func streaming() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/stream", stream: 1))
        #expect(peer.frame(type: 1, stream: 1)?.flags == 4)
        #expect(peer.frame(type: 0, stream: 1)?.payload == [UInt8]("first\n".utf8))
        peer.send(ScriptedPeer.frame(3, stream: 1, ScriptedPeer.bytes(8)))
        await server.log.wait(for: "closed 1")
    }

    @Test("A connection that is gone closes its streams, then itself")
    func disconnect() async throws {
        let server = try TestServer()
        let peer = try server.peer()
        peer.send(ScriptedPeer.request("/wait", stream: 1))
        await server.log.wait(for: "waiting 1")
        peer.close()
        await server.log.wait(for: "closed 1")
        await server.log.wait(for: "connection closed")
    }

    @Test("A wake from another thread reaches the handler")
    func wake() async throws {
        let server = try TestServer(loopCount: 2)
        for loop in server.server.loops {
            loop.wake()
            await server.log.wait(for: "woken")
        }
    }

    @Test("An address in use is named")
    func addressInUse() throws {
        let server = try TestServer()
        let taken = server.address
        let log = server.log
        let error = #expect(throws: TransportError.self) {
            _ = try HTTPServer(
                listeners: [Listener(address: try .parse(taken), tls: nil)],
                loopCount: 1
            ) { ScriptedHandler($0, log) }
        }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains(taken) == true)
    }
}
