import HTTPTransport
import Testing

@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP1Tests {
    @Test("One connection carries several requests, one after the other")
    func keepAlive() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        for body in ["one", "two", "three"] {
            peer.send("POST /echo HTTP/1.1\r\nHost: Example\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            let head = try #require(peer.text(through: "\r\n\r\n"))
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            #expect(head.contains("x-authority: Example\r\n"))
            #expect(peer.text(through: body) == body)
        }
    }

    @Test("A chunked body is put together")
    func chunkedBody() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        peer.send("3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200 ") == true)
        #expect(peer.text(through: "abcdefg") == "abcdefg")
    }

    @Test("A method that begins like HTTP/2's preface is not taken for it")
    func methodLikePreface() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("PR")
        peer.send("OPFIND /nothing HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 404 ") == true)
    }

    @Test("A peer that ends after the first letters of the preface is let go at once")
    func cutPreface() throws {
        var limits = TransportLimits()
        limits.handshakeSeconds = 3600
        let server = try TestServer(limits)
        let peer = try ScriptedPeer(server.address)
        peer.send("PR")
        peer.endWriting()
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test("A body that is announced as too large is refused before it is sent")
    func announcedTooLarge() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 413 ") == true)
        try server.expectServed()
    }

    @Test("A chunked body that turns out too large is refused")
    func chunkedTooLarge() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<5 { peer.send("400\r\n" + String(repeating: "x", count: 1024) + "\r\n") }
        peer.send("0\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 413 ") == true)
    }

    @Test("An answer may come later, from another connection's turn")
    func answeredLater() async throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
        await server.log.wait(for: "waiting 1")
        let other = try server.peer()
        other.send(ScriptedPeer.request("/release", stream: 1))
        #expect(peer.text(through: "released")?.hasPrefix("HTTP/1.1 200 ") == true)
    }

    @Test("A streaming response begins at once; its reader's end is noticed")
    func streaming() async throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "first\n")?.hasPrefix("HTTP/1.1 200 ") == true)
        await server.log.wait(for: "streaming 1")
        peer.close()
        await server.log.wait(for: "closed 1")
        await server.log.wait(for: "connection closed")
        try server.expectServed()
    }

    @Test("A connection that is to end does so after its answer, also when that was given before")
    func goAwayAfterAnswer() throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /last HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "last")?.hasPrefix("HTTP/1.1 200 ") == true)
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test("The end of a peer that waits for its answer is noticed")
    func waitingPeerEnds() async throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
        await server.log.wait(for: "waiting 1")
        peer.close()
        await server.log.wait(for: "closed 1")
        try server.expectServed()
    }

    @Test("A server stops while answers wait")
    func stopWhileWaiting() async throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
        await server.log.wait(for: "waiting 1")
        server.server.stop()
        await server.log.wait(for: "closed 1")
        #expect(peer.hasEnded())
    }
}
