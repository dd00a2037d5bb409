import Foundation
import HTTPTransport
import Synchronization
import Wire

/// A cleartext connection on a real socket. Its first bytes decide between HTTP/2 and HTTP/1.1.
enum HTTP1Target {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-\(getpid()).sock").path
        defer { unsafe unlink(path) }
        let counts = HandlerCounts()
        let answer: [UInt8]
        do {
            var limits = TransportLimits()
            limits.connectionsMax = 8
            let server = try HTTPServer(
                listeners: [Listener(address: try .parse("unix:\(path)"), tls: nil)],
                limits: limits,
                loopCount: 1
            ) { CountingHandler($0, counts) }
            try server.start()
            defer { server.stop() }
            // Two pieces with the same bytes are handled in the same way, but the library may already answer the first
            // piece. The answer is therefore not compared.
            answer = try CleartextPeer.exchange(path, [input.array])
            _ = try CleartextPeer.exchange(
                path,
                [input[0..<min(2, input.count)].array, input.dropFirst(min(2, input.count)).array]
            )
            let alive = try CleartextPeer.exchange(path, [Array("GET /alive HTTP/1.1\r\nhost: a\r\n\r\n".utf8)])
            try promise(alive.starts(with: "HTTP/1.1 200".utf8), "the server does not serve another connection")
        } catch let broken as BrokenPromise {
            throw broken
        } catch {
            throw BrokenPromise("the server does not do its part: \(error)")
        }
        try self.checkAnswer(answer, to: input)
        try promise(counts.open.load(ordering: .relaxed) == 0, "closed connections were not reported")
    }

    private static func checkAnswer(_ answer: [UInt8], to input: ByteView) throws(BrokenPromise) {
        let marker = Array("PRI ".utf8)
        if input.array.starts(with: marker) {
            // SETTINGS, unless the connection is already closed.
            try promise(
                answer.isEmpty || answer.dropFirst(3).first == 4,
                "HTTP/2 is answered with \(answer.prefix(16))"
            )
        } else if marker.starts(with: input.array) {
            try promise(answer.isEmpty, "an ambiguous beginning is answered")
        } else {
            try promise(
                answer.isEmpty || answer.starts(with: "HTTP/1.".utf8),
                "HTTP/1.1 is answered with something else"
            )
        }
    }
}

/// The counts of a server's handler.
private final class HandlerCounts: Sendable {
    /// The number of connections that had a request and were not yet reported as closed.
    let open = Atomic(0)
}

/// Answers every request with its body, and counts connections.
private final class CountingHandler: RequestHandler {
    private unowned let loop: EventLoop
    private let counts: HandlerCounts
    private let response = Response()
    private var connections: Set<ConnectionID> = []

    init(_ loop: EventLoop, _ counts: HandlerCounts) {
        self.loop = loop
        self.counts = counts
    }

    func bodyBytesMax(for request: Request) -> Int { 64 }

    func requestReceived(_ request: Request) {
        if self.connections.insert(request.stream.connection).inserted { self.counts.open.add(1, ordering: .relaxed) }
        for index in 0..<request.headerCount { _ = request.header(at: index) }
        self.response.begin(status: request.isBodyTooLarge ? 413 : 200)
        if request.path == "/stream" {
            guard self.loop.beginStreaming(request.stream, self.response) else { return }
            _ = self.loop.write(request.stream, request.body)
            self.loop.finish(request.stream)
        } else if !(request.path == "/wait") {
            _ = self.loop.respond(request.stream, self.response, body: request.body)
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        if self.connections.remove(connection) != nil { self.counts.open.subtract(1, ordering: .relaxed) }
    }

    func streamClosed(_: StreamID) {}
}
