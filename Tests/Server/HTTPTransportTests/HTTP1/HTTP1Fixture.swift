import HTTPTransport
import Testing
import Wire

/// One HTTP/1 session without socket, thread or clock: bytes in, answers and requests out.
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

    /// What the handler was asked for, each as `METHOD PATH HOST BODY`.
    var requests: [String] { self.handler.requests }

    /// The statuses of the answers, in their order.
    var statuses: [Int] {
        String(decoding: self.output, as: UTF8.self).matches(of: /HTTP\/1\.1 (\d{3}) [\w ]*\r\n/)
            .compactMap { Int($0.output.1) }
    }

    /// What was answered, as text.
    var text: String { String(decoding: self.output, as: UTF8.self) }

    /// Gives the session bytes, unless it is over, and takes what it answers.
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

/// Answers every request with `ok`, but for those on `/wait` and `/stream`, and keeps what was asked.
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
    func connectionClosed(_: ConnectionID) {}
    func streamDrained(_: StreamID) {}
    func turnEnded() {}
    func woken() {}
    func secondPassed(_: Int64) {}
    func alarmRang(_: Int64) {}
}
