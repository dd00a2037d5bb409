import HTTPTransport
import Testing
import Wire

/// What handlers report to a test, in order.
final class EventLog: Sendable {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() {
        (self.stream, self.continuation) = AsyncStream.makeStream()
    }

    func append(_ event: String) { self.continuation.yield(event) }

    /// Waits for the first event that is `wanted`, from among those that nobody has waited for yet.
    func wait(for wanted: String) async {
        for await event in self.stream where event == wanted { return }
    }
}

/// Answers by path, so that a test chooses what the server does.
final class ScriptedHandler: RequestHandler {
    private unowned let loop: EventLoop
    private let log: EventLog
    private let response = Response()
    private var waiting: [StreamID] = []
    private var certificates: [ConnectionID: ClientCertificate] = [:]

    init(_ loop: EventLoop, _ log: EventLog) {
        self.loop = loop
        self.log = log
    }

    /// A certificate with this name gets its connection ended before the first request.
    static let unwanted = "CN=unwanted"

    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        self.certificates[connection] = certificate
        self.log.append("certificate \(certificate.subject)")
        guard certificate.subject == Self.unwanted else { return }
        self.loop.goAway(connection, debugData: ByteView("{\"reason\":\"BadCertificate\"}"))
    }

    func bodyBytesMax(for request: Request) -> Int { 4096 }

    func requestReceived(_ request: Request) {
        self.response.begin(status: 200)
        if request.isBodyTooLarge {
            self.response.begin(status: 413)
            self.loop.respond(request.stream, self.response, body: ByteView("too large"))
        } else if request.shortage != .none {
            self.response.begin(status: request.shortage == .server ? 503 : 429)
            self.loop.respond(request.stream, self.response, body: ByteView("no room"))
        } else if request.path == "/echo" {
            self.response.add("x-authority", request.authority)
            self.loop.respond(request.stream, self.response, body: request.body)
        } else if request.path == "/big" {
            _ = [UInt8](repeating: 0x61, count: 300_000).withByteView {
                self.loop.respond(request.stream, self.response, body: $0)
            }
        } else if request.path == "/wait" {
            self.waiting.append(request.stream)
            self.log.append("waiting \(request.stream.number)")
        } else if request.path == "/release" {
            for stream in self.waiting { self.loop.respond(stream, self.response, body: ByteView("released")) }
            self.waiting = []
            self.loop.respond(request.stream, self.response)
        } else if request.path == "/stream" {
            self.loop.setPing(request.stream.connection, everySeconds: 1)
            #expect(self.loop.beginStreaming(request.stream, self.response))
            #expect(self.loop.write(request.stream, ByteView("first\n")) == 6)
            self.log.append("streaming \(request.stream.number)")
        } else if request.path == "/fill" {
            #expect(self.loop.beginStreaming(request.stream, self.response))
            let waiting = [UInt8](repeating: 0x61, count: 20_000).withByteView {
                self.loop.write(request.stream, $0)
            }
            #expect(waiting == 20_000)
            self.log.append("filled \(request.stream.number)")
        } else if request.path == "/certificate" {
            let subject = self.certificates[request.stream.connection]?.subject ?? "none"
            _ = subject.withByteView { self.loop.respond(request.stream, self.response, body: $0) }
        } else if request.path == "/goaway" {
            self.loop.goAway(request.stream.connection, debugData: ByteView("{\"reason\":\"Shutdown\"}"))
            self.loop.respond(request.stream, self.response)
        } else if request.path == "/last" {
            self.loop.respond(request.stream, self.response, body: ByteView("last"))
            self.loop.goAway(request.stream.connection, debugData: ByteView())
        } else {
            self.response.begin(status: 404)
            self.loop.respond(request.stream, self.response, body: ByteView("no such path"))
        }
    }

    func streamClosed(_ stream: StreamID) { self.log.append("closed \(stream.number)") }
    func connectionClosed(_ connection: ConnectionID) {
        self.certificates[connection] = nil
        self.log.append("connection closed")
    }

    func streamDrained(_ stream: StreamID) { self.log.append("drained \(stream.number)") }
    func turnEnded() {}
    func woken() { self.log.append("woken") }
    func secondPassed(_ monotonicMilliseconds: Int64) {}
    func alarmRang(_ monotonicMilliseconds: Int64) {}
}
