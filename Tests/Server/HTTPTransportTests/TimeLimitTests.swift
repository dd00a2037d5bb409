import HTTPTransport
import Testing

/// Limits that need a socket and real time; those of one session are tested without either.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct TimeLimitTests {
    @Test("A connection without requests is told GOAWAY and ended; one with a request stays")
    func idle() async throws {
        var limits = TransportLimits()
        limits.idleSeconds = 1
        let server = try TestServer(limits)
        let busy = try server.peer()
        // Acknowledges them, so that this wait may last.
        #expect(busy.frame(type: 4) != nil)
        busy.send(ScriptedPeer.request("/wait", stream: 1))
        await server.log.wait(for: "waiting 1")
        let peer = try server.peer()
        TestServer.expectServed(peer)
        #expect(peer.frame(type: 7)?.errorCode == 0)
        #expect(peer.hasEnded())
        try server.expectServed()
        let other = try server.peer()
        other.send(ScriptedPeer.request("/release", stream: 1))
        #expect(busy.body(stream: 1) == [UInt8]("released".utf8))
    }

    @Test("An answer that is not taken in time is reset, and the connection goes on")
    func responseNotTaken() throws {
        var limits = TransportLimits()
        limits.responseSeconds = 1
        let server = try TestServer(limits)
        let peer = try server.peer(settings: ScriptedPeer.setting(4, 0))
        peer.send(ScriptedPeer.request("/big", stream: 1))
        #expect(peer.frame(type: 3, stream: 1)?.errorCode == 8)
        peer.send(ScriptedPeer.request("/echo", stream: 3))
        #expect(peer.body(stream: 3) == [])
    }

    @Test(
        "A request of HTTP/1.1 that stops coming is answered 408 once, and its connection ends",
        arguments: ["G", "GET /echo HTTP/1.1\r\nHo", "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na"]
    )
    func requestStops(sent: String) throws {
        var limits = TransportLimits()
        limits.requestSeconds = 1
        let server = try TestServer(limits)
        let peer = try ScriptedPeer(server.address)
        peer.send(sent)
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 408 Request Timeout\r\n") == true)
        #expect(peer.text(through: "\n") == "The request took too long to arrive.\n")
        #expect(peer.hasEnded())
        #expect(server.times(.requestSeconds) == 1)
        try server.expectServed()
    }

    @Test("A peer whose socket takes nothing is ended, and others are served")
    func writeStall() async throws {
        var limits = TransportLimits()
        limits.writeStallSeconds = 1
        limits.queuedBytesPerConnectionMax = 67_108_864
        let server = try TestServer(limits)
        let peer = try server.peer(settings: ScriptedPeer.setting(4, 0x7FFF_FFFF))
        peer.send(ScriptedPeer.update(0x7000_0000))
        for index in 0..<60 { peer.send(ScriptedPeer.request("/big", stream: index * 2 + 1)) }
        await server.log.wait(for: "connection closed")
        try server.expectServed()
        #expect(peer.hasEnded())
    }

    @Test("The handler hears that a streaming response was taken")
    func streamDrained() async throws {
        var limits = TransportLimits()
        limits.streamingBytesSoftMax = 10_000
        let server = try TestServer(limits)
        let peer = try server.peer(settings: ScriptedPeer.setting(4, 0))
        peer.send(ScriptedPeer.request("/fill", stream: 1))
        await server.log.wait(for: "filled 1")
        peer.send(ScriptedPeer.update(stream: 1, 16_000))
        await server.log.wait(for: "drained 1")
    }
}
