import HTTPTransport
import Testing
import Wire

@Suite(.serialized, .timeLimit(.minutes(15)))
struct HTTP1Tests {
    @Test(
        "A method that begins like HTTP/2's preface is not mistaken for it",
        arguments: [("PR", "OPFIND"), ("PRI", "X")]
    )
    func methodLikePreface(_ beginning: String, _ rest: String) throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send(beginning)
        peer.send("\(rest) /nothing HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 404 ") == true)
    }

    @Test("A peer that ends within the preface is released immediately")
    func cutPreface() throws {
        let server = try TestServer(TransportLimits { $0.handshakeSeconds = 3600 })
        let peer = try ScriptedPeer(server.address)
        peer.send("PR")
        peer.endWriting()
        #expect(peer.hasEnded())
        try server.expectServed()
    }

    @Test(
        "A streaming response begins immediately; the end of a peer that reads it or waits for an answer is noticed",
        arguments: [("/stream", "streaming 1"), ("/wait", "waiting 1")]
    )
    func peerEnds(path: String, event: String) async throws {
        let server = try TestServer()
        let peer = try ScriptedPeer(server.address)
        peer.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
        if path == "/stream" { #expect(peer.text(through: "first\n")?.hasPrefix("HTTP/1.1 200 ") == true) }
        await server.log.wait(for: event)
        peer.close()
        await server.log.wait(for: "closed 1")
        await server.log.wait(for: "connection closed")
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

/// The bytes that a client sends over one connection of HTTP/1, and the expected result.
struct HTTP1Case: Sendable, CustomTestStringConvertible {
    /// The valid or invalid property of the bytes.
    let rule: String
    let sent: [UInt8]
    /// The statuses of the answers in order.
    let statuses: [Int]
    /// True if the server ends the connection. Otherwise it answers one more request on it.
    let isEnded: Bool
    /// The requests that reach the handler, each as `METHOD PATH HOST BODY`; nil if they are not checked.
    let requests: [String]?

    var testDescription: String { self.rule }

    init(_ rule: String, _ sent: String, _ statuses: [Int], isEnded: Bool = false, requests: [String]? = nil) {
        self.rule = rule
        self.sent = [UInt8](sent.utf8)
        self.statuses = statuses
        self.isEnded = isEnded
        self.requests = requests
    }

    /// Returns a case whose requests are answered 200 one after the other, and whose connection stays open.
    static func good(_ rule: String, _ sent: String, _ requests: String...) -> HTTP1Case {
        HTTP1Case(rule, sent, requests.map { _ in 200 }, requests: requests)
    }

    /// Returns a case whose requests are answered before the connection ends.
    static func last(_ rule: String, _ sent: String, _ requests: String...) -> HTTP1Case {
        HTTP1Case(rule, sent, requests.map { _ in 200 }, isEnded: true, requests: requests)
    }

    /// Returns a case whose first request is refused. The bytes after it must not be taken for another request.
    static func bad(_ rule: String, _ sent: String, _ status: Int = 400) -> HTTP1Case {
        HTTP1Case(rule, sent, [status], isEnded: true, requests: [])
    }
}

/// The bytes sent after a refused request. A server that took them for a request would answer it.
let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

/// An HTTP/1 session without socket, thread or clock: bytes in, answers and requests out.
final class HTTP1Fixture {
    let memory: LoopMemory
    let session: HTTP1Session
    let handler = AnsweringHandler()
    private(set) var output: [UInt8] = []

    init(_ limits: TransportLimits = TransportLimits()) {
        self.memory = LoopMemory(limits: limits, streams: StreamPool(streamsMax: limits.streamsPerLoopMax), now: 1000)
        self.session = HTTP1Session(
            memory: self.memory,
            handler: self.handler,
            id: ConnectionID(index: 7, generation: 1),
            listener: 0
        )
        self.handler.session = self.session
    }

    /// The requests that reached the handler, each as `METHOD PATH HOST BODY`.
    var requests: [String] { self.handler.requests }

    /// The statuses of the answers in order.
    var statuses: [Int] {
        String(decoding: self.output, as: UTF8.self).matches(of: /HTTP\/1\.1 (\d{3}) [\w ]*\r\n/)
            .compactMap { Int($0.output.1) }
    }

    /// The answers as text.
    var text: String { String(decoding: self.output, as: UTF8.self) }

    /// Passes bytes to the session, unless it has ended, and collects its output.
    func receive(_ bytes: [UInt8]) {
        bytes.withByteView { self.session.receive($0) }
        self.produce()
    }

    func produce() {
        var output = ByteBuffer()
        repeat {
            output.removeAll()
            self.session.produce(into: &output, bytesMax: 65_536)
            self.output += output.view.array
        } while !output.isEmpty
    }
}

/// Answers every request with `ok`, except those on `/wait` and `/stream`, and records the requests.
final class AnsweringHandler: RequestHandler {
    unowned var session: HTTP1Session?
    private(set) var requests: [String] = []
    private(set) var closed: [Int32] = []
    let response = Response()

    func bodyBytesMax(for _: Request) -> Int { 4096 }

    func requestReceived(_ request: Request) {
        let authority = request.authority.string
        self.requests.append("\(request.method.string) \(request.path.string) \(authority) \(request.body.string)")
        let number = request.stream.number
        self.response.begin(status: request.isBodyTooLarge ? 413 : request.shortage == .none ? 200 : 503)
        if request.path == "/stream" {
            _ = self.session?.beginStreaming(number, self.response)
        } else if !(request.path == "/wait") {
            _ = self.session?.respond(number, self.response, body: ByteView("ok"))
        }
    }

    func streamClosed(_ stream: StreamID) { self.closed.append(stream.number) }
}
